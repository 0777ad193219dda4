//! An edge whose Postgres is away: every request is answered soon, what needs no database is served,
//! `/readyz` says why not, and everything is well soon after the return.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use http::Method;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rampart_core::platform::private_postgres::{Options, PrivatePostgres, Profile};
use rampart_tests::caller::Caller;
use rampart_tests::deadline::until;
use rampart_tests::edge::{Edge, Folder, Setup};
use rampart_tests::link::{Link, Weather};
use serde_json::Value;
use tokio::sync::watch;

/// Longest time of any answer.
const WORST: Duration = Duration::from_secs(5);
/// Longest time of ninety-nine answers of a hundred.
const MOST: Duration = Duration::from_secs(2);
/// Time until everything is well again.
const RECOVERY: Duration = Duration::from_secs(5);
/// Answers that each partner's client counts while Postgres is away.
const ANSWERS: usize = 100;
/// Clients at once: more than the pool has connections.
const CLIENTS: usize = 24;

/// A server of the test's own, which the test may harm.
struct Server {
    postgres: PrivatePostgres,
    _folder: Arc<Folder>,
}

impl Server {
    async fn start() -> Self {
        let folder = Arc::new(Folder::make());
        let state = folder.path().join("postgres");
        let start = move || {
            let options = Options { state, bin: programs(), profile: Profile::Ephemeral };
            PrivatePostgres::start(options).unwrap()
        };
        let postgres = tokio::task::spawn_blocking(start).await.unwrap();
        Self { postgres, _folder: folder }
    }

    /// Its address, and its URL at another one.
    fn at(&self, address: Option<SocketAddr>) -> (SocketAddr, String) {
        let url = self.postgres.tcp_url("postgres");
        let (head, tail) = url.rsplit_once('@').unwrap();
        let (known, database) = tail.split_once('/').unwrap();
        let known: SocketAddr = known.parse().unwrap();
        (known, format!("{head}@{}/{database}", address.unwrap_or(known)))
    }

    /// Stops or continues the server with all its processes.
    fn signal(&self, signal: Signal) {
        let file = self.postgres.home().join("cluster/postmaster.pid");
        let text = std::fs::read_to_string(file).unwrap();
        let postmaster: i32 = text.lines().next().unwrap().trim().parse().unwrap();
        kill(Pid::from_raw(postmaster), signal).unwrap();
        let children = format!("/proc/{postmaster}/task/{postmaster}/children");
        for child in std::fs::read_to_string(children).unwrap().split_whitespace() {
            // One that has ended meanwhile does no harm.
            let _ = kill(Pid::from_raw(child.parse().unwrap()), signal);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
fn programs() -> Option<PathBuf> {
    std::env::var_os("RAMPART_PG_BIN").map(Into::into)
}

/// An edge with the default timeouts.
async fn edge(url: &str) -> Edge {
    let mut setup = Setup::over(url);
    setup.set("database.migrate_on_start", "true");
    for key in ["connections_max", "acquire_timeout_ms", "statement_timeout_ms"] {
        setup.unset(&format!("database.{key}"));
    }
    Edge::of(setup).await
}

async fn readiness(edge: &Edge) -> (u16, Value) {
    let answer = edge.ops("/readyz").await;
    (answer.status(), answer.json())
}

/// Names of the checks of `/readyz` that fail.
fn failing(body: &Value) -> Vec<&str> {
    let checks = body["checks"].as_array().unwrap();
    let failing = checks.iter().filter(|check| check["ok"] == false);
    failing.map(|check| check["name"].as_str().unwrap()).collect()
}

/// Status of a read that needs the database.
async fn read(partner: &Caller) -> u16 {
    partner.get("/api/v2/events").await.status()
}

/// Sends until it is told to end; the times of all answers, of which none is a surprise.
async fn hammer(partner: Caller, ended: watch::Receiver<bool>) -> Vec<Duration> {
    let mut times = Vec::new();
    while !*ended.borrow() || times.len() < ANSWERS {
        let started = now();
        let status = read(&partner).await;
        times.push(now() - started);
        assert!([200, 503].contains(&status), "{status}");
    }
    times
}

#[expect(clippy::disallowed_methods, reason = "a test measures time")]
fn now() -> Instant {
    Instant::now()
}

/// Requests before, during and after an outage.
async fn survives(edge: &Edge, begin: impl FnOnce(), end: impl FnOnce()) {
    let partner = edge.partner("acme").await;
    assert_eq!(read(&partner).await, 200);
    let (end_hammering, ended) = watch::channel(false);
    begin();
    let clients = (0..CLIENTS).map(|_| tokio::spawn(hammer(partner.clone(), ended.clone())));
    let clients: Vec<_> = clients.collect();
    // Long enough for the snapshot to be too old.
    let reason = until("/readyz says why", WORST * 4, async || {
        let (status, body) = readiness(edge).await;
        assert_eq!(status == 200, failing(&body).is_empty());
        partner.get("/api/v2/prices").await.assert_status(200);
        let reasons = failing(&body).join(" ");
        (reasons.contains("database") && reasons.contains("snapshot")).then_some(reasons)
    })
    .await;
    assert!(!reason.contains("clock"), "{reason}");
    end_hammering.send_replace(true);
    let mut times = Vec::new();
    for client in join_all(clients).await {
        times.extend(client.unwrap());
    }
    times.sort();
    let (worst, most) = (times[times.len() - 1], times[times.len() * 99 / 100]);
    assert!(worst <= WORST && most <= MOST, "{} answers: {most:?}, {worst:?}", times.len());

    end();
    until("everything is well again", RECOVERY, async || {
        let (status, _) = readiness(edge).await;
        (status == 200 && read(&partner).await == 200).then_some(())
    })
    .await;
    for _ in 0..CLIENTS {
        assert_eq!(read(&partner).await, 200, "a connection from before is still used");
    }
    let body = serde_json::json!({"status": "active"});
    edge.admin(Method::PATCH, "/admin/v1/partners/acme", body).await.assert_status(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_hangs_costs_two_seconds_and_is_well_when_it_goes_on() {
    let server = Server::start().await;
    let edge = edge(&server.at(None).1).await;
    survives(&edge, || server.signal(Signal::SIGSTOP), || server.signal(Signal::SIGCONT)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_swallows_everything_is_noticed_and_left_behind() {
    let server = Server::start().await;
    let link = Link::to(server.at(None).0).await;
    let edge = edge(&server.at(Some(link.address())).1).await;
    survives(&edge, || link.set(Weather::BlackHole), || link.set(Weather::Fair)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_refuses_is_waited_for() {
    let server = Server::start().await;
    let link = Link::to(server.at(None).0).await;
    let edge = edge(&server.at(Some(link.address())).1).await;
    survives(&edge, || link.set(Weather::Refusing), || link.set(Weather::Fair)).await;
}
