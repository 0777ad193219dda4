//! `rampart bench`: what a running edge holds, as a test client sees it from the machine at hand.
//!
//! A load is closed: each connection asks again once it has its answer. Connections are doubled until
//! the answers take too long, or as many are open as were asked for; what a call holds is the highest
//! rate before.

use std::iter::successors;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures::future::join_all;
use rampart_core::platform::clock::Clock;
use reqwest::Client;
use serde_json::{Value, json};

use super::table::Format;
use super::{Run, StartupError, read_text};
use crate::admin_client::http_client;
use crate::demo::{RETURN_URL, WALLET};
use crate::partner_client::PartnerClient;
use crate::server;
use crate::startup_error::Context as _;

/// Longest wait for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
const COLUMNS: &str = "\
    CALL call, PER SECOND perSecond, CONNECTIONS connections, P50 (µs) p50Micros, \
    P99 (µs) p99Micros";

/// Measure how many reads of prices, quotes and purchases a running edge holds.
///
/// It asks as a test client: its `rateLimits` and `ratelimit.address` of the edge must be above the
/// load, which the defaults are not. The load takes processor time too: for the edge's own figures,
/// run it on another machine.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// URL at which partners reach the edge.
    #[arg(long, default_value = "https://127.0.0.1:8443")]
    url: String,
    /// User name of a test client, whose orders need no user.
    #[arg(long)]
    username: String,
    /// File with its password.
    #[arg(long, value_name = "FILE")]
    password: PathBuf,
    /// PEM file with certificates that are trusted besides the system's.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Seconds for each number of connections.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Most connections at once.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1024))]
    connections: u64,
    /// Time in milliseconds within which 99 of 100 answers must come.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=30_000))]
    p99_ms: u64,
    #[command(flatten)]
    format: Format,
}

impl Run for Bench {
    fn run(self) -> Result<(), StartupError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut calls = Vec::new();
        let outcome = server::runtime(threads)?.block_on(self.measure(&mut calls));
        // What was measured before a failure counts, too.
        if calls.is_empty() {
            return outcome;
        }
        let held = json!({"p99MaxMillis": self.p99_ms, "calls": calls});
        outcome.and(self.format.print(&held, &held["calls"], COLUMNS))
    }
}

/// A client whose token ends.
struct Session {
    client: Arc<PartnerClient>,
    /// Monotonic time of the token's end, in nanoseconds.
    ends_ns: u64,
}

impl Bench {
    /// Measures each call, and keeps the rows of those that it came to.
    async fn measure(&self, calls: &mut Vec<Value>) -> Result<(), StartupError> {
        let clock = Clock::system();
        let mut session = self.sign_in(&clock).await?;
        for call in Call::ALL {
            let mut held = Value::Null;
            let outcome = self.double(&clock, &mut session, call, &mut held).await;
            if !held.is_null() {
                calls.push(held);
            }
            outcome?;
        }
        Ok(())
    }

    /// Doubles the connections of a call until the answers take too long; `held` becomes the row with
    /// the highest rate.
    async fn double(
        &self,
        clock: &Clock,
        session: &mut Session,
        call: Call,
        held: &mut Value,
    ) -> Result<(), StartupError> {
        // From the start of a load to that of its last request.
        let load_max_ns = nanos(Duration::from_secs(self.seconds) + ANSWER_MAX);
        for connections in steps(self.connections) {
            // Sign-ins are few by `ratelimit.credentials`: a token is used as long as it lasts.
            if session.ends_ns < clock.monotonic_ns().saturating_add(load_max_ns) {
                *session = self.sign_in(clock).await?;
            }
            let load = self.load(&session.client, call, connections).await?;
            if load.percentile(99) > self.p99_ms * 1_000 {
                break;
            }
            let row = load.row(call, connections, self.seconds);
            if row["perSecond"].as_u64() > held["perSecond"].as_u64() {
                *held = row;
            }
        }
        if held.is_null() {
            let name = call.name();
            let sentence = format!("{name}: p99 is above {} ms for one connection", self.p99_ms);
            return Err(StartupError::from(sentence));
        }
        Ok(())
    }

