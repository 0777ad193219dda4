//! Processes that are killed in the middle of their work: edges, Postgres.

use std::time::Duration;

use rampart_tests::campaign::{Report, Scale};

use crate::fleet::Fleet;
use rampart_tests::journal::Fault;

/// Confirms between two kills of an edge, and of Postgres, in the full form.
const EDGE_APART: usize = 1_000;
const POSTGRES_APART: usize = 1_500;
/// Confirms between two kills in the short form.
const SHORT_APART: usize = 100;
/// Longest time from the start of Postgres to the next acknowledgement.
const RECOVERY_MAX: Duration = Duration::from_secs(5);

/// Confirms between two faults: around `full`, at random.
fn apart(fleet: &Fleet, scale: Scale, full: usize) -> usize {
    let usual = if scale.is_exact() { full } else { SHORT_APART };
    usual / 2 + fleet.random(usual) + 1
}

/// An edge is killed, and another one takes its place.
pub(crate) async fn edges(scale: Scale) -> Report {
    let mut fleet = Fleet::start(scale).await;
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    for kill in 0..scale.of(2, 50) {
        load.reach(load.acknowledged() + apart(&fleet, scale, EDGE_APART)).await;
        fleet.kill_edge(kill % fleet.edges.len()).await;
        fault.injected += 1;
        fault.recovery = fault.recovery.max(fleet.recovery(&load).await);
    }
    load.finish().await.reconcile(&fleet.pool().await, &fault).await
}

/// Every process of Postgres is killed, and it starts again over the same files.
pub(crate) async fn postgres(scale: Scale) -> Report {
    let fleet = Fleet::start(scale).await;
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    for _ in 0..scale.of(2, 20) {
        load.reach(load.acknowledged() + apart(&fleet, scale, POSTGRES_APART)).await;
        fleet.postgres.kill();
        fleet.postgres.restart().await;
        fault.injected += 1;
        fault.recovery = fault.recovery.max(fleet.recovery(&load).await);
    }
    let mut report = load.finish().await.reconcile(&fleet.pool().await, &fault).await;
    report.require(!scale.is_exact() || fault.recovery <= RECOVERY_MAX, || {
        format!("the next order came {} ms after Postgres", fault.recovery.as_millis())
    });
    report
}
