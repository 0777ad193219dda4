//! New processes take over from old ones while confirms are under way: nobody notices.

use std::time::Duration;

use nix::sys::signal::Signal;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::edge::Edge;
use rampart_tests::neighbour::Neighbour;

use crate::fleet::{Fleet, server};
use rampart_tests::journal::Fault;

/// Confirms between two upgrades, in the full and the short form.
const APART: usize = 300;
const SHORT_APART: usize = 50;

pub(crate) async fn upgrades(scale: Scale) -> Report {
    let mut fleet = Fleet::over(server(scale).await, 1, |_| ()).await;
    let reader = Neighbour::of(&fleet.partner);
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    let apart = if scale.is_exact() { APART } else { SHORT_APART };
    let upgrading = async {
        for _ in 0..scale.of(2, 20) {
            load.reach(load.acknowledged() + apart).await;
            let mut setup = fleet.edges[0].setup();
            setup.clear_arguments().argument("--upgrade");
            let upgrading = Edge::of(setup);
            fleet.edges[0].process.signal(Signal::SIGQUIT);
            let next = upgrading.await;
            assert_eq!(fleet.edges[0].process.ended().await.code(), Some(0));
            fleet.replace(0, next);
            fault.injected += 1;
            fault.recovery = fault.recovery.max(fleet.recovery(&load).await);
        }
    };
    let ((), window) = reader.ask_while(upgrading).await;
    let mut report = load.finish().await.reconcile(&fleet.pool().await, &fault).await;
    report.require(window.failed.is_empty(), || {
        format!("of {} reads failed {:?}", window.asked, window.failed)
    });
    report
}
