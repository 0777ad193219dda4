//! Postgres is there and does not answer: its processes are stopped, or the network swallows everything,
//! or breaks it. Requests end in time, and what the edge knows is still told.

use std::time::Duration;

use nix::sys::signal::Signal;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::link::Weather;
use rampart_tests::neighbour::{Neighbour, Window};

use crate::fleet::Fleet;
use rampart_tests::journal::Fault;

/// Confirms before a hang.
const APART: usize = 100;
/// Length of a hang, in the short and the full form.
const SHORT_HANG: Duration = Duration::from_secs(4);
const HANG: Duration = Duration::from_secs(8);
/// The time within which 99 of 100 requests are answered, and every one.
const ANSWER_MAX: Duration = Duration::from_secs(2);
const WORST_MAX: Duration = Duration::from_secs(5);
/// The time within which 99 of 100 reads from memory are answered.
const CACHED_MAX: Duration = Duration::from_millis(250);
/// Longest time from the end of the hang to the next acknowledgement.
const RECOVERY_MAX: Duration = Duration::from_secs(5);
/// Figures of the short form, on a machine shared with other tests, are so many times these, but for
/// the time of confirms.
const SHORT_SLACK: u32 = 3;

/// Every process of Postgres is stopped.
pub(crate) async fn stopped(scale: Scale) -> Report {
    hang(scale, |fleet, hangs| {
        fleet.postgres.signal(if hangs { Signal::SIGSTOP } else { Signal::SIGCONT });
    })
    .await
}

/// Connections stay open and carry nothing.
pub(crate) async fn silent(scale: Scale) -> Report {
    under(scale, Weather::Silent).await
}

/// Connections stay open, and what they carry is no answer.
pub(crate) async fn garbled(scale: Scale) -> Report {
    under(scale, Weather::Garbled).await
}

async fn under(scale: Scale, weather: Weather) -> Report {
    hang(scale, |fleet, hangs| {
        fleet.postgres.link.set(if hangs { weather } else { Weather::Fair });
    })
    .await
}

async fn hang(scale: Scale, set: impl Fn(&Fleet, bool)) -> Report {
    let fleet = Fleet::impatient(scale).await;
    let reader = Neighbour::of_cached(&fleet.partner.at(fleet.edges[0].address));
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    let mut cached = Window::default();
    for _ in 0..scale.of(1, 5) {
        load.reach(load.acknowledged() + APART).await;
        set(&fleet, true);
        let hang = if scale.is_exact() { HANG } else { SHORT_HANG };
        let (said, window) = reader.ask_while(tokio::time::timeout(hang, says_so(&fleet))).await;
        cached.join(window);
        if said.is_ok() {
            cached.join(reader.ask_for(hang / 2).await);
        }
        set(&fleet, false);
        fault.injected += usize::from(said.is_ok());
        fault.recovery = fault.recovery.max(fleet.recovery(&load).await);
        is_ready(&fleet).await;
    }
    let slack = if scale.is_exact() { 1 } else { SHORT_SLACK };
    let mut journal = load.finish().await;
    let (p99, worst) = (journal.p99(), journal.worst());
    let mut report = journal.reconcile(&fleet.pool().await, &fault).await;
    for (what, time, most) in [
        // It has to hold on a busy machine as well.
        ("p99 of confirms", p99, ANSWER_MAX),
        ("the slowest confirm", worst, WORST_MAX * slack),
        ("p99 of reads from memory", cached.p99(), CACHED_MAX * slack),
        ("the next order after the hang", fault.recovery, RECOVERY_MAX * slack),
    ] {
        report.require(time <= most, || {
            format!("{what}: {} ms, at most {}", time.as_millis(), most.as_millis())
        });
    }
    report.require(cached.failed.is_empty(), || {
        format!("of {} reads from memory failed {:?}", cached.asked, cached.failed)
    });
    let lines = fleet.edges.iter().flat_map(|edge| edge.process.err());
    let panics: Vec<_> = lines.filter(|line| line.contains("panicked")).collect();
    report.require(panics.is_empty(), || format!("edges panicked: {panics:?}"));
    report
}

/// Waits until an edge says that it is not ready.
async fn says_so(fleet: &Fleet) {
    until("/readyz says no", SOON, async || {
        (fleet.edges[0].ops("/readyz").await.status() == 503).then_some(())
    })
    .await;
}

/// Waits until every edge says that it is ready.
async fn is_ready(fleet: &Fleet) {
    for edge in &fleet.edges {
        until("/readyz says yes", SOON, async || {
            (edge.ops("/readyz").await.status() == 200).then_some(())
        })
        .await;
    }
}
