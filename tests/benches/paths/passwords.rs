//! Path e: logging in, which is a password hash and little else, and what it leaves to others.

use std::time::Duration;

use argon2::{Algorithm, Argon2, Params, Version};
use bytes::Bytes;
use rampart_core::clock::Clock;
use rampart_tests::rounds::quantile;
use serde_json::json;

use super::{CATALOGUE, Run};
use crate::comparison::{Better, Combine, Comparison, Row};
use crate::driver::{again, paced, request};
use crate::side::Side;

/// Clients that log in at once: enough that a hash is always waiting.
const CLIENTS: usize = 8;
/// Clients that read the catalogue meanwhile, and how often one of them does.
const READERS: usize = 8;
const PACE: Duration = Duration::from_millis(4);
/// Less than this and there is no p99 to speak of.
const READING_MIN: Duration = Duration::from_secs(2);

const RATE: Row = Row {
    path: "e",
    what: "authenticate",
    peer: "a loop of plain argon2id on the same cores",
    unit: "rate",
    better: Better::Higher,
    combine: Combine::Ratio,
    reach: 1.0,
    aim: 1.15,
    large: false,
};
const BESIDE: Row = Row {
    what: "catalogue while logins saturate",
    peer: "catalogue alone",
    unit: "p99 latency at 250 requests a second",
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
    let read = request(&format!("GET {CATALOGUE}"), &[&side.plain], "");
    let runtime = &side.ground.runtime;
    run.compare(Comparison {
        row: RATE,
        ours: Box::new(|time| {
            runtime.block_on(again(side.address(), CLIENTS, login.clone(), time))
        }),
        peer: Box::new(plain_hashes),
    });
    let reading = |time: Duration| {
        let time = time.max(READING_MIN);
        let reading = paced(side.address(), READERS, read.clone(), (PACE, time));
        let p99 = move |seconds: Vec<f64>| quantile(&seconds, 99, 100).expect("some were read");
        (reading, p99, time)
    };
    run.compare(Comparison {
        row: BESIDE,
        ours: Box::new(|time| {
            let (reading, p99, time) = reading(time);
            let logins = again(side.address(), CLIENTS, login.clone(), time);
            p99(runtime.block_on(async { tokio::join!(reading, logins).0 }))
        }),
        peer: Box::new(|time| {
            let (reading, p99, _) = reading(time);
            p99(runtime.block_on(reading))
        }),
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
