//! Rows of one partner that nobody can read, put into the database by hand: everybody else is served,
//! edges start, and a suspension takes effect.

use std::time::Duration;

use http::Method;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::deadline::{SOON, until};
use serde_json::json;
use sqlx::{AssertSqlSafe, PgPool, query};

use crate::fleet::Fleet;
use rampart_tests::journal::Fault;

/// Confirms between two broken rows.
const APART: usize = 50;

/// A value that cannot be read.
struct Unreadable {
    table: &'static str,
    /// The column and the value, as an update sets it.
    assignment: &'static str,
}

/// Values that are written.
const BROKEN: [Unreadable; 4] = [
    Unreadable { table: "client", assignment: r#"rate_limits = '{"client": "plenty"}'"# },
    Unreadable { table: "client", assignment: "allowed_addresses = '{10.0.0.0/33}'" },
    Unreadable { table: "client", assignment: "fee_cap_percentage = 'NaN'" },
    Unreadable { table: "api_key", assignment: "secret_digest = '\\x00'" },
];

/// Breaks rows, and starts edges over them.
pub(crate) async fn broken(scale: Scale) -> Report {
    let mut fleet = Fleet::start(scale).await;
    let (db, load) = (fleet.pool().await, fleet.load());
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    let mut silent = 0;
    for number in 0..scale.of(BROKEN.len(), 8 * BROKEN.len()) {
        load.reach(load.acknowledged() + APART).await;
        let [slug, other] = ["broken", "suspended"].map(|name| format!("{name}{number}"));
        let edge = &fleet.edges[0];
        let (_, rival) = (edge.partner(&slug).await, edge.partner(&other).await);
        break_row(&db, &BROKEN[number % BROKEN.len()], &slug).await;
        fault.injected += 1;
        let place = number % fleet.edges.len();
        fleet.kill_edge(place).await;
        fault.recovery = fault.recovery.max(fleet.recovery(&load).await);
        let path = format!("/admin/v1/partners/{other}");
        let suspension = json!({"status": "suspended"});
        fleet.edges[place].admin(Method::PATCH, &path, suspension).await.assert_status(200);
        for edge in &fleet.edges {
            let there = rival.at(edge.address);
            until("a suspension takes effect", SOON, async || {
                (there.get("/api/v1/prices").await.status() == 400).then_some(())
            })
            .await;
            until("the edge is ready", SOON, async || {
                let ready = edge.ops("/readyz").await;
                (ready.status() == 200).then(|| silent += usize::from(!tells(&ready.json())))
            })
            .await;
        }
    }
    let mut report = load.finish().await.reconcile(&db, &fault).await;
    report.require(silent == 0, || format!("{silent} times nobody was told of a broken row"));
    report
}

/// True if `/readyz` tells of rows that were left out.
fn tells(ready: &serde_json::Value) -> bool {
    let checks = ready["checks"].as_array().unwrap();
    checks.iter().any(|check| check["name"] == "rows" && check["status"] == "degraded")
}

/// Writes a value that cannot be read, and lets every edge load it.
async fn break_row(db: &PgPool, value: &Unreadable, slug: &str) {
    let Unreadable { table, assignment } = value;
    let of = "client_id = (select client_id from client where slug = $1)";
    let update = format!("update {table} set {assignment} where {of}");
    query(AssertSqlSafe(update)).bind(slug).execute(db).await.unwrap();
    let next = "with next as ( \
        update change_counter set revision = revision + 1 where scope = 'clients' \
        returning revision) \
        update client set revision = next.revision from next where slug = $1";
    query(next).bind(slug).execute(db).await.unwrap();
}
