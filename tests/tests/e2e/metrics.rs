//! Monitoring: metrics with bounded labels, health, and an access log without confidential data.

mod saturation;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use http::Method;
use rampart_api::{ENDPOINTS, PAGES};
use rampart_core::money::connectors::commands::CommandKind;
use rampart_core::platform::clock::Clock;
use rampart_tests::caller::Protocol;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::guests::component;
use rampart_tests::receiver::Receiver;
use rampart_tests::wire::Wire;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::buyer::{RETURN_URL, WALLET, confirm, quote};

/// Section 11 of the contract.
const FAMILIES: [&str; 14] = [
    "rampart_requests_total",
    "rampart_request_duration_seconds",
    "rampart_errors_total",
    "rampart_rate_limited_total",
    "rampart_policy_calls_total",
    "rampart_policy_duration_seconds",
    "rampart_policy_fuel",
    "rampart_orders_total",
    "rampart_callback_attempts_total",
    "rampart_callback_lag_seconds",
    "rampart_db_pool",
    "rampart_tls_handshakes_total",
    "rampart_price_age_seconds",
    "rampart_build_info",
];

/// Values of a label in a text of metrics.
fn values<'a>(text: &'a str, label: &str) -> BTreeSet<&'a str> {
    let mark = format!("{label}=\"");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(&mark)?.1.split('"').next()).collect()
}

