//! An edge whose Postgres fails over to a standby that lacks the last changes.

use http::Method;
use rampart_tests::caller::Caller;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::postgres_server::PostgresServer;
use serde_json::json;
use sqlx::PgPool;

const PRICES: &str = "/api/v1/prices";

/// Waits until so many processes of the standby receive the primary's log.
async fn until_received(standby: &PgPool, receivers: i64) {
    until("the standby follows the primary, or no more", SOON, async || {
        let count = sqlx::query_scalar("select count(*) from pg_stat_wal_receiver");
        let count: i64 = count.fetch_one(standby).await.unwrap();
        (count == receivers).then_some(())
    })
    .await;
}

/// Has the standby receive nothing more of the primary's log.
async fn detach(standby: &PgPool) {
    until_received(standby, 1).await;
    for statement in ["alter system set primary_conninfo = ''", "select pg_reload_conf()"] {
        sqlx::query(statement).execute(standby).await.unwrap();
    }
    until_received(standby, 0).await;
}

/// True if the partner is shown a price for purchases of BTC.
async fn has_price(partner: &Caller) -> bool {
    let prices = partner.get(PRICES).await.assert_status(200).json();
    prices["buy"].get("BTC-EUR").is_some()
}

#[tokio::test]
async fn changes_that_a_failover_lost_are_served_no_more_at_the_same_revision() {
    let server = PostgresServer::start().await;
    let database = server.database().await;
    let edge = Edge::of(Setup::over(&server.url(&database))).await;
    let (acme, rival) = (edge.partner("acme").await, edge.partner("rival").await);
    assert!(has_price(&acme).await && has_price(&rival).await);
    let standby = server.replica().await;
    let there = standby.pool(&database).await;
    detach(&there).await;

    let suspend = json!({"status": "suspended"});
    edge.admin(Method::PATCH, "/admin/v1/partners/acme", suspend).await.assert_status(200);
    let close = json!({"buy": {"status": "disabled"}});
    edge.admin(Method::PATCH, "/admin/v1/pairs/BTC-EUR", close).await.assert_status(200);
    acme.get(PRICES).await.assert_status(400);
    assert!(!has_price(&rival).await);
    let here = server.pool(&database).await;
    let reached = sqlx::query_as("select scope, revision from change_counter");
    let reached: Vec<(String, i64)> = reached.fetch_all(&here).await.unwrap();
    here.close().await;

    server.kill();
    let promote = sqlx::query_scalar("select pg_promote()");
    let promoted: bool = promote.fetch_one(&there).await.unwrap();
    assert!(promoted, "the standby takes over");
    // As by other changes, made there before the edge looks.
    for (scope, revision) in reached {
        let raise = "update change_counter set revision = $2 where scope = $1";
        sqlx::query(raise).bind(scope).bind(revision).execute(&there).await.unwrap();
    }
    server.link.lead_to(standby.link.address());
    until("the lost suspension is served no more", SOON, async || {
        (acme.get(PRICES).await.status() == 200).then_some(())
    })
    .await;
    until("the lost change of the market is served no more", SOON, async || {
        has_price(&rival).await.then_some(())
    })
    .await;
    there.close().await;
}
