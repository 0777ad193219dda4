//! Operators' reads on a replica of Postgres.

use http::Method;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::postgres_server::PostgresServer;
use serde_json::Value;

use crate::buyer::{order, order_of};

/// An edge that reads on the replica while that is at most this far behind.
async fn edge(primary: &str, replica: &str, lag_max_ms: u32) -> Edge {
    let mut setup = Setup::over(primary);
    setup.set("database.replica_urls", replica);
    setup.set("database.replica_lag_max_ms", lag_max_ms.to_string());
    Edge::of(setup).await
}

/// True if operators find the order.
async fn finds(edge: &Edge, order: u64) -> bool {
    let found = edge.admin(Method::GET, "/admin/v1/orders?limit=10", Value::Null).await;
    let found = found.assert_status(200).json();
    found.as_array().unwrap().iter().any(|found| found["id"] == order)
}

/// Waits until the edge has heard from a replica.
async fn knows_its_replica(edge: &Edge) {
    until("the replica answers", SOON, async || {
        edge.ops("/metrics").await.text().contains("rampart_replica_lag_seconds{").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_replica_reads_while_it_is_near_and_otherwise_the_primary() {
    let server = PostgresServer::start().await;
    let replica = server.replica().await;
    let database = server.database().await;
    let (on_primary, on_replica) = (server.url(&database), replica.url(&database));
    let patient = edge(&on_primary, &on_replica, 600_000).await;
    let strict = edge(&on_primary, &on_replica, 1_000).await;
    knows_its_replica(&patient).await;
    knows_its_replica(&strict).await;
    let partner = patient.partner("shop").await.authenticated().await;
    let first = order_of(&order(&partner).await);
    until("the replica has the order", SOON, async || finds(&patient, first).await.then_some(()))
        .await;

    let look = replica.pool(&database).await;
    sqlx::query("select pg_wal_replay_pause()").execute(&look).await.unwrap();
    until("it replays no more", SOON, async || {
        let state = sqlx::query_scalar("select pg_get_wal_replay_pause_state()");
        let state: String = state.fetch_one(&look).await.unwrap();
        (state == "paused").then_some(())
    })
    .await;
    let second = order_of(&order(&partner).await);
    assert!(!finds(&patient, second).await, "the primary has read");
    until("the primary reads", SOON, async || finds(&strict, second).await.then_some(())).await;
    assert!(!finds(&patient, second).await, "that is within its bound");

    sqlx::query("select pg_wal_replay_resume()").execute(&look).await.unwrap();
    until("the replica goes on", SOON, async || finds(&patient, second).await.then_some(())).await;
    look.close().await;
    replica.kill();
    let third = order_of(&order(&partner).await);
    assert!(finds(&patient, third).await, "the primary has not read");
    assert_eq!(partner.get("/api/v2/buy/orders").await.status(), 200);
    until("readiness names the replica", SOON, async || {
        let readiness = patient.ops("/readyz").await.assert_status(200).json();
        let checks = readiness["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == "replicas").unwrap();
        let detail = check["detail"].as_str().unwrap();
        (check["status"] == "degraded" && detail.ends_with("cannot be read")).then_some(())
    })
    .await;
    let metrics = patient.ops("/metrics").await.text().to_owned();
    let down = |line: &&str| line.starts_with("rampart_replica_up{") && line.ends_with("} 0");
    assert_eq!(metrics.lines().filter(down).count(), 1, "{metrics}");
}