/// The lines of the families whose names begin so.
fn of_families(text: &str, prefix: &str) -> String {
    text.lines().filter(|line| line.starts_with(prefix)).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn every_family_is_shown_and_no_caller_can_add_a_label() {
    let edge = Edge::start().await;
    let receiver = Receiver::start().await;
    let partner = edge.partner("watched").await.authenticated().await;
    let path = "/admin/v1/partners/watched/policies/fee";
    edge.admin_bytes(Method::PUT, path, component("tiered-fee")).await.assert_status(200);

    let quote = quote(&partner).await;
    let body = json!({
        "quote": quote["quote"], "walletAddress": WALLET, "returnUrl": RETURN_URL,
        "callbackUrl": receiver.url("/hook"),
    });
    let confirmed = partner.post("/api/v1/buy/confirm", body).await.assert_status(200).json();
    let page = confirmed["paymentUrl"].as_str().unwrap().strip_prefix(&edge.url("")).unwrap();
    partner.anonymous(Method::POST, page).form("action=deny").send().await.assert_status(303);
    receiver.heard_at_least(1).await;

    let slow = json!({"rateLimits": {"client": "1/min burst 1"}});
    edge.admin(Method::PATCH, "/admin/v1/partners/watched", slow).await.assert_status(200);
    partner.get("/api/v1/prices").await;
    partner.get("/api/v1/prices").await.assert_status(429);
    let unknown: Vec<_> = (0..40).map(|number| format!("/api/v1/unknown-{number}?x=1")).collect();
    for answer in join_all(unknown.iter().map(|path| partner.get(path))).await {
        answer.assert_status(404).assert_codes(&["ER998"]);
    }
    let brew = "BREW".parse().unwrap();
    partner.anonymous(brew, "/api/v1/prices").send().await.assert_status(405);

    let text = until("every family is shown", SOON, async || {
        let text = edge.ops("/metrics").await.assert_status(200).text().to_owned();
        let shown = |family: &&str| text.contains(&format!("# TYPE {family} "));
        FAMILIES.iter().all(shown).then_some(text)
    })
    .await;
    let routes: BTreeSet<_> = ENDPOINTS.iter().chain(PAGES).map(|route| route.path).collect();
    for route in values(&text, "route") {
        assert!(route == "none" || routes.contains(route), "{route}");
    }
    assert_eq!(values(&text, "partner"), BTreeSet::from(["", "watched"]));
    let policies = of_families(&text, "rampart_policy");
    let kinds = BTreeSet::from(["fee", "method-order", "signature"]);
    assert!(values(&policies, "kind").is_subset(&kinds));
    let commands: BTreeSet<_> = CommandKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let queued = of_families(&text, "rampart_command");
    assert!(values(&queued, "kind").is_subset(&commands));
    let pools = of_families(&text, "rampart_db");
    assert_eq!(values(&pools, "state"), BTreeSet::from(["busy", "idle"]));
    let orders = of_families(&text, "rampart_orders_total");
    let counted: Vec<_> = orders.lines().filter(|line| !line.ends_with(" 0")).collect();
    let events = BTreeSet::from(["confirmed", "payment-denied"]);
    assert_eq!(values(&counted.join("\n"), "event"), events);
    for series in ["unknown-", "BREW"] {
        assert!(!text.contains(series), "{series} is in the metrics");
    }
}

/// The value of a series in a text of metrics; 0 when it is not there.
fn value(text: &str, series: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
    line.map_or(0, |value| value.parse().unwrap())
}

#[tokio::test]
async fn a_refused_request_is_counted_for_its_route_and_its_client() {
    let edge = Edge::start().await;
    let partner = edge.partner("refused").await;
    let slow = json!({"rateLimits": {"client": "1/min burst 1"}});
    edge.admin(Method::PATCH, "/admin/v1/partners/refused", slow).await.assert_status(200);
    partner.get("/api/v1/prices").await.assert_status(200);
    partner.get("/api/v1/prices").await.assert_status(429);
    let nobody = partner.anonymous(Method::GET, "/api/v1/prices");
    nobody.send().await.assert_status(400);
    let series = [("refused", 200), ("refused", 429), ("", 400)].map(|(client, status)| {
        let labels = format!(r#"partner="{client}",route="/api/v1/prices",status="{status}""#);
        format!("rampart_requests_total{{{labels}}}")
    });
    until("every request is counted", SOON, async || {
        let text = edge.ops("/metrics").await.assert_status(200).text().to_owned();
        series.iter().all(|series| value(&text, series) == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_error_that_its_sender_asked_for_is_no_failure_of_the_edge() {
    let edge = Edge::start().await;
    let partner = edge.partner("rehearsing").await;
    let asked = partner.request(Method::GET, "/api/v1/prices");
    asked.header("x-rampart-scenario", "ER999 503").send().await.assert_status(503);
    let outcome = |name| format!("rampart_request_outcomes_total{{outcome=\"{name}\"}}");
    let text = until("the request is counted", SOON, async || {
        let text = edge.ops("/metrics").await.assert_status(200).text().to_owned();
        Some(text).filter(|text| value(text, &outcome("refused")) == 1)
    })
    .await;
    assert_eq!(value(&text, &outcome("failed")), 0, "{text}");
}

#[tokio::test]
async fn a_request_whose_client_left_after_an_interim_answer_is_aborted() {
    let edge = Edge::start().await;
    let mut wire = Wire::open(edge.address).await;
    let line = "POST /api/v1/authenticate HTTP/1.1\r\nHost: a\r\n";
    let head = format!("{line}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(wire.exchange(head.as_bytes()).await.unwrap().status(), 100);
    drop(wire);
    let labels = r#"partner="",route="/api/v1/authenticate",status="aborted""#;
    until("it is counted as aborted", SOON, async || {
        let text = edge.ops("/metrics").await.assert_status(200).text().to_owned();
        (value(&text, &format!("rampart_requests_total{{{labels}}}")) == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_connection_closed_before_its_first_byte_is_no_failed_handshake() {
    let edge = Edge::start().await;
    let shown = async |closed: u64, failed: u64| {
        until("the connection is counted", SOON, async || {
            let text = edge.ops("/metrics").await.assert_status(200).text().to_owned();
            let found = ["closed", "failed"].map(|outcome| {
                let labels = format!(r#"outcome="{outcome}",version="""#);
                value(&text, &format!("rampart_tls_handshakes_total{{{labels}}}"))
            });
            (found == [closed, failed]).then_some(())
        })
        .await;
    };
    drop(TcpStream::connect(edge.address).await.unwrap());
    shown(1, 0).await;
    let mut wire = Wire::plain(edge.address).await;
    wire.send(b"\x16").await;
    drop(wire);
    shown(1, 1).await;
}

#[tokio::test]
async fn saturation_is_shown_while_it_lasts() {
    let edge = Edge::start().await;
    let metrics = async || edge.ops("/metrics").await.assert_status(200).text().to_owned();
    let mut wire = Wire::open(edge.address).await;
    let idle = Wire::open(edge.address).await;
    let head = b"POST /api/v1/authenticate HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n";
    wire.send(head).await;
    let shown = async |open: u64, idle: u64, requests: u64| {
        until("the gauges follow", SOON, async || {
            let text = metrics().await;
            let found = ["connections_open", "connections_idle", "requests_in_flight"]
                .map(|name| value(&text, &format!("rampart_{name}")));
            (found == [open, idle, requests]).then_some(())
        })
        .await;
    };
    shown(2, 1, 1).await;
    wire.exchange(b"{}").await.unwrap().assert_status(400);
    shown(2, 2, 0).await;
    drop((wire, idle));
    shown(0, 0, 0).await;
    let text = metrics().await;
    for name in ["process_resident_memory_bytes", "process_open_fds", "process_threads"] {
        assert!(value(&text, name) > 0, "{name}");
    }
    for name in ["pool_wait_seconds", "statement_duration_seconds"] {
        let series = format!(r#"rampart_db_{name}_count{{pool="workers"}}"#);
        assert!(value(&text, &series) > 0, "{series}");
    }
    for queue in ["orders", "order_reads", "idempotency_keys", "passwords", "policy_shadows"] {
        assert!(text.contains(&format!(r#"rampart_queue_length{{queue="{queue}"}} 0"#)), "{queue}");
    }
}

#[tokio::test]
async fn the_time_in_which_a_client_sends_its_body_is_not_the_edges() {
    /// Beyond the bound below, which an answer of the edge itself stays within.
    const PAUSE: Duration = Duration::from_millis(2_600);
    let edge = Edge::start().await;
    let metrics = async || edge.ops("/metrics").await.assert_status(200).text().to_owned();
    let mut wire = Wire::open(edge.address).await;
    let (clock, pause) = (Clock::system(), PAUSE.as_nanos());
    let began = clock.monotonic_ns();
    let head = b"POST /api/v1/authenticate HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n";
    wire.send(head).await;
    until("the client has taken its time", SOON, async || {
        let waits = value(&metrics().await, "rampart_requests_in_flight") == 1;
        (waits && u128::from(clock.monotonic_ns() - began) > pause).then_some(())
    })
    .await;
    wire.exchange(b"{}").await.unwrap().assert_status(400);
    let labels = r#"partner_class="none",route="/api/v1/authenticate",status_class="4xx""#;
    let series = |le| format!(r#"rampart_request_duration_seconds_bucket{{{labels},le="{le}"}}"#);
    let text = until("the request is counted", SOON, async || {
        Some(metrics().await).filter(|text| value(text, &series("+Inf")) == 1)
    })
    .await;
    assert_eq!(value(&text, &series("2.5")), 1, "{text}");
}

#[tokio::test]
async fn every_one_of_many_looks_at_once_shows_the_certificate() {
    let edge = Edge::shared().await;
    for answer in join_all((0..64).map(|_| edge.ops("/metrics"))).await {
        let text = answer.assert_status(200).text().to_owned();
        assert!(text.contains("\nrampart_certificate_expiry_timestamp_seconds{"), "{text}");
    }
}

#[tokio::test]
async fn partners_beyond_the_bound_share_no_memory() {
    let edge = Edge::with(|setup| _ = setup.set("metrics.partners_max", "2")).await;
    for slug in ["one", "two", "three"] {
        edge.partner(slug).await.get("/api/v1/prices").await.assert_status(200);
        // Not before its answer has been sent.
        let counted = async || {
            values(edge.ops("/metrics").await.text(), "partner").contains(slug).then_some(())
        };
        until("the request is counted", SOON, counted).await;
    }
    let text = edge.ops("/metrics").await.text().to_owned();
    assert_eq!(values(&text, "partner"), BTreeSet::from(["", "two", "three"]));
    assert_eq!(value(&text, "rampart_partner_series_dropped_total"), 1);
    let requests = of_families(&text, "rampart_request");
    assert_eq!(values(&requests, "partner_class"), BTreeSet::from(["test"]));
}

#[tokio::test]
async fn health_is_that_of_the_process_and_readiness_that_of_what_it_needs() {
    let edge = Edge::shared().await;
    assert_eq!(edge.ops("/healthz").await.assert_status(200).json(), json!({"alive": true}));
    let ready = edge.ops("/readyz").await.assert_status(200).json();
    assert_eq!((&ready["ready"], &ready["stopping"]), (&json!(true), &json!(false)));
    let checks: BTreeSet<_> = ready["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    let needed = BTreeSet::from(["database", "keys", "prices", "policies"]);
    assert!(checks.is_superset(&needed), "{checks:?}");
    edge.ops("/nowhere").await.assert_status(404);
    let post = Protocol::Http1.client().post(format!("http://{}/metrics", edge.ops)).send();
    assert_eq!(post.await.unwrap().status(), 405);
}

#[tokio::test]
async fn the_log_has_a_line_per_request_and_nothing_that_anybody_sent() {
    for format in ["text", "json"] {
        let edge = Edge::with(|setup| {
            setup.set("log.format", format).set("log.level", "debug");
        })
        .await;
        let partner = edge.partner("logged").await.authenticated().await;
        let (_, token) = partner.credential();
        let quote = quote(&partner).await["quote"].as_str().unwrap().to_owned();
        let confirmed = confirm(&partner, &quote).send().await;
        let page = confirmed.assert_status(200).json()["paymentUrl"].as_str().unwrap().to_owned();
        let page = page.strip_prefix(&edge.url("")).unwrap();
        partner.anonymous(Method::GET, page).send().await.assert_status(200);
        let canary = "canary-7b1f";
        for path in ["/api/v1/prices?fee=", "/api/v1/", "/api/v2/buy/orders/"] {
            partner.get(&format!("{path}{canary}")).await;
        }
        let request = partner.anonymous(Method::GET, "/api/v1/prices");
        let request = request.header("x-api-key", canary).header("user-agent", canary);
        request.header("x-request-id", "the-last-one").send().await.assert_status(400);
        let body = json!({"username": "logged", "password": canary});
        partner.anonymous(Method::POST, "/api/v1/authenticate").json(&body).send().await;
        let refused = b"DELETE /api/v1/prices HTTP/1.1\r\nX-Request-Id: the-refused\r\n\r\n";
        Wire::open(edge.address).await.exchange(refused).await.unwrap().assert_status(400);

        let lines = until("the lines are written", SOON, async || {
            let lines = edge.process.out();
            let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
            // The last three: the second one to sign in, the one before it, the refused head.
            let last = count("the-last-one") == 1 && count("the-refused") == 1;
            (last && count("/api/v1/authenticate") == 2).then_some(lines)
        })
        .await;
        let refused = lines.iter().find(|line| line.contains("the-refused")).unwrap();
        assert!(refused.contains("DELETE") && refused.contains("400"), "{refused}");
        assert_eq!(lines.iter().filter(|line| line.contains("the-last-one")).count(), 1);
        let is_json = |line: &String| serde_json::from_str::<Value>(line).is_ok();
        assert_eq!(lines.iter().all(is_json), format == "json", "{lines:?}");
        let all = [lines, edge.process.err()].concat().join("\n");
        let (secret, key) = (partner.secret("password"), partner.secret("apiKey"));
        let page = page.rsplit('/').next().unwrap();
        let token = token.trim_start_matches("Bearer ");
        for hidden in [canary, secret, key, token, &quote, page, WALLET, RETURN_URL, "fee="] {
            assert!(!all.contains(hidden), "{format}: {hidden} is in the log");
        }
        for shown in ["/api/v1/prices", "logged", "ER805", "127.0.0.1", "TLSv1_3"] {
            assert!(all.contains(shown), "{format}: {shown} is not in the log");
        }
    }
}
