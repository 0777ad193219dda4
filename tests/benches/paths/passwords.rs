//! Path e: logging in, which is a password hash and little else, and what it leaves to others.

use std::time::Duration;

use argon2::{Algorithm, Argon2, Params, Version};
use bytes::Bytes;
use rampart_core::platform::clock::Clock;
use serde_json::json;

use super::Run;
use super::reader::Reader;
use crate::comparison::{Better, Combine, Comparison, Row};
use crate::load_client::{again, request};
use crate::side::Side;

/// Clients that log in at once: enough that a hash is always waiting.
const CLIENTS: usize = 8;

const RATE: Row = Row {
    path: "e",
    what: "authenticate",
    peer: "a loop of plain argon2id on the same cores",
    unit: "rate",
    better: Better::Higher,
    combine: Combine::Ratio,
    reach: 1.0,
    aim: 1.15,
    left_out: false,
    rounds_max: usize::MAX,
};
const BESIDE: Row = Row {
    what: "catalogue while logins saturate",
    peer: "catalogue alone",
    unit: "p99 latency at 1,000 requests a second",
    better: Better::Lower,
    reach: 1.25,
    aim: 1.1,
    ..RATE
};

/// The rows.
pub(super) const ROWS: [Row; 2] = [RATE, BESIDE];

/// Measures them.
pub(super) fn compare(run: &mut Run<'_>, side: &Side<'_>) {
    let secret = |name: &str| side.database.plain[name].clone();
    let body = json!({"username": secret("username"), "password": secret("password")});
    let login = request("POST /api/v1/authenticate", &[], &body.to_string());
    let runtime = &side.environment.runtime;
    run.compare(Comparison {
        row: RATE,
        ours: Box::new(|time| {
            runtime.block_on(again(side.address(), CLIENTS, login.clone(), time))
        }),
        peer: Box::new(plain_hashes),
    });
    let reader = Reader::of(side);
    run.compare(Comparison {
        row: BESIDE,
        ours: Box::new(|time| {
            reader.p99(time, |time| again(side.address(), CLIENTS, login.clone(), time))
        }),
        peer: Box::new(|time| reader.p99(time, async |_| ())),
    });
}

/// Hashes a second with the parameters of Rampart, a thread a core, each in fresh memory.
fn plain_hashes(time: Duration) -> f64 {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (clock, password) = (Clock::system(), Bytes::from_static(b"correct horse"));
    let began = clock.monotonic_ns();
    let end = began + u64::try_from(time.as_nanos()).unwrap();
    let hashes: u32 = std::thread::scope(|scope| {
        let hash = || {
            let params = Params::new(19_456, 2, 1, Some(32)).unwrap();
            let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
            let mut hashes = 0;
            while clock.monotonic_ns() < end {
                let mut output = [0; 32];
                argon2.hash_password_into(&password, b"salt of a partner", &mut output).unwrap();
                hashes += 1;
            }
            hashes
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(hash)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    f64::from(hashes) / Duration::from_nanos(clock.monotonic_ns() - began).as_secs_f64()
}
