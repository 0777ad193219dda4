//! Path i: what paths a and b, a list and a search cost when there are many partners, and many orders.

use rampart_tests::edge::ADMIN_TOKEN;

use super::orders::reads;
use super::{CATALOGUE, Run};
use crate::comparison::{Better, Combine, Comparison, Measure, Row};
use crate::environment::{Database, Environment};
use crate::generators::Target;
use crate::side::{Cores, Side, cpu_per_answer};

const PARTNERS: Row = Row {
    path: "i",
    what: "catalogue with 10,000 partners",
    peer: "a with 10 partners",
    unit: "CPU per request, HTTP/1.1",
    better: Better::Lower,
    combine: Combine::Ratio,
    reach: 1.1,
    aim: 1.03,
    left_out: true,
    rounds_max: usize::MAX,
};
const ORDERS: Row = Row {
    what: "order read among 5,000,000",
    peer: "b among 10,000",
    unit: "CPU per request, Postgres included",
    ..PARTNERS
};

const LIST: Row =
    Row { what: "order list among 5,000,000, growth", peer: "among 10,000", ..ORDERS };
const SEARCH: Row = Row { what: "operators' search among 5,000,000, growth", ..LIST };

/// A page of the partner's newest orders.
const PAGE: &str = "/api/v2/buy/orders?limit=20";
/// The newest orders of every partner that wait for a person.
const BLOCKED: &str = "/admin/v1/orders?limit=20&status=blocked";

/// The rows.
pub(super) const ROWS: [Row; 4] = [PARTNERS, ORDERS, LIST, SEARCH];

/// Measures them: the large database is ours, the small one the peer's.
pub(super) fn compare(
    run: &mut Run<'_>,
    environment: &Environment,
    (small, large): (&Database, &Database),
) {
    if run.wants(&[ORDERS, LIST, SEARCH]) {
        // A server that has run for a day has read its orders before.
        environment.runtime.block_on(async { tokio::join!(read(small), read(large)) });
    }
    let small = Side::start(environment, small, Cores::First);
    let large = Side::start(environment, large, Cores::First);
    run.compare(Comparison {
        row: PARTNERS,
        ours: cpu(vec![large.process()], large.get(CATALOGUE, &large.plain)),
        peer: cpu(vec![small.process()], small.get(CATALOGUE, &small.plain)),
    });
    let postgres = environment.postgres();
    run.compare(Comparison {
        row: ORDERS,
        ours: cpu(vec![large.process(), postgres], reads(&large)),
        peer: cpu(vec![small.process(), postgres], reads(&small)),
    });
    for (row, target) in [(LIST, list as fn(&Side<'_>) -> Target), (SEARCH, search)] {
        run.compare(Comparison {
            row,
            ours: cpu(vec![large.process(), postgres], target(&large)),
            peer: cpu(vec![small.process(), postgres], target(&small)),
        });
    }
}

fn list(side: &Side<'_>) -> Target {
    side.get(PAGE, &side.token)
}

fn search(side: &Side<'_>) -> Target {
    let credential = format!("authorization: Bearer {ADMIN_TOKEN}");
    Target { scheme: "http", ..Target::get(side.edge.admin, BLOCKED, Some(credential)) }
}

/// Brings tables and indexes into the memory of Postgres, which has room for them.
async fn read(database: &Database) {
    let all = "create extension if not exists pg_prewarm; \
        select pg_prewarm(oid) from pg_class where relkind in ('r', 'i') and relpages > 0";
    sqlx::raw_sql(all).execute(&database.pool).await.unwrap();
}

fn cpu<'a>(processes: Vec<u32>, target: Target) -> Measure<'a> {
    Box::new(move |time| cpu_per_answer(&processes, time, |time| target.http1(time).0))
}
