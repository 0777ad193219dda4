//! The overview: what is open, what waits for somebody, what is wrong, and the health of Postgres.

mod chart;

use http::Method;
use maud::{Markup, html};
use serde_json::Value;

use self::chart::orders_by_hour;
use super::connectors::{COLUMNS, CONNECTORS};
use super::layout::Page;
use super::list::titled_table;
use super::view::{Cell, text};
use super::visit::{Refused, Visit};
use crate::http::html::components::{Tone, empty_state, note, stat, time};
use crate::platform::counted::counted;

const OPEN: &[(&str, Cell)] = &[
    ("Side", Cell::Text("/side")),
    ("Status", Cell::Badge("/status")),
    ("Orders", Cell::Text("/count")),
    ("Oldest", Cell::Link("/console/orders/", "/oldest")),
    ("Since", Cell::Time("/since")),
];

/// Checks of Postgres, with their names for people.
const POSTGRES: [(&str, &str); 6] = [
    ("database", "Postgres answers"),
    ("pool", "A connection is free"),
    ("replicas", "Replicas follow"),
    ("snapshot", "Its changes are read"),
    ("clock", "Its clock and this machine's agree"),
    ("rows", "Its rows can be read"),
];
const HEALTH: &[(&str, Cell)] = &[
    ("Check", Cell::Text("/label")),
    ("State", Cell::Badge("/status")),
    ("Detail", Cell::Text("/detail")),
];

/// The page.
pub(super) async fn show(visit: &Visit<'_>) -> Result<Page, Refused> {
    let overview = visit.get("/admin/v1/overview").await?;
    let (connectors, _) = match visit.may(&Method::GET, CONNECTORS.call) {
        true => visit.rows(CONNECTORS.call).await?,
        false => (Vec::new(), None),
    };
    let rows = |name: &str| overview[name].as_array().cloned().unwrap_or_default();
    let (open, hours) = (rows("open"), rows("hours"));
    let now = visit.core.clock.now();
    let body = html! {
        p.hint { "As of " (time(now)) }
        (alarms(&rows("problems")))
        (figures(&overview, &hours))
        h2 { "Orders of the last 24 hours" }
        (orders_by_hour(&hours, now))
        @if open.is_empty() { (empty_state("No open orders", "Every order has ended.")) }
        (titled_table(visit, "Open orders", &open, OPEN))
        (titled_table(visit, "Connectors", &connectors, COLUMNS))
        (titled_table(visit, "Postgres", &of_postgres(&rows("checks")), HEALTH))
    };
    Ok(Page::new("Overview", "/console", body))
}

/// Problems that this edge finds, worst first.
fn alarms(problems: &[Value]) -> Markup {
    let mut problems: Vec<_> = problems.iter().collect();
    problems.sort_by_key(|problem| problem["failed"] != true);
    html! {
        h2 { "Alarms" }
        @if problems.is_empty() { p.hint { "None: this edge passes all its checks." } }
        @for problem in problems {
            @let tone = if problem["failed"] == true { Tone::Bad } else { Tone::Warning };
            (note(tone, &html! { strong { (text(problem, "/name")) } ": " (text(problem, "/detail")) }))
        }
    }
}

/// The checks of Postgres among those of this edge.
fn of_postgres(checks: &[Value]) -> Vec<Value> {
    let found = POSTGRES.iter().filter_map(|(name, label)| {
        let mut check = checks.iter().find(|check| check["name"] == *name)?.clone();
        check["label"] = (*label).into();
        Some(check)
    });
    found.collect()
}

fn figures(overview: &Value, hours: &[Value]) -> Markup {
    let sum = |member: &str| hours.iter().filter_map(|hour| hour[member].as_i64()).sum::<i64>();
    let (made, completed, quotes) = (sum("orders"), sum("completed"), sum("quotes"));
    let completed_of = |all: i64| match all {
        0 => "–".to_owned(),
        all => format!("{} %", completed * 100 / all),
    };
    let waiting = |member: &str| text(&overview["waiting"], member);
    html! {
        div.stats {
            (stat("Orders in 24 hours", &made.to_string(), None))
            (stat("Completed orders", &completed_of(made), Some("of the orders of 24 hours, so far")))
            @let of_quotes = format!("of {} in 24 hours", counted(quotes, "quote", "quotes"));
            (stat("Conversion of quotes", &completed_of(quotes), Some(&of_quotes)))
            @for volume in overview["volume"].as_array().into_iter().flatten() {
                @let currency = text(volume, "/currency");
                @let ordered = format!("of {} ordered in 24 hours", text(volume, "/ordered"));
                (stat(
                    &format!("Completed, in {currency}"),
                    &text(volume, "/completed"),
                    Some(&ordered),
                ))
            }
            a.stat href="/console/payments?state=suspense" {
                span { "Payments that wait" } b { (waiting("/payments")) }
            }
            a.stat href="/console/approvals" {
                span { "Approvals that wait" } b { (waiting("/approvals")) }
            }
            a.stat href="/console/deliveries?state=failed" {
                span { "Deliveries given up" } b { (waiting("/deliveries")) }
            }
        }
    }
}
