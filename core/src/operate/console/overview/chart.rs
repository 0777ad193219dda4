//! Orders by hour as a chart that is drawn on the server (SVG), with the same as a table.

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use maud::{Markup, html};
use serde_json::Value;

use crate::operate::console::view::text;

/// Hours of the chart.
const HOURS: i64 = 24;
/// Width of an hour, and of its bar, in the chart's units.
const HOUR_WIDTH: i64 = 30;
const BAR_WIDTH: i64 = 22;
/// Height of the bars, and of all of it.
const BAR_HEIGHT: i64 = 120;
const HEIGHT: i64 = BAR_HEIGHT + 40;
/// Hours between two labels.
const LABEL_HOURS: i64 = 6;

/// The orders of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bar {
    hour: DateTime<Utc>,
    orders: i64,
    completed: i64,
}

/// Draws the hours up to now.
pub(super) fn orders_by_hour(hours: &[Value], now: DateTime<Utc>) -> Markup {
    let bars = bars(hours, now);
    let most = bars.iter().map(|bar| bar.orders).max().unwrap_or_default().max(1);
    let made: i64 = bars.iter().map(|bar| bar.orders).sum();
    let label = format!("{made} orders in 24 hours, at most {most} in an hour");
    let height = |orders: i64| orders * BAR_HEIGHT / most;
    let width = HOURS * HOUR_WIDTH;
    html! {
        svg.chart viewBox={ "0 0 " (width) " " (HEIGHT) } role="img" aria-label=(label) {
            text x="0" y="12" { (most) }
            @for (index, bar) in (0..).zip(&bars) {
                @let (x, all, done) = (index * HOUR_WIDTH, height(bar.orders), height(bar.completed));
                @let bottom = BAR_HEIGHT + 16;
                @if bar.orders > 0 {
                    rect.soft x=(x) y=(bottom - all) width=(BAR_WIDTH) height=(all) {
                        title { (bar.hour.format("%H:00 UTC")) ": " (bar.orders) " orders" }
                    }
                    rect x=(x) y=(bottom - done) width=(BAR_WIDTH) height=(done) {
                        title { (bar.hour.format("%H:00 UTC")) ": " (bar.completed) " completed" }
                    }
                }
                @if index % LABEL_HOURS == 0 {
                    text x=(x) y=(HEIGHT - 8) { (bar.hour.format("%H:00")) }
                }
            }
        }
        p.hint { "A bar an hour, in UTC; the darker part is completed by now." }
    }
}

/// A bar for every hour, oldest first; hours without orders too.
fn bars(hours: &[Value], now: DateTime<Utc>) -> Vec<Bar> {
    let this_hour = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
    let bars = (0..HOURS).rev().map(|ago| {
        let hour = this_hour - TimeDelta::hours(ago);
        let is_it = |found: &&Value| text(found, "/hour").parse::<DateTime<Utc>>() == Ok(hour);
        let found = hours.iter().find(is_it);
        let count = |member: &str| found.and_then(|found| found[member].as_i64());
        Bar {
            hour,
            orders: count("orders").unwrap_or_default(),
            completed: count("completed").unwrap_or_default(),
        }
    });
    bars.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_hour_has_its_bar() {
        let now: DateTime<Utc> = "2026-03-02T12:34:56Z".parse().unwrap();
        let hours = [json!({"hour": "2026-03-02T11:00:00Z", "orders": 12, "completed": 9})];
        let bars = bars(&hours, now);
        assert_eq!(
            (bars.len(), bars[0].hour.to_rfc3339()),
            (24, "2026-03-01T13:00:00+00:00".into())
        );
        assert_eq!((bars[22].orders, bars[22].completed, bars[23].orders), (12, 9, 0));
        let drawn = orders_by_hour(&hours, now).into_string();
        assert!(drawn.contains("12 orders in 24 hours"), "{drawn}");
        assert_eq!(drawn.matches("<rect").count(), 2);
        assert!(orders_by_hour(&[], now).into_string().contains("0 orders"));
    }
}
