//! Path k: what order reads and confirms cost, and how many there are, over several edges on one
//! Postgres. All edges share this machine's cores: the rates tell what edges cost each other, not what
//! another machine would add.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;

use super::Run;
use super::confirms::{self, Buyers, confirms};
use crate::comparison::{Better, Combine, Comparison, Measure, Row};
use crate::environment::{Database, Environment, FIRST_ORDER};
use crate::load_client::{each, request};
use crate::side::{Cores, Side, cpu_per_answer};

/// Edges of the largest row.
const EDGES: usize = 4;
/// Reads and confirms of a round, for each second of its time.
const READS: usize = 10_000;
const CONFIRMS: usize = 2_000;
/// Distance of the order of one read from that of the next.
const READ_STRIDE: u64 = 7_919;

const READ_TWO: Row = Row {
    path: "k",
    what: "order read over 2 edges, scale",
    peer: "over one",
    unit: "rate",
    better: Better::Higher,
    combine: Combine::Ratio,
    reach: 0.8,
    aim: 1.0,
    left_out: true,
    rounds_max: 5,
};
const READ_FOUR: Row = Row { what: "order read over 4 edges, scale", ..READ_TWO };
const READ_COST: Row = Row {
    unit: "CPU per request, Postgres included",
    better: Better::Lower,
    reach: 1.2,
    ..READ_FOUR
};
const CONFIRM_TWO: Row = Row { what: "confirm of guests over 2 edges, scale", ..READ_TWO };
const CONFIRM_FOUR: Row = Row { what: "confirm of guests over 4 edges, scale", ..READ_TWO };
const CONFIRM_COST: Row = Row { what: CONFIRM_FOUR.what, ..READ_COST };

/// The rows.
pub(super) const ROWS: [Row; 6] =
    [READ_TWO, READ_FOUR, READ_COST, CONFIRM_TWO, CONFIRM_FOUR, CONFIRM_COST];

/// Requests for an edge, about so many.
type Requests = fn(&Side<'_>, usize) -> Vec<Bytes>;

/// Measures them.
pub(super) fn compare(run: &mut Run<'_>, environment: &Environment, database: &Database) {
    if !run.wants(&ROWS) {
        return;
    }
    let edges: Vec<_> =
        (0..EDGES).map(|_| Side::start(environment, database, Cores::Any)).collect();
    // Until there have been some, Postgres plans for empty tables.
    confirms::first_rate(&edges[0], Buyers::guests(&edges[0]));
    for (row, count, make, a_second) in [
        (READ_TWO, 2, reads as Requests, READS),
        (READ_FOUR, EDGES, reads, READS),
        (CONFIRM_TWO, 2, guests, CONFIRMS),
        (CONFIRM_FOUR, EDGES, guests, CONFIRMS),
    ] {
        let rate = |edges| rate(edges, make, a_second);
        run.compare(Comparison { row, ours: rate(&edges[..count]), peer: rate(&edges[..1]) });
    }
    for (row, make, a_second) in
        [(READ_COST, reads as Requests, READS), (CONFIRM_COST, guests, CONFIRMS)]
    {
        let cost = |edges| cost(edges, make, a_second);
        run.compare(Comparison { row, ours: cost(&edges[..]), peer: cost(&edges[..1]) });
    }
    confirms::keep_pending(&edges[0]);
}

/// Answers a second of all edges together.
fn rate<'a>(edges: &'a [Side<'a>], make: Requests, a_second: usize) -> Measure<'a> {
    Box::new(move |time| {
        let (answers, seconds) = answered(edges, made(edges, make, a_second, time));
        answers / seconds
    })
}

/// CPU time of all edges and of Postgres for each answer.
fn cost<'a>(edges: &'a [Side<'a>], make: Requests, a_second: usize) -> Measure<'a> {
    Box::new(move |time| {
        let requests = made(edges, make, a_second, time);
        let processes = edges.iter().map(Side::process);
        let processes: Vec<_> = processes.chain([edges[0].environment.postgres()]).collect();
        cpu_per_answer(&processes, time, |_| answered(edges, requests).0)
    })
}

/// The requests of a round, each edge's part of them.
fn made(edges: &[Side<'_>], make: Requests, a_second: usize, time: Duration) -> Vec<Vec<Bytes>> {
    let count = a_second * usize::try_from(time.as_secs().max(1)).unwrap() / edges.len();
    edges.iter().map(|side| make(side, count)).collect()
}

/// Sends every edge its requests, from so many clients in all as one edge has. The answers, and the
/// seconds of the slowest edge.
fn answered(edges: &[Side<'_>], requests: Vec<Vec<Bytes>>) -> (f64, f64) {
    let clients = confirms::CLIENTS / edges.len();
    let asking =
        edges.iter().zip(requests).map(|(side, requests)| each(side.address(), clients, requests));
    let runtime = &edges[0].environment.runtime;
    let answers = runtime.block_on(async { join_all(asking.collect::<Vec<_>>()).await });
    answers.into_iter().fold((0.0, 0.0_f64), |(count, slowest), (answers, seconds)| {
        let answered = f64::from(u32::try_from(answers.len()).unwrap());
        answers.into_iter().for_each(|answer| drop(answer.ok()));
        (count + answered, slowest.max(seconds))
    })
}

fn reads(side: &Side<'_>, count: usize) -> Vec<Bytes> {
    let orders = side.database.size.orders;
    let numbers = (0..).map(|n: u64| FIRST_ORDER + n * READ_STRIDE % orders).take(count);
    let read = |number| format!("GET /api/v2/buy/orders/{number}");
    numbers.map(|number| request(&read(number), &[&side.token], "")).collect()
}

fn guests(side: &Side<'_>, count: usize) -> Vec<Bytes> {
    confirms(side, Buyers::guests(side), count)
}
