//! Path j: rates that edges share through Valkey, against rates that each counts alone.

use rampart_tests::valkey::Valkey;

use super::catalogue::cpu_at_pace;
use super::{CATALOGUE, Run};
use crate::comparison::{Better, Combine, Comparison, Row};
use crate::load_client::request;
use crate::processes::pin;
use crate::side::{Cores, Side};

const SHARED: Row = Row {
    path: "j",
    what: "catalogue with shared rates",
    peer: "a",
    unit: "µs of CPU more",
    better: Better::Lower,
    combine: Combine::Difference,
    reach: 3.0,
    aim: 1.5,
    left_out: false,
    rounds_max: usize::MAX,
};

/// The rows.
pub(super) const ROWS: [Row; 1] = [SHARED];

/// Measures them: the same requests at the same pace, at two edges over one database. The server is on
/// the load's core; its own CPU time is not the edge's.
pub(super) fn compare(run: &mut Run<'_>, side: &Side<'_>) {
    if !run.wants(&ROWS) {
        return;
    }
    let server = side.environment.runtime.block_on(Valkey::start(&[]));
    pin(server.id(), 1);
    let sharing = Side::start_with(side.environment, side.database, Cores::First, |setup| {
        setup.set("ratelimit.redis_url", server.url());
    });
    let read = || request(&format!("GET {CATALOGUE}"), &[&side.plain], "");
    run.compare(Comparison {
        row: SHARED,
        ours: Box::new(cpu_at_pace(sharing.process(), sharing.address(), read())),
        peer: Box::new(cpu_at_pace(side.process(), side.address(), read())),
    });
    let metrics = sharing.metrics();
    assert!(metrics.contains("rampart_rates_shared 1\n"), "rates were not shared");
}
