use super::requests::FinishedRequest;
use super::*;
use crate::platform::error::Code;

fn finished(partner: &str, status: u16) -> FinishedRequest<'_> {
    FinishedRequest {
        route: "/api/v1/prices",
        partner,
        partner_class: "test",
        status,
        by_sender: false,
        took: Duration::from_micros(70),
        codes: &[],
    }
}

#[test]
fn every_family_is_rendered_with_its_labels() {
    let metrics = Metrics::new(10).unwrap();
    let codes = &[Code::ClientTokenInvalid];
    metrics.request(&FinishedRequest { codes, ..finished("acme", 400) });
    let text = metrics.render();
    for line in [
        r#"rampart_requests_total{partner="acme",route="/api/v1/prices",status="400"} 1"#,
        r#"rampart_errors_total{code="ER800"} 1"#,
        r#"status_class="4xx",le="0.00005"} 0"#,
        r#"status_class="4xx",le="0.0001"} 1"#,
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn counters_of_known_labels_begin_at_zero() {
    let text = Metrics::new(10).unwrap().render();
    let codes = Code::ALL.iter().map(|code| code.as_str());
    let errors = codes.map(|code| format!(r#"errors_total{{code="{code}"}} 0"#));
    let limited = r#"rate_limited_total{bucket="address",partner=""} 0"#;
    for line in errors.chain([limited.to_owned()]) {
        assert!(text.contains(&format!("\nrampart_{line}\n")), "{line}: {text}");
    }
}

#[test]
fn an_edge_without_connections_tells_so() {
    let text = Metrics::new(10).unwrap().render();
    for gauge in ["requests_in_flight", "connections_open", "connections_idle"] {
        assert!(text.contains(&format!("\nrampart_{gauge} 0\n")), "{gauge}: {text}");
    }
}

#[test]
fn help_names_every_cause_and_limit() {
    let text = Metrics::new(10).unwrap().render();
    let mut looked_at = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, rest)) = line.split_once('{') else { continue };
        let value = rest.strip_prefix("cause=\"").or_else(|| rest.strip_prefix("limit=\""));
        let Some((value, _)) = value.and_then(|value| value.split_once('"')) else { continue };
        let (.., help, _) = FAMILIES.iter().find(|(family, ..)| *family == name).unwrap();
        let mut words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        assert!(words.any(|word| word == value), "{name}: {value} is not in: {help}");
        looked_at += 1;
    }
    assert!(looked_at > 10, "{text}");
}

#[test]
fn the_lag_of_late_callbacks_is_told() {
    let metrics = Metrics::new(10).unwrap();
    for seconds in [45, 600] {
        metrics.callback("delivered", Some(Duration::from_secs(seconds)));
    }
    let text = metrics.render();
    for (bound, count) in [("30", 0), ("60", 1), ("300", 1), ("1800", 2)] {
        let line = format!("rampart_callback_lag_seconds_bucket{{le=\"{bound}\"}} {count}");
        assert!(text.contains(&line), "{line}: {text}");
    }
}

#[test]
fn help_names_the_unit_and_stands_alone() {
    let text = Metrics::new(10).unwrap().render();
    let helps = text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '));
    for (name, help) in helps {
        for unit in ["seconds", "bytes"] {
            let is_in_name = name.split('_').any(|word| word == unit);
            assert!(!is_in_name || help.contains(unit), "{name}: {help}");
        }
        assert!(!help.contains("of them"), "{name}: {help}");
    }
}

#[test]
fn every_status_is_told() {
    let metrics = Metrics::new(10).unwrap();
    for status in [0, 303, 403, 418, 502, 504] {
        metrics.request(&finished("acme", status));
    }
    let text = metrics.render();
    for label in ["aborted", "303", "403", "418", "502", "504"] {
        assert!(text.contains(&format!(r#"status="{label}"}} 1"#)), "{label}: {text}");
    }
}

#[test]
fn only_errors_that_no_sender_caused_count_as_failed() {
    let metrics = Metrics::new(10).unwrap();
    for (status, by_sender) in [(200, false), (429, false), (500, false), (503, true), (0, false)] {
        metrics.request(&FinishedRequest { by_sender, ..finished("acme", status) });
    }
    let text = metrics.render();
    for (outcome, count) in [("answered", 2), ("failed", 1), ("refused", 1), ("aborted", 1)] {
        let line = format!("rampart_request_outcomes_total{{outcome=\"{outcome}\"}} {count}");
        assert!(text.contains(&line), "{line}: {text}");
    }
}

#[test]
fn only_the_most_recently_active_partners_have_series() {
    let metrics = Metrics::new(3).unwrap();
    for partner in ["a", "b", "c", "d", "b", "e"] {
        metrics.request(&finished(partner, 200));
        metrics.rate_limited("client", partner);
        metrics.partners.settle();
    }
    let text = metrics.render();
    let shown = |partner: &str| text.contains(&format!(r#"partner="{partner}""#));
    assert_eq!(["a", "b", "c", "d", "e"].map(shown), [false, true, false, true, true], "{text}");
    assert!(text.contains("rampart_partner_series_dropped_total 2"), "{text}");
    assert!(metrics.is_active("b") && !metrics.is_active("a"));
    metrics.request(&finished("a", 200));
    let back = r#"rampart_requests_total{partner="a",route="/api/v1/prices",status="200"} 1"#;
    assert!(metrics.render().contains(back));
}

#[test]
fn a_connection_is_idle_between_its_requests() {
    let metrics = Metrics::new(3).unwrap();
    let shown = |name: &str, count: u8| {
        let text = metrics.render();
        assert!(text.contains(&format!("\nrampart_{name} {count}\n")), "{name}: {text}");
    };
    let connection = std::sync::Arc::new(metrics.connection());
    shown("connections_idle", 1);
    let requests = [connection.begin_request(), connection.begin_request()];
    drop(connection);
    shown("connections_open", 1);
    shown("connections_idle", 0);
    shown("requests_in_flight", 2);
    drop(requests);
    for name in ["connections_open", "connections_idle", "requests_in_flight"] {
        shown(name, 0);
    }
}

#[test]
fn a_family_without_a_sample_is_rendered_once() {
    let metrics = Metrics::new(10).unwrap();
    metrics.db_pool.with_label_values(&["idle"]).set(2);
    let text = metrics.render();
    for (name, ..) in FAMILIES {
        let head = format!("# TYPE {name} ");
        assert_eq!(text.matches(&head).count(), 1, "{name}");
    }
}
