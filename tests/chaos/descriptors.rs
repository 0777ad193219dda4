//! An edge that runs out of descriptors: connections from before are served, nothing that was
//! acknowledged is lost, and it goes on as soon as there are some again.

use std::time::Duration;

use futures::future::join_all;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::wire::Wire;
use tokio::time::timeout;

use crate::fleet::Fleet;
use rampart_tests::journal::Fault;

/// Confirms before the limit falls, and with it.
const APART: usize = 100;
/// Descriptors that are left when it does: some connections more.
const LEFT: usize = 4;
/// Connections that are tried beyond them.
const BEYOND: usize = 32;
/// Time in which a connection is open, or was refused.
const OPEN_MAX: Duration = Duration::from_secs(1);

/// The limit of open files falls to what an edge has open, while Postgres cuts its connections.
pub(crate) async fn exhausted(scale: Scale) -> Report {
    let fleet = Fleet::start(scale).await;
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    let mut wrong = Vec::new();
    for round in 0..scale.of(2, 20) {
        let edge = &fleet.edges[round % fleet.edges.len()];
        load.reach(load.acknowledged() + APART).await;
        let before = edge.process.open_files_max();
        edge.process.set_open_files_max(&(edge.process.open_files() + LEFT).to_string());
        let opening = (0..BEYOND).map(|_| timeout(OPEN_MAX, Wire::try_open(edge.address)));
        let kept: Vec<Wire> = join_all(opening).await.into_iter().flatten().flatten().collect();
        if kept.len() > 2 * LEFT {
            wrong.push(format!("{} connections with {LEFT} descriptors left", kept.len()));
        }
        // What needs new descriptors now fails for a while, and only that.
        fleet.postgres.link.cut();
        load.reach(load.acknowledged() + APART).await;
        drop(kept);
        edge.process.set_open_files_max(&before);
        fault.injected += 1;
        fault.recovery = fault.recovery.max(fleet.recovery(&load).await);
        until("the edge accepts again", SOON, async || {
            let accepted = Wire::try_open(edge.address).await.is_ok();
            (accepted && edge.ops("/readyz").await.status() == 200).then_some(())
        })
        .await;
        if edge.process.status().is_some() {
            wrong.push("an edge has ended".to_owned());
        }
    }
    let mut report = load.finish().await.reconcile(&fleet.pool().await, &fault).await;
    report.wrong.extend(wrong);
    report
}
