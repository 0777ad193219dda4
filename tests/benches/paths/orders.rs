//! Path b: an order by its number, one of ten thousand.

use std::time::Duration;

use super::Run;
use crate::comparison::{Better, Combine, Comparison, Row};
use crate::environment::{Environment, FIRST_ORDER, Size};
use crate::generators::{Pgbench, Target};
use crate::side::Side;

/// Connections of pgbench, as many as the edge's pool may have.
const CONNECTIONS: usize = 16;

/// Most orders that a connection of HTTP/2 asks for before it begins again, and how far one is from
/// the next: a prime, so that all come in turn, and no two of a page.
const LISTED_MAX: u64 = 10_000;
const LIST_STRIDE: u64 = 7_919;

const READ: Row = Row {
    path: "b",
    what: "order read",
    peer: "pgbench, same statement, 16 connections",
    unit: "rate, HTTP/1.1",
    better: Better::Higher,
    combine: Combine::Ratio,
    reach: 0.8,
    aim: 1.5,
    left_out: false,
    rounds_max: usize::MAX,
};

const READ_HTTP2: Row = Row { unit: "rate, HTTP/2", left_out: true, ..READ };

/// The rows.
pub(super) const ROWS: [Row; 2] = [READ, READ_HTTP2];

/// Measures them.
pub(super) fn compare(run: &mut Run<'_>, side: &Side<'_>) {
    let size = side.database.size;
    let ours = reads(side).anywhere();
    let (first, last) = (FIRST_ORDER.to_string(), (FIRST_ORDER + size.orders - 1).to_string());
    let values = [("first", &*first), ("last", &last), ("client", side.database.client())];
    let pgbench = Pgbench {
        database: side.database.url.clone(),
        script: side.environment.write("order.sql", include_str!("../peers/order.sql"), &values),
        folder: side.environment.folder.clone(),
    };
    let listed = ours.clone().listed(&list(side));
    run.compare(by_rate(READ, &pgbench, |time| ours.http1(time)));
    run.compare(by_rate(READ_HTTP2, &pgbench, |time| listed.http2(time)));
}

/// Answers a second, of so many in so many seconds, against pgbench.
fn by_rate<'a>(
    row: Row,
    pgbench: &'a Pgbench,
    ours: impl Fn(Duration) -> (f64, f64) + 'a,
) -> Comparison<'a> {
    Comparison {
        row,
        ours: Box::new(move |time| {
            let (answers, seconds) = ours(time);
            answers / seconds
        }),
        peer: Box::new(|time| pgbench.rate(CONNECTIONS, time)),
    }
}

/// Reads of orders all over the database.
pub(super) fn reads(side: &Side<'_>) -> Target {
    side.get("/", &side.token).scripted(&script(side.environment, side.database.size))
}

/// Addresses of orders all over the database.
fn list(side: &Side<'_>) -> std::path::PathBuf {
    let count = side.database.size.orders;
    let numbers = (0..count.min(LISTED_MAX)).map(|n| FIRST_ORDER + n * LIST_STRIDE % count);
    let address = |number| format!("https://{}/api/v2/buy/orders/{number}\n", side.address());
    side.environment.write("orders.txt", &numbers.map(address).collect::<String>(), &[])
}

fn script(environment: &Environment, size: Size) -> std::path::PathBuf {
    let values = [("first", &*FIRST_ORDER.to_string()), ("count", &size.orders.to_string())];
    let name = format!("order-{}.lua", size.name);
    environment.write(&name, include_str!("../peers/order.lua"), &values)
}
