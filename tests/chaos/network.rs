//! The network between edges and Postgres: connections that are cut, bytes that come late.

use std::time::Duration;

use rampart_tests::campaign::{Report, Scale};
use rampart_tests::link::Weather;

use crate::fleet::Fleet;
use rampart_tests::journal::Fault;

/// Confirms between two cuts, in the full and the short form.
const APART: usize = 400;
const SHORT_APART: usize = 50;
/// Delay of every packet, in each direction.
const LATE: Duration = Duration::from_millis(50);

/// Every connection is cut at once.
pub(crate) async fn cut(scale: Scale) -> Report {
    let fleet = Fleet::start(scale).await;
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    let apart = if scale.is_exact() { APART } else { SHORT_APART };
    for _ in 0..scale.of(3, 50) {
        load.reach(load.acknowledged() + apart).await;
        fleet.postgres.link.cut();
        fault.injected += 1;
        fault.recovery = fault.recovery.max(fleet.recovery(&load).await);
    }
    load.finish().await.reconcile(&fleet.pool().await, &fault).await
}

/// Every packet comes late for a while: answers are slower, and there is one for each request.
pub(crate) async fn slow(scale: Scale) -> Report {
    let fleet = Fleet::start(scale).await;
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    let apart = if scale.is_exact() { APART } else { SHORT_APART };
    for _ in 0..scale.of(1, 10) {
        load.reach(load.acknowledged() + apart).await;
        fleet.postgres.link.set(Weather::Slow(LATE));
        load.reach(load.acknowledged() + apart).await;
        fleet.postgres.link.set(Weather::Fair);
        fault.injected += 1;
        fault.recovery = fault.recovery.max(fleet.recovery(&load).await);
    }
    let journal = load.finish().await;
    let unanswered = journal.unanswered;
    let mut report = journal.reconcile(&fleet.pool().await, &fault).await;
    report.require(unanswered == 0, || format!("{unanswered} confirms have no answer"));
    report
}
