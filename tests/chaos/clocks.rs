//! Edges whose machines have a wrong clock: they say that they are not ready, and what they still do
//! is right by the database's.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use nix::sys::signal::Signal;
use rampart_core::platform::clock::Clock;
use rampart_tests::buyer::{confirm, order, order_of, quotes};
use rampart_tests::caller::Caller;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use sqlx::PgPool;

use crate::fleet::{Fleet, server};
use rampart_tests::journal::Fault;

/// The library that lies about the time, in a folder of [`LIBRARIES`] or in that itself.
const LIBRARY: &str = "faketime/libfaketime.so.1";
const LIBRARIES: &str = "/usr/lib";
/// Distances of the wrong clocks from the right time.
const WRONG: [&str; 2] = ["+3600", "-3600"];
/// Lifetime of quotes, in seconds, and a time after which one is over.
const QUOTE_SECONDS: &str = "10";
const QUOTE_OVER: Duration = Duration::from_secs(11);
/// Orders that wait for their payment.
const PENDING: usize = 10;
/// Confirms of the right edge meanwhile, in the short and the full form.
const SHORT_CONFIRMS: usize = 50;
const CONFIRMS: usize = 500;
/// Longest time in which an edge cancels what has expired.
const EXPIRY_MAX: Duration = Duration::from_secs(120);

pub(crate) async fn wrong(scale: Scale) -> Report {
    let library = library();
    let fleet = Fleet::over(server(scale).await, 1, |setup| {
        setup.set("lifetimes.quote_seconds", QUOTE_SECONDS);
    })
    .await;
    let db = fleet.pool().await;
    let other = fleet.edges[0].partner("other").await.authenticated().await;
    let over = quotes(&other, WRONG.len()).await;
    let quoted = Clock::system();
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    let mut edges = Vec::new();
    for distance in WRONG {
        let edge = behind(&fleet, &library, distance).await;
        let clock = Clock::system();
        says_so(&edge).await;
        fault.recovery = fault.recovery.max(Duration::from_nanos(clock.monotonic_ns()));
        fault.injected += 1;
        let most = if scale.is_exact() { CONFIRMS } else { SHORT_CONFIRMS };
        load.reach(load.acknowledged() + most).await;
        edges.push(edge);
    }
    let journal = load.finish().await;
    let judging = edges.iter().zip(&over);
    let judging = judging.map(|(edge, over)| quotes_are_judged(&other, edge, over, &quoted));
    let mut wrong = join_all(judging).await.concat();
    for edge in &edges {
        let orders = pending(&other).await;
        let others =
            || edges.iter().chain(&fleet.edges).filter(|other| other.address != edge.address);
        others().for_each(|other| other.process.signal(Signal::SIGSTOP));
        wrong.extend(orders_are_left(orders, &db).await);
        others().for_each(|other| other.process.signal(Signal::SIGCONT));
    }
    let mut report = journal.reconcile(&db, &fault).await;
    report.wrong.extend(wrong);
    report
}

/// The path of the library.
fn library() -> PathBuf {
    let folders = fs::read_dir(LIBRARIES).unwrap().map(|entry| entry.unwrap().path());
    let mut places = folders.chain([PathBuf::from(LIBRARIES)]).map(|folder| folder.join(LIBRARY));
    places.find(|path| path.exists()).expect("deploy/setup --test installs libfaketime")
}

/// An edge like the right one whose machine's clock is off by so many seconds.
async fn behind(fleet: &Fleet, library: &Path, distance: &str) -> Edge {
    let preload = format!("LD_PRELOAD={}", library.display());
    let time = format!("FAKETIME={distance}");
    let mut setup = fleet.edges[0].setup();
    setup.under(&["/usr/bin/env", &preload, &time, "FAKETIME_DONT_FAKE_MONOTONIC=1"]);
    Edge::of(setup).await
}

/// Waits until the edge says that its clock is why it is not ready.
async fn says_so(edge: &Edge) {
    until("/readyz names the clock", SOON, async || {
        let answer = edge.ops("/readyz").await;
        (answer.status() == 503 && answer.text().contains("clock")).then_some(())
    })
    .await;
}

/// Confirms quotes at the wrong edge: a fresh one, and one from before `quoted` once it is over. What
/// is wrong.
async fn quotes_are_judged(
    partner: &Caller,
    edge: &Edge,
    over: &str,
    quoted: &Clock,
) -> Vec<String> {
    let there = partner.at(edge.address);
    let fresh = quotes(partner, 1).await.remove(0);
    let mut wrong = Vec::new();
    let at_once = confirm(&there, &fresh).send().await;
    if !matches!(at_once.status(), 200 | 503) {
        wrong.push(format!("a fresh quote: {} {}", at_once.status(), at_once.text()));
    }
    until("a quote is over", SOON, async || {
        (quoted.monotonic_ns() > QUOTE_OVER.as_nanos().try_into().unwrap()).then_some(())
    })
    .await;
    let late = confirm(&there, over).send().await;
    if late.status() == 200 {
        wrong.push(format!("a quote that was over became order {}", order_of(&late)));
    }
    wrong
}

/// Orders that wait for their payment, just made.
async fn pending(partner: &Caller) -> Vec<i64> {
    let mut pending = Vec::new();
    // One by one: a quote is over soon, and the machine may be slow.
    for _ in 0..=PENDING {
        pending.push(i64::try_from(order_of(&order(partner).await)).unwrap());
    }
    pending
}

/// Orders that wait are left alone by the only edge that runs, which cancels one that has expired by
/// the database's clock. What is wrong.
async fn orders_are_left(mut pending: Vec<i64>, db: &PgPool) -> Vec<String> {
    let expired = pending.remove(0);
    let expire =
        "update buy_order set expires_at = now() - interval '1 second' where order_id = $1";
    sqlx::query(expire).bind(expired).execute(db).await.unwrap();
    until("what has expired is cancelled", EXPIRY_MAX, async || {
        let status = "select status from buy_order where order_id = $1";
        let status: String = sqlx::query_scalar(status).bind(expired).fetch_one(db).await.unwrap();
        (status == "cancelled").then_some(())
    })
    .await;
    let left = "select count(*) from buy_order where order_id = any($1) and status = 'pending'";
    let left: i64 = sqlx::query_scalar(left).bind(&pending).fetch_one(db).await.unwrap();
    let early = PENDING - usize::try_from(left).unwrap();
    if early == 0 { Vec::new() } else { vec![format!("{early} orders were cancelled early")] }
}
