//! An edge behind PgBouncer in transaction mode: its statements may each run on another connection
//! of the server, and it leaves nothing behind on any.

use futures::future::join_all;
use rampart_tests::caller::Protocol;
use rampart_tests::cluster;
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::pgbouncer::connect;
use sqlx::Row as _;

use crate::purchase::buys;

/// Connections of the pooler to the server, for each role: fewer than the edge's to the pooler.
const SERVERS: u32 = 2;
/// Purchases at once.
const CROWD: usize = 6;

#[tokio::test]
async fn purchases_behind_pgbouncer_leave_no_state_on_its_connections() {
    let database = cluster::database().await;
    let pooler = cluster::pgbouncer(&database, SERVERS).await;
    let [requests, workers] = cluster::urls_through(&pooler, &database);
    let mut setup = Setup::over(&database);
    setup.set("database.url", &*requests).set("database.worker_url", workers);
    let edge = Edge::of(setup).await;
    edge.ops("/readyz").await.assert_status(200);
    let buying = (0..CROWD).map(|number| {
        let edge = &edge;
        async move { buys(edge, Protocol::Http2, &format!("shop-{number}")).await }
    });
    join_all(buying).await;

    for _ in 0..=SERVERS {
        let mut connection = connect(&requests).await.unwrap();
        let left = sqlx::raw_sql(
            "select coalesce(current_setting('rampart.client_id', true), '') \
                 || coalesce(current_setting('rampart.all_tenants', true), ''), \
             current_setting('statement_timeout'), count(*) from pg_prepared_statements",
        );
        let left = left.fetch_one(&mut connection).await.unwrap();
        assert_eq!(left.get::<&str, _>(0), "", "a tenant is left");
        assert_eq!(left.get::<&str, _>(1), "0", "a timeout is left");
        assert_eq!(left.get::<i64, _>(2), 0, "prepared statements are left");
    }
}
