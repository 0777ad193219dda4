//! Orders by state and hour as a chart that is drawn on the server (SVG), and the same as a table.

use std::iter;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use maud::{Markup, html};
use serde_json::Value;

use crate::http::html::components::{Column, dialog, table, time};
use crate::operate::console::view::text;
use crate::platform::counted::counted;

/// Hours of the chart.
const HOURS: i64 = 24;
/// Width of an hour, and of its bar, in the chart's units.
const HOUR_WIDTH: i64 = 30;
const BAR_WIDTH: i64 = 22;
/// Height of the bars, and of all of it.
const BAR_HEIGHT: i64 = 120;
const HEIGHT: i64 = BAR_HEIGHT + 40;
/// Foot of the bars.
const BOTTOM: i64 = BAR_HEIGHT + 16;
/// Hours between two labels.
const LABEL_HOURS: i64 = 6;
/// States as they stand on each other from the bottom up: name, member, and colour if it is not the
/// accent.
const STATES: [(&str, &str, Option<&str>); 6] = [
    ("completed", "completed", Some("good")),
    ("in progress", "inProgress", None),
    ("pending", "pending", Some("soft")),
    ("blocked", "blocked", Some("bad")),
    ("refunded", "refunded", Some("warning")),
    ("cancelled", "cancelled", Some("ended")),
];

/// The orders of an hour, by the states of [`STATES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bar {
    hour: DateTime<Utc>,
    counts: [i64; STATES.len()],
}

/// The part of a bar that is in one state.
struct Part {
    state: &'static str,
    colour: Option<&'static str>,
    orders: i64,
    /// Its upper end, above the foot of the bar.
    top: i64,
    height: i64,
}

impl Bar {
    fn orders(&self) -> i64 {
        self.counts.iter().sum()
    }

    /// Its parts from the bottom up, where `most` orders are as high as the chart.
    fn parts(&self, most: i64) -> Vec<Part> {
        let mut below = 0;
        let parts = STATES.into_iter().zip(self.counts).filter(|(_, orders)| *orders > 0);
        let parts = parts.map(|((state, _, colour), orders)| {
            let bottom = below * BAR_HEIGHT / most;
            below += orders;
            let top = below * BAR_HEIGHT / most;
            Part { state, colour, orders, top, height: top - bottom }
        });
        parts.collect()
    }
}

/// Draws the hours up to now.
pub(super) fn orders_by_hour(hours: &[Value], now: DateTime<Utc>) -> Markup {
    let bars = bars(hours, now);
    let most = bars.iter().map(Bar::orders).max().unwrap_or_default().max(1);
    let made: i64 = bars.iter().map(Bar::orders).sum();
    let orders = counted(made, "order", "orders");
    let label = format!("{orders} in 24 hours, at most {most} in an hour");
    let width = HOURS * HOUR_WIDTH;
    html! {
        svg.chart viewBox={ "0 0 " (width) " " (HEIGHT) } role="img" aria-label=(label) {
            text x="0" y="12" { (most) }
            @for (index, bar) in (0..).zip(&bars) {
                @let x = index * HOUR_WIDTH;
                @for part in bar.parts(most) {
                    rect class=[part.colour] x=(x) y=(BOTTOM - part.top)
                        width=(BAR_WIDTH) height=(part.height) {
                        title {
                            (bar.hour.format("%H:00 UTC")) ": " (part.orders) " " (part.state)
                        }
                    }
                }
                @if index % LABEL_HOURS == 0 {
                    text x=(x) y=(HEIGHT - 8) { (bar.hour.format("%H:00")) }
                }
            }
        }
        (key(&bars))
        p.hint { "A bar an hour, in UTC, of the orders that were made in it by their state now." }
        @if made > 0 { (dialog("As a table", &as_table(&bars))) }
    }
}

/// The states with their colours and numbers.
fn key(bars: &[Bar]) -> Markup {
    let sum = |state: usize| bars.iter().filter_map(|bar| bar.counts.get(state)).sum::<i64>();
    html! {
        p.row {
            @for (index, (state, _, colour)) in STATES.into_iter().enumerate() {
                span {
                    svg.key viewBox="0 0 12 12" aria-hidden="true" {
                        rect class=[colour] width="12" height="12" {}
                    }
                    " " (state) " " (sum(index))
                }
            }
        }
    }
}

/// The hours in which orders were made.
fn as_table(bars: &[Bar]) -> Markup {
    let states = STATES.into_iter().map(|(state, ..)| Column::Amount(state));
    let columns: Vec<_> = iter::once(Column::Text("Hour")).chain(states).collect();
    let rows = bars.iter().filter(|bar| bar.orders() > 0).map(|bar| {
        let counts = bar.counts.into_iter().map(|orders| html! { (orders) });
        iter::once(time(bar.hour)).chain(counts).collect::<Vec<_>>()
    });
    table("Orders by state and hour", &columns, &rows.collect::<Vec<_>>())
}

/// A bar for every hour, oldest first; hours without orders too.
fn bars(hours: &[Value], now: DateTime<Utc>) -> Vec<Bar> {
    let this_hour = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
    let bars = (0..HOURS).rev().map(|ago| {
        let hour = this_hour - TimeDelta::hours(ago);
        let is_it = |found: &&Value| text(found, "/hour").parse::<DateTime<Utc>>() == Ok(hour);
        let found = hours.iter().find(is_it);
        let count = |member: &str| found.and_then(|found| found[member].as_i64());
        let counts = STATES.map(|(_, member, _)| count(member).unwrap_or_default());
        Bar { hour, counts }
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
        let hours = [json!({"hour": "2026-03-02T11:00:00Z", "orders": 12, "completed": 9,
            "pending": 2, "blocked": 1})];
        let bars = bars(&hours, now);
        assert_eq!(
            (bars.len(), bars[0].hour.to_rfc3339()),
            (24, "2026-03-01T13:00:00+00:00".into())
        );
        assert_eq!((bars[22].counts, bars[23].orders()), ([9, 0, 2, 1, 0, 0], 0));
        let parts = bars[22].parts(12).into_iter().map(|part| (part.state, part.top, part.height));
        let wanted = [("completed", 90, 90), ("pending", 110, 20), ("blocked", 120, 10)];
        assert_eq!(parts.collect::<Vec<_>>(), wanted);
        let drawn = orders_by_hour(&hours, now).into_string();
        assert!(drawn.contains("12 orders in 24 hours"), "{drawn}");
        assert_eq!(drawn.matches("<title>").count(), 3);
        assert!(drawn.contains("11:00 UTC: 2 pending"), "{drawn}");
        assert!(orders_by_hour(&[], now).into_string().contains("0 orders"));
    }
}
