//! Path h: signed deliveries from the queue to a sink that answers at once.

use std::net::SocketAddr;

use rampart_core::platform::clock::Clock;
use rampart_tests::deadline::until;
use sqlx::AssertSqlSafe;
use std::time::Duration;

use super::{CATALOGUE, Run};
use crate::comparison::{Better, Combine, Comparison, Row};
use crate::generators::Target;
use crate::peers;
use crate::side::Side;

/// Deliveries of a round, half for each partner.
const DELIVERIES: u32 = 2_000;
/// Longest that they may take.
const ROUND_MAX: Duration = Duration::from_secs(60);

const DELIVER: Row = Row {
    path: "h",
    what: "callback delivery",
    peer: "wrk, the same POST to the same sink",
    unit: "rate",
    better: Better::Higher,
    combine: Combine::Ratio,
    reach: 0.5,
    aim: 0.7,
    left_out: false,
    rounds_max: usize::MAX,
};

/// The rows.
pub(super) const ROWS: [Row; 1] = [DELIVER];

/// Measures them.
pub(super) fn compare(run: &mut Run<'_>, side: &Side<'_>) {
    if !run.wants(&ROWS) {
        return;
    }
    let (_nginx, sink) = peers::nginx(side.environment, &side.body(CATALOGUE));
    let script = side.environment.write("callback.lua", include_str!("../peers/callback.lua"), &[]);
    let wrk = Target { scheme: "http", ..Target::get(sink, "/", None) };
    let wrk = wrk.scripted(&script).anywhere();
    run.compare(Comparison {
        row: DELIVER,
        ours: Box::new(|_| side.environment.runtime.block_on(delivered(side, sink))),
        peer: Box::new(|time| {
            let (answers, seconds) = wrk.http1(time);
            answers / seconds
        }),
    });
}

/// Deliveries a second, from when they are in the queue until all are settled.
async fn delivered(side: &Side<'_>, sink: SocketAddr) -> f64 {
    let pool = &side.database.pool;
    let clock = Clock::system();
    for partner in [&side.database.plain, &side.database.ruled] {
        let statement = include_str!("../peers/deliveries.sql")
            .replace("@client@", partner["id"].as_str().expect("a partner has an id"))
            .replace("@url@", &format!("http://{sink}/"))
            .replace("@count@", &(DELIVERIES / 2).to_string());
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(pool).await.unwrap();
    }
    let began = clock.monotonic_ns();
    until("everything is delivered", ROUND_MAX, async || {
        let left = "select exists (select from delivery where state = 'pending')";
        let left: bool = sqlx::query_scalar(left).fetch_one(pool).await.unwrap();
        (!left).then_some(())
    })
    .await;
    let took = Duration::from_nanos(clock.monotonic_ns() - began).as_secs_f64();
    f64::from(DELIVERIES) / took
}
