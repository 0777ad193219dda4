//! Edges that are told to stop under load: what is in flight is answered, and the next one serves.

use std::time::Duration;

use nix::sys::signal::Signal;
use rampart_core::platform::clock::Clock;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::edge::Edge;

use crate::fleet::{Fleet, server};
use rampart_tests::journal::Fault;

/// Confirms between two stops, in the full and the short form.
const APART: usize = 300;
const SHORT_APART: usize = 50;
/// Time for which a stopping edge still accepts, in seconds.
const DELAY_SECONDS: &str = "1";
/// Longest stop: that time, and what is in flight, on a machine that other tests use too.
const STOP_MAX: Duration = Duration::from_secs(15);

/// An edge is replaced by another one on another address, as behind a balancer, and told to stop.
pub(crate) async fn drained(scale: Scale) -> Report {
    let mut fleet = Fleet::over(server(scale).await, 2, |setup| {
        setup.set("edge.shutdown_delay_seconds", DELAY_SECONDS);
    })
    .await;
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    let mut wrong = Vec::new();
    let apart = if scale.is_exact() { APART } else { SHORT_APART };
    for stop in 0..scale.of(2, 20) {
        load.reach(load.acknowledged() + apart).await;
        let place = stop % fleet.edges.len();
        let next = Edge::of(fleet.edges[place].setup()).await;
        let stopping = fleet.replaced(place, next);
        let clock = Clock::system();
        stopping.process.signal(Signal::SIGTERM);
        let status = stopping.process.ended().await;
        let took = Duration::from_nanos(clock.monotonic_ns());
        if status.code() != Some(0) || took > STOP_MAX {
            wrong.push(format!("a stop ended with {status} after {} ms", took.as_millis()));
        }
        fault.injected += 1;
        fault.recovery = fault.recovery.max(fleet.recovery(&load).await);
    }
    let journal = load.finish().await;
    let cut = journal.cut;
    let mut report = journal.reconcile(&fleet.pool().await, &fault).await;
    report.require(cut == 0, || format!("{cut} requests were cut"));
    report.wrong.extend(wrong);
    report
}
