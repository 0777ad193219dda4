//! Answers that are lost after Postgres has committed, before the edge knows: the order exists,
//! and whoever asks again is told its number.

use std::time::Duration;

use rampart_tests::campaign::{Report, Scale};
use rampart_tests::deadline::{SOON, until};

use crate::fleet::Fleet;
use rampart_tests::journal::Fault;

/// Confirms between two of them, in the full and the short form.
const APART: usize = 400;
const SHORT_APART: usize = 50;

/// The connection is cut in the place of the answer.
pub(crate) async fn answers_lost(scale: Scale) -> Report {
    let fleet = Fleet::start(scale).await;
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    let apart = if scale.is_exact() { APART } else { SHORT_APART };
    let link = &fleet.postgres.link;
    for _ in 0..scale.of(3, 50) {
        load.reach(load.acknowledged() + apart).await;
        link.lose_commits(1);
        until("a commit's answer is lost", SOON, async || {
            (link.commits_lost() > fault.injected).then_some(())
        })
        .await;
        fault.injected = link.commits_lost();
        fault.recovery = fault.recovery.max(fleet.recovery(&load).await);
    }
    load.finish().await.reconcile(&fleet.pool().await, &fault).await
}
