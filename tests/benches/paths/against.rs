//! Rows of `--against`: this build beside another binary of Rampart, with the same work for both in
//! turns, each over a database of its own with the same contents.

use std::time::Duration;

use super::catalogue::{http1_cpu, http2_cpu};
use super::confirms::{self, Buyers};
use super::connections::{idle, opening};
use super::orders::reads;
use super::quotes::quotes;
use super::{CATALOGUE, Run};
use crate::comparison::{ANY, Better, Combine, Comparison, Row};
use crate::environment::{Database, Environment};
use crate::load_client::request;
use crate::side::{Cores, Side};

/// The other side of all these rows.
pub(crate) const PEER: &str = "the other binary";

/// Most by which a cost may exceed the other binary's, and a rate fall short of it.
const COST_MAX: f64 = 1.1;
const RATE_MIN: f64 = 0.9;
/// Confirms of a round, for each second of its time.
const CONFIRMS: usize = 2_000;

const READ: Row = Row {
    path: "a",
    what: "catalogue",
    peer: PEER,
    unit: "CPU per request, HTTP/1.1",
    better: Better::Lower,
    combine: Combine::Ratio,
    reach: ANY,
    aim: 1.0,
    left_out: false,
    rounds_max: usize::MAX,
};
const READ_HTTP2: Row = Row { unit: "CPU per request, HTTP/2", ..READ };
const QUOTE: Row = Row { path: "c", what: "quote", ..READ };
const HANDSHAKE: Row = Row {
    path: "f",
    what: "full TLS handshake",
    unit: "CPU per connection",
    reach: COST_MAX,
    ..READ
};
const MEMORY: Row = Row {
    path: "g",
    what: "idle TLS connection",
    unit: "memory per connection",
    reach: COST_MAX,
    ..READ
};
const ORDER: Row = Row {
    path: "b",
    what: "order read",
    unit: "rate, HTTP/1.1",
    better: Better::Higher,
    reach: RATE_MIN,
    ..READ
};
const CONFIRM: Row = Row { path: "d", what: "confirm, 64 clients", unit: "rate", ..ORDER };

/// The rows.
pub(super) const ROWS: [Row; 7] = [READ, READ_HTTP2, QUOTE, HANDSHAKE, MEMORY, ORDER, CONFIRM];

/// Measures them.
pub(super) fn compare(
    run: &mut Run<'_>,
    environment: &Environment,
    this: &Database,
    other: &Database,
) {
    if run.wants(&[READ, READ_HTTP2, QUOTE, HANDSHAKE, MEMORY]) {
        let sides = [this, other].map(|it| Side::start(environment, it, Cores::First));
        for (row, measure) in [
            (READ, read as Measurement),
            (READ_HTTP2, read_http2),
            (QUOTE, quote),
            (HANDSHAKE, handshake),
            (MEMORY, memory),
        ] {
            run.compare(both(row, &sides, measure));
        }
    }
    if run.wants(&[ORDER, CONFIRM]) {
        let sides = [this, other].map(|it| Side::start(environment, it, Cores::Any));
        run.compare(both(ORDER, &sides, order));
        for side in &sides {
            confirms::first_rate(side, Buyers::guests(side));
        }
        run.compare(both(CONFIRM, &sides, confirm));
    }
}

/// One side's figure, measured for about this time.
type Measurement = fn(&Side<'_>, Duration) -> f64;

/// The same measurement of both sides.
fn both<'a>(row: Row, [this, other]: &'a [Side<'a>; 2], measure: Measurement) -> Comparison<'a> {
    Comparison {
        row,
        ours: Box::new(move |time| measure(this, time)),
        peer: Box::new(move |time| measure(other, time)),
    }
}

fn read(side: &Side<'_>, time: Duration) -> f64 {
    http1_cpu(side, &side.get(CATALOGUE, &side.plain), time)
}

fn read_http2(side: &Side<'_>, time: Duration) -> f64 {
    http2_cpu(side, &side.get(CATALOGUE, &side.plain), time)
}

fn quote(side: &Side<'_>, time: Duration) -> f64 {
    http1_cpu(side, &quotes(side), time)
}

fn handshake(side: &Side<'_>, time: Duration) -> f64 {
    let line = format!("GET {CATALOGUE}");
    let asked = request(&line, &[&side.plain, "connection: close"], "");
    opening(side.environment, side.process(), side.address(), &asked, time)
}

/// Of a fresh process: memory that was freed before would hide what a connection takes.
fn memory(side: &Side<'_>, _: Duration) -> f64 {
    let fresh = Side::start(side.environment, side.database, Cores::First);
    let asked = request(&format!("GET {CATALOGUE}"), &[&fresh.plain], "");
    idle(fresh.environment, fresh.process(), fresh.address(), &asked)
}

fn order(side: &Side<'_>, time: Duration) -> f64 {
    let (answers, seconds) = reads(side).anywhere().http1(time);
    answers / seconds
}

fn confirm(side: &Side<'_>, time: Duration) -> f64 {
    let count = CONFIRMS * usize::try_from(time.as_secs().max(1)).unwrap();
    confirms::rate(side, Buyers::guests(side), count)
}
