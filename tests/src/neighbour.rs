//! A partner that behaves well while others do not: its requests come at a pace, whether or not
//! the answers do, from an address of its own; some of them over new connections. What it saw is
//! part of the verdict over what the others did.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::Method;
use rampart_core::platform::clock::Clock;
use tokio::time::{MissedTickBehavior, interval};

use crate::caller::{Caller, Protocol};

/// Pause between two of its requests: 100 a second.
const PACE: Duration = Duration::from_millis(10);
/// Of so many requests one comes over a new connection.
const ANEW_EVERY: usize = 20;
/// Paths that it reads in turn: those that are answered from memory, and one of Postgres.
const PATHS: [&str; 5] = [
    "/api/v1/prices",
    "/api/v2/prices",
    "/api/v1/system/currency-pairs",
    "/api/v2/buy/orders",
    "/api/v1/prices",
];

/// The address that it comes from.
pub const NEIGHBOUR: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// A well-behaved partner.
#[derive(Clone)]
pub struct Neighbour {
    kept: Caller,
    paths: &'static [&'static str],
}

/// Its observations over a while.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Requests it made.
    pub asked: usize,
    /// Answers that were not granted by status, and connections that failed by their error.
    pub failed: BTreeMap<String, usize>,
    /// Times of the requests, from their sending to their answers, in microseconds, sorted.
    micros: Vec<u64>,
}

/// The outcome of one request.
struct Seen {
    /// Its time in microseconds.
    micros: u64,
    /// The failure, if it was not granted.
    failure: Option<String>,
}

impl Window {
    /// The time that 99 of 100 answers took at most.
    pub fn p99(&self) -> Duration {
        let place = (self.micros.len() * 99).div_ceil(100);
        Duration::from_micros(place.checked_sub(1).map_or(0, |place| self.micros[place]))
    }

    /// Adds another window.
    pub fn join(&mut self, other: Self) {
        self.asked += other.asked;
        for (failure, count) in other.failed {
            *self.failed.entry(failure).or_default() += count;
        }
        self.micros.extend(other.micros);
        self.micros.sort_unstable();
    }
}

impl Neighbour {
    /// This partner as a neighbour.
    pub fn of(partner: &Caller) -> Self {
        Self { kept: partner.from(NEIGHBOUR).over(Protocol::Http1), paths: &PATHS }
    }

    /// One that asks for nothing but what is answered from memory.
    pub fn of_cached(partner: &Caller) -> Self {
        Self { paths: &PATHS[..3], ..Self::of(partner) }
    }

    /// Asks for this long.
    pub async fn ask_for(&self, time: Duration) -> Window {
        self.ask_while(tokio::time::timeout(time, std::future::pending::<()>())).await.1
    }

    /// Asks for as long as the future runs; its result, and the window.
    pub async fn ask_while<T>(&self, future: impl Future<Output = T>) -> (T, Window) {
        let clock = Clock::system();
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut window = Window::default();
        let mut asking = FuturesUnordered::new();
        let mut future = std::pin::pin!(future);
        let result = loop {
            tokio::select! {
                result = &mut future => break result,
                _ = pace.tick() => {
                    window.asked += 1;
                    asking.push(tokio::spawn(self.clone().ask(window.asked, clock.clone())));
                }
                Some(seen) = asking.next(), if !asking.is_empty() => window.note(seen.unwrap()),
            }
        };
        while let Some(seen) = asking.next().await {
            window.note(seen.unwrap());
        }
        window.micros.sort_unstable();
        (result, window)
    }

    /// One request.
    async fn ask(self, number: usize, clock: Clock) -> Seen {
        let anew = number.is_multiple_of(ANEW_EVERY);
        let caller = if anew { self.kept.over(Protocol::Http1) } else { self.kept };
        let path = self.paths[number % self.paths.len()];
        let began = clock.monotonic_ns();
        let answer = caller.request(Method::GET, path).try_send().await;
        let micros = (clock.monotonic_ns() - began) / 1_000;
        let failure = match answer {
            Ok(answer) if answer.status() == 200 => None,
            Ok(answer) => Some(format!("{} of {path}", answer.status())),
            Err(error) => Some(cause(&error)),
        };
        Seen { micros, failure }
    }
}

impl Window {
    fn note(&mut self, seen: Seen) {
        self.micros.push(seen.micros);
        if let Some(failure) = seen.failure {
            *self.failed.entry(failure).or_default() += 1;
        }
    }
}

/// The innermost cause of an error.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_answers_the_slowest_is_beyond_the_p99() {
        let window = Window { micros: (1..=100).collect(), ..Window::default() };
        assert_eq!(window.p99(), Duration::from_micros(99));
        assert_eq!(Window::default().p99(), Duration::ZERO);
    }
}
