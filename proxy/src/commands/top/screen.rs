//! The screen of `rampart top`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::sample::{Sample, sum};

const REQUESTS: &str = "rampart_requests_total";
const DURATION: &str = "rampart_request_duration_seconds";
/// Partners and routes that are shown: the busiest.
const SHOWN_MAX: usize = 10;

/// Writes the changes between two samples, and the present state.
pub(super) fn screen(before: &Sample, now: &Sample) -> String {
    let seconds = now.since(before).as_secs_f64().max(f64::EPSILON);
    let rates = |name: &str, label: &str| {
        let earlier = before.by(name, label);
        let rate = |(key, value)| {
            let before = earlier.get(key).copied().unwrap_or_default();
            (key, f64::max(value - before, 0.0) / seconds)
        };
        now.by(name, label).into_iter().map(rate).collect::<BTreeMap<_, _>>()
    };
    let total = sum(rates(REQUESTS, "status").into_values());
    let of_class = |class: char| -> f64 {
        let statuses = rates(REQUESTS, "status").into_iter();
        sum(statuses.filter(|(status, _)| status.starts_with(class)).map(|(_, rate)| rate))
    };
    let rate_of = |name: &str| (now.sum(name, &[]) - before.sum(name, &[])).max(0.0) / seconds;
    let gauge = |name: &str| now.sum(name, &[]);
    let requests = format!(
        "{total:.1}/s   2xx {:.1}   4xx {:.1}   5xx {:.1}   in flight {}   shed {:.1}/s   limited {:.1}/s",
        of_class('2'),
        of_class('4'),
        of_class('5'),
        gauge("rampart_requests_in_flight"),
        rate_of("rampart_requests_shed_total"),
        rate_of("rampart_rate_limited_total"),
    );
    let latency = |share| time(now.quantile(before, DURATION, share));
    let connections = format!(
        "{} open   {} idle   {:.1}/s handshakes",
        gauge("rampart_connections_open"),
        gauge("rampart_connections_idle"),
        rate_of("rampart_tls_handshakes_total"),
    );
    let lines = [
        ("requests", requests),
        ("latency", format!("p50 {}   p90 {}   p99 {}", latency(0.5), latency(0.9), latency(0.99))),
        ("connections", connections),
        ("pools", pools(before, now)),
        ("queues", counted(now.by("rampart_queue_length", "queue"))),
        ("backlog", counted(now.by("rampart_backlog", "queue"))),
        ("commands", counted(now.by("rampart_commands_open", "kind"))),
    ];
    let mut text = String::new();
    for (head, rest) in lines {
        // Writing to a string cannot fail.
        _ = writeln!(text, "{head:12}{rest}");
    }
    text.push('\n');
    busiest(
        &mut text,
        "PARTNER",
        rates(REQUESTS, "partner"),
        rates("rampart_rate_limited_total", "partner"),
    );
    text.push('\n');
    busiest(&mut text, "ROUTE", rates(REQUESTS, "route"), BTreeMap::new());
    text
}

/// Connections in use of each pool, and the wait for one.
fn pools(before: &Sample, now: &Sample) -> String {
    const CONNECTIONS: &str = "rampart_db_connections";
    let states = now.by(CONNECTIONS, "pool").into_keys().map(|pool| {
        let in_state = |state| now.sum(CONNECTIONS, &[("pool", pool), ("state", state)]);
        format!("{pool} {}/{}", in_state("busy"), in_state("busy") + in_state("idle"))
    });
    let mut states: Vec<String> = states.collect();
    let wait = now.quantile(before, "rampart_db_pool_wait_seconds", 0.99);
    let statement = now.quantile(before, "rampart_db_statement_duration_seconds", 0.99);
    states.push(format!("wait p99 {}   statement p99 {}", time(wait), time(statement)));
    states.join("   ")
}

/// Lists the counts that are not zero.
fn counted(counts: BTreeMap<&str, f64>) -> String {
    let waiting = counts.into_iter().filter(|(_, count)| *count > 0.0);
    let waiting: Vec<_> = waiting.map(|(name, count)| format!("{name} {count}")).collect();
    if waiting.is_empty() { "nothing waits".to_owned() } else { waiting.join("   ") }
}

/// A table of the busiest, with what was refused of them.
fn busiest(
    text: &mut String,
    head: &str,
    rates: BTreeMap<&str, f64>,
    limited: BTreeMap<&str, f64>,
) {
    let mut rates: Vec<_> = rates.into_iter().filter(|(_, rate)| *rate > 0.0).collect();
    rates.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    _ = writeln!(text, "{:>10}  {head}", "REQUESTS/S");
    for (name, rate) in rates.into_iter().take(SHOWN_MAX) {
        // Names of partners are theirs: nothing in them moves the cursor.
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        let limited = limited.get(name.as_str()).copied().filter(|rate| *rate > 0.0);
        let limited = limited.map(|rate| format!("  limited {rate:.1}/s")).unwrap_or_default();
        // Requests that nobody has proven to be a partner's have no name.
        let shown = if name.is_empty() { "-" } else { name.as_str() };
        _ = writeln!(text, "{rate:>10.1}  {shown}{limited}");
    }
}

/// A time in seconds, in the unit that fits.
fn time(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(seconds) if seconds.is_infinite() => "> 30 s".to_owned(),
        Some(seconds) if seconds < 0.001 => format!("{:.0} us", seconds * 1e6),
        Some(seconds) if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_shows_rates_and_what_waits() {
        let before = Sample::read(
            "rampart_requests_total{partner=\"acme\",route=\"/a\",status=\"200\"} 10\n",
            0,
        );
        let now = Sample::read(
            "rampart_requests_total{partner=\"acme\",route=\"/a\",status=\"200\"} 30\n\
             rampart_requests_total{partner=\"b\\n\",route=\"/b\",status=\"503\"} 5\n\
             rampart_requests_total{partner=\"\",route=\"/b\",status=\"303\"} 1\n\
             rampart_queue_length{queue=\"mail\"} 7\n",
            1_000_000_000,
        );
        let text = screen(&before, &now);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("requests") && lines[0].contains("5xx"), "{text}");
        assert!(text.contains("4xx 0.0") && text.contains("shed 0.0/s"), "{text}");
        assert!(text.contains("queues      mail 7"), "{text}");
        assert!(text.contains("backlog     nothing waits"), "{text}");
        let position = |name: &str| lines.iter().position(|line| line.ends_with(name));
        assert!(position("acme") < position("b"), "the busiest comes first: {text}");
        assert!(text.contains("       1.0  -\n"), "{text}");
    }

    #[test]
    fn an_edge_that_nobody_has_asked_shows_zeros() {
        let text = screen(&Sample::read("", 0), &Sample::read("", 1_000_000_000));
        assert!(text.starts_with("requests    0.0/s ") && text.contains("in flight 0 "), "{text}");
        assert!(text.contains("connections 0 open   0 idle"), "{text}");
    }

    #[test]
    fn times_have_units() {
        let shown = [None, Some(0.000_05), Some(0.0025), Some(2.5), Some(f64::INFINITY)].map(time);
        assert_eq!(shown, ["-", "50 us", "2.5 ms", "2.5 s", "> 30 s"]);
    }
}
