//! Path i: what paths a and b, a list, a search and a claim cost when there are many partners, and
//! many orders.

use rampart_tests::edge::ADMIN_TOKEN;
use sqlx::AssertSqlSafe;

use super::orders::reads;
use super::statement::filled;
use super::{CATALOGUE, Run};
use crate::comparison::{Better, Combine, Comparison, Measure, Row};
use crate::environment::{Database, Environment, FIRST_ORDER};
use crate::generators::{Pgbench, Target};
use crate::side::{Cores, Side, cpu_per_answer};

const PARTNERS: Row = Row {
    path: "i",
    what: "catalogue with 100,000 partners",
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
    what: "order read among 20,000,000, growth",
    peer: "b among 10,000",
    unit: "CPU per request, Postgres included",
    reach: 1.2,
    ..PARTNERS
};
const LIST: Row =
    Row { what: "order list among 20,000,000, growth", peer: "among 10,000", ..ORDERS };
const SEARCH: Row = Row { what: "operators' search among 20,000,000, growth", ..LIST };
const CLAIM: Row =
    Row { what: "claim of overdue orders among 20,000,000, growth", unit: "time", ..LIST };

/// The statement by which an edge claims orders that can no longer be paid.
const EXPIRY: &str = include_str!("../../../core/src/trading/orders/expiry.rs");
/// Overdue orders, more than one claim takes.
const OVERDUE: u64 = 200;
const OVERDUE_NOW: &str = "status = 'pending', expires_at = now() - interval '1 minute'";

/// A page of the partner's newest orders.
const PAGE: &str = "/api/v2/buy/orders?limit=20";
/// Connections that search. The operators' listener takes 96 of an address, and those of the round before
/// may not have ended yet.
const SEARCHERS: usize = 32;
/// The newest orders of every partner that wait for a person.
const BLOCKED: &str = "/admin/v1/orders?limit=20&status=blocked";

/// The rows.
pub(super) const ROWS: [Row; 5] = [PARTNERS, ORDERS, LIST, SEARCH, CLAIM];

/// Measures them: the large database is ours, the small one the peer's.
pub(super) fn compare(
    run: &mut Run<'_>,
    environment: &Environment,
    small: &Database,
    large: &Database,
) {
    if run.wants(&[ORDERS, LIST, SEARCH, CLAIM]) {
        // A server that has run for a day has read its orders before.
        environment.runtime.block_on(async { tokio::join!(read(small), read(large)) });
    }
    if run.wants(&[CLAIM]) {
        // While no edge expires them.
        let [small, large] = [small, large].map(|database| claims(environment, database));
        run.compare(Comparison { row: CLAIM, ours: large, peer: small });
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
    let target = Target::get(side.edge.admin, BLOCKED, Some(credential));
    Target { scheme: "http", connections: SEARCHERS, ..target }
}

/// The time of one claim, which is taken back. The overdue orders are the newest ones, as they are
/// everywhere.
fn claims<'a>(environment: &'a Environment, database: &'a Database) -> Measure<'a> {
    let claim = filled(
        EXPIRY,
        &[
            "'epoch'::timestamptz",
            "'00000000-0000-0000-0000-000000000000'::uuid",
            "0",
            "100",
            "604800",
        ],
    );
    let script = environment.write(
        &format!("claim_{}.sql", database.size.name),
        include_str!("../peers/claim.sql"),
        &[("statement", &claim)],
    );
    let pgbench =
        Pgbench { database: database.url.clone(), script, folder: environment.folder.clone() };
    Box::new(move |time| {
        set_newest(environment, database, OVERDUE_NOW);
        let rate = pgbench.rate(1, time);
        set_newest(environment, database, "status = 'completed'");
        1.0 / rate
    })
}

/// Updates the newest orders, which become overdue.
fn set_newest(environment: &Environment, database: &Database, assignments: &str) {
    let first = FIRST_ORDER + database.size.orders - OVERDUE;
    let statement = format!(
        "update buy_order set {assignments} where client_id = '{}' and order_id >= {first}",
        database.client()
    );
    let updating = sqlx::raw_sql(AssertSqlSafe(statement));
    environment.runtime.block_on(updating.execute(&database.pool)).unwrap();
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