    /// Signs in.
    ///
    /// # Errors
    /// When the edge refuses it, it is no test client, or its token ends before a load does.
    async fn sign_in(&self, clock: &Clock) -> Result<Session, StartupError> {
        let asked_ns = clock.monotonic_ns();
        let password = read_text(&self.password)?;
        let http = Client::builder().timeout(ANSWER_MAX).http1_only();
        let http = http_client(http, self.ca.as_deref())?;
        let base = self.url.trim_end_matches('/').to_owned();
        let username = &self.username;
        let client = PartnerClient::authenticate(http, base, username, password.trim()).await?;
        if client.get("/api/v2/client/info").await?["mode"] != "test" {
            let sentence =
                format!("{username} is no test client: a purchase of a live one is real");
            return Err(StartupError::from(sentence));
        }
        let lifetime = client.token_lifetime().ok_or("the token does not say when it ends")?;
        if lifetime <= Duration::from_secs(self.seconds) {
            let lifetime = lifetime.as_secs();
            let sentence =
                format!("a token lives {lifetime} seconds on this edge: take fewer `--seconds`");
            return Err(StartupError::from(sentence));
        }
        let ends_ns = asked_ns.saturating_add(nanos(lifetime));
        Ok(Session { client: Arc::new(client), ends_ns })
    }

    /// Asks over so many connections until the time is over.
    async fn load(
        &self,
        client: &Arc<PartnerClient>,
        call: Call,
        connections: u64,
    ) -> Result<Load, StartupError> {
        let clock = Clock::system();
        let load_ns = nanos(Duration::from_secs(self.seconds));
        let asking = (0..connections).map(|_| {
            let (client, clock) = (Arc::clone(client), clock.clone());
            tokio::spawn(async move {
                let mut micros = Vec::new();
                while clock.monotonic_ns() < load_ns {
                    let began = clock.monotonic_ns();
                    call.ask(&client).await?;
                    micros.push((clock.monotonic_ns() - began) / 1_000);
                }
                Ok(micros)
            })
        });
        let mut all = Vec::new();
        for asked in join_all(asking).await {
            let asked: Result<Vec<u64>, StartupError> = asked.context("a connection failed")?;
            all.extend(asked.context(call.name())?);
        }
        all.sort_unstable();
        Ok(Load { micros: all })
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Numbers of connections: each twice the one before, and at last as many as were asked for.
fn steps(most: u64) -> impl Iterator<Item = u64> {
    successors(Some(1), move |connections: &u64| {
        (*connections < most).then(|| most.min(connections * 2))
    })
}

/// A kind of request.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// The prices of every pair: answered from memory.
    Prices,
    /// A quote.
    Quote,
    /// A quote and its order: one commit of Postgres.
    Purchase,
}

impl Call {
    const ALL: [Self; 3] = [Self::Prices, Self::Quote, Self::Purchase];

    const fn name(self) -> &'static str {
        match self {
            Self::Prices => "prices",
            Self::Quote => "quote",
            Self::Purchase => "purchase",
        }
    }

    async fn ask(self, client: &PartnerClient) -> Result<(), StartupError> {
        match self {
            Self::Prices => drop(client.get("/api/v1/prices").await?),
            Self::Quote => drop(quote(client).await?),
            Self::Purchase => {
                let quote = quote(client).await?;
                let body = json!({"quote": quote["quote"], "walletAddress": WALLET,
                    "returnUrl": RETURN_URL});
                client.post("/api/v1/buy/confirm", &body).await?;
            }
        }
        Ok(())
    }
}

async fn quote(client: &PartnerClient) -> Result<Value, StartupError> {
    let body = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    client.post("/api/v1/buy/quote", &body).await
}

/// The times of a load's answers.
struct Load {
    /// Sorted.
    micros: Vec<u64>,
}

impl Load {
    /// The time within which so many of 100 answers came, in microseconds.
    fn percentile(&self, percent: usize) -> u64 {
        let place = (self.micros.len() * percent).div_ceil(100);
        place.checked_sub(1).map_or(0, |place| self.micros[place])
    }

    fn row(&self, call: Call, connections: u64, seconds: u64) -> Value {
        let rate = u64::try_from(self.micros.len()).unwrap_or(u64::MAX) / seconds;
        json!({
            "call": call.name(),
            "connections": connections,
            "p50Micros": self.percentile(50),
            "p99Micros": self.percentile(99),
            "perSecond": rate,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_load_has_as_many_connections_as_were_asked_for() {
        assert_eq!(steps(1).collect::<Vec<_>>(), [1]);
        assert_eq!(steps(8).collect::<Vec<_>>(), [1, 2, 4, 8]);
        assert_eq!(steps(100).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 64, 100]);
    }

    #[test]
    fn a_percentile_is_a_time_that_was_seen() {
        let load = Load { micros: (1..=200).collect() };
        assert_eq!((load.percentile(50), load.percentile(99)), (100, 198));
        assert_eq!(Load { micros: vec![7] }.percentile(99), 7);
        assert_eq!(Load { micros: Vec::new() }.percentile(99), 0);
        assert_eq!(load.row(Call::Quote, 4, 2)["perSecond"], 100);
    }
}
