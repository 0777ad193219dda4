//! Paths f and g: what a connection costs before and between its requests.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use super::{CATALOGUE, Run};
use crate::comparison::{Better, Combine, Comparison, Row};
use crate::environment::Environment;
use crate::load_client::{handshakes, hold, request};
use crate::peers;
use crate::processes::memory_of;
use crate::side::{Cores, Side, cpu_per_answer};

/// Connections that are opened at a time.
const OPENING: usize = 16;
/// Connections that stay open.
const IDLE: usize = 4_000;

const HANDSHAKE: Row = Row {
    path: "f",
    what: "full TLS handshake",
    peer: "nginx",
    unit: "CPU per connection",
    better: Better::Lower,
    combine: Combine::Ratio,
    reach: 0.7,
    aim: 0.5,
    left_out: false,
    rounds_max: usize::MAX,
};
const MEMORY: Row = Row {
    path: "g",
    what: "idle TLS connection",
    unit: "memory per connection",
    reach: 1.5,
    aim: 1.0,
    ..HANDSHAKE
};

/// The rows.
pub(super) const ROWS: [Row; 2] = [HANDSHAKE, MEMORY];

/// Measures them.
pub(super) fn compare(run: &mut Run<'_>, side: &Side<'_>) {
    if !run.wants(&ROWS) {
        return;
    }
    let environment = side.environment;
    let body = side.body(CATALOGUE);
    let ours = request(&format!("GET {CATALOGUE}"), &[&side.plain], "");
    let theirs = request("GET /", &[], "");
    let closing = |line: &str, headers: &[&str]| {
        request(line, &[headers, &["connection: close"]].concat(), "")
    };
    let ours_closing = closing(&format!("GET {CATALOGUE}"), &[&side.plain]);
    let theirs_closing = closing("GET /", &[]);
    let (nginx, _) = peers::nginx(environment, &body);
    run.compare(Comparison {
        row: HANDSHAKE,
        ours: Box::new(|time| {
            opening(environment, side.process(), side.address(), &ours_closing, time)
        }),
        peer: Box::new(|time| {
            opening(environment, nginx.process(), nginx.address, &theirs_closing, time)
        }),
    });
    // Fresh processes: memory that was freed before would hide what a connection takes.
    run.compare(Comparison {
        row: MEMORY,
        ours: Box::new(|_| {
            let fresh = Side::start(environment, side.database, Cores::First);
            idle(environment, fresh.process(), fresh.address(), &ours)
        }),
        peer: Box::new(|_| {
            let (fresh, _) = peers::nginx(environment, &body);
            idle(environment, fresh.process(), fresh.address, &theirs)
        }),
    });
}

/// CPU of a process for each connection, from the handshake to the end of one request.
pub(super) fn opening(
    environment: &Environment,
    process: u32,
    address: SocketAddr,
    request: &Bytes,
    time: Duration,
) -> f64 {
    let opening = |time| handshakes(address, OPENING, request.clone(), time);
    cpu_per_answer(&[process], time, |time| environment.runtime.block_on(opening(time)))
}

/// Bytes that each of many idle connections takes.
pub(super) fn idle(
    environment: &Environment,
    process: u32,
    address: SocketAddr,
    request: &Bytes,
) -> f64 {
    // What the first request takes is not the connections'.
    drop(environment.runtime.block_on(hold(address, 1, request)));
    let before = memory_of(process);
    let open = environment.runtime.block_on(hold(address, IDLE, request));
    let taken = memory_of(process).saturating_sub(before);
    let (taken, count) = (u32::try_from(taken).unwrap(), u32::try_from(open.len()).unwrap());
    f64::from(taken) / f64::from(count)
}
