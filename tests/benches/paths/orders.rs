//! Path b: an order by its number, one of ten thousand.

use super::Run;
use crate::comparison::{Better, Combine, Comparison, Row};
use crate::generators::{Pgbench, Target};
use crate::ground::{FIRST_ORDER, Ground, Size};
use crate::side::Side;

/// Connections of pgbench, as many as the edge's pool may have.
const CONNECTIONS: usize = 16;

const READ: Row = Row {
    path: "b",
    what: "order read",
    peer: "pgbench, same statement, 16 connections",
    unit: "rate",
    better: Better::Higher,
    combine: Combine::Ratio,
    reach: 0.8,
    aim: 1.5,
    slow: false,
    rounds_max: usize::MAX,
};

/// The rows.
pub(super) const ROWS: [Row; 1] = [READ];

/// Measures them.
pub(super) fn compare(run: &mut Run<'_>, side: &Side<'_>) {
    let size = side.database.size;
    let ours = reads(side).anywhere();
    let (first, last) = (FIRST_ORDER.to_string(), (FIRST_ORDER + size.orders - 1).to_string());
    let values = [("first", &*first), ("last", &last), ("client", side.database.client())];
    let pgbench = Pgbench {
        database: side.database.url.clone(),
        script: side.ground.write("order.sql", include_str!("../peers/order.sql"), &values),
        folder: side.ground.folder.clone(),
    };
    run.compare(Comparison {
        row: READ,
        ours: Box::new(|time| {
            let (answers, seconds) = ours.http1(time);
            answers / seconds
        }),
        peer: Box::new(|time| pgbench.rate(CONNECTIONS, time)),
    });
}

/// Reads of orders all over the database.
pub(super) fn reads(side: &Side<'_>) -> Target {
    side.get("/", &side.token).scripted(&script(side.ground, side.database.size))
}

fn script(ground: &Ground, size: Size) -> std::path::PathBuf {
    let values = [("first", &*FIRST_ORDER.to_string()), ("count", &size.orders.to_string())];
    let name = format!("order-{}.lua", size.name);
    ground.write(&name, include_str!("../peers/order.lua"), &values)
}
