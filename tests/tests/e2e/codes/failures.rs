//! Conflicts of idempotency keys, and failures on the server's side.

use futures::FutureExt as _;
use http::Method;
use rampart_tests::cluster;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::user::registration;
use serde_json::json;
use sqlx::PgPool;

use super::Row;
use super::fixtures::Fixtures;
use super::offers::{OFFER, offer};

pub(super) async fn rows(fixtures: &Fixtures) -> Vec<Row> {
    let db = cluster::pool(fixtures.edge.setup().database()).await;
    vec![
        under_way(fixtures, &db),
        another_body(fixtures).await.with_status(422),
        damaged(fixtures, &db).await.with_status(500),
        not_connected(fixtures).await.with_status(503),
    ]
}

/// A key that another request has, which waits for a lock of ours.
fn under_way(fixtures: &Fixtures, db: &PgPool) -> Row {
    let db = db.clone();
    let send = {
        let request = || fixtures.post(OFFER, &offer(json!({}))).header("idempotency-key", "twice");
        (request(), request())
    };
    let second = async move {
        let mut lock = db.begin().await.unwrap();
        sqlx::query("lock table offer in exclusive mode").execute(&mut *lock).await.unwrap();
        let mut first = Box::pin(send.0.send());
        until("the first request has the key", SOON, async || {
            assert!((&mut first).now_or_never().is_none(), "the first was answered");
            let claimed = "select count(*) from idempotency_key where key = 'twice'";
            let claimed: i64 = sqlx::query_scalar(claimed).fetch_one(&db).await.unwrap();
            (claimed == 1).then_some(())
        })
        .await;
        let second = send.1.send().await;
        lock.rollback().await.unwrap();
        first.await.assert_status(200);
        second
    };
    Row::of("ER999", "a key whose first request still runs", second).with_status(409)
}

async fn another_body(fixtures: &Fixtures) -> Row {
    let send = |body| fixtures.post(OFFER, &offer(body)).header("idempotency-key", "once");
    send(json!({})).send().await.assert_status(200);
    let other = send(json!({"fixedCurrency": true}));
    Row::new("ER999", "a key that came with another body", other)
}

/// A user whose data cannot be opened any more.
async fn damaged(fixtures: &Fixtures, db: &PgPool) -> Row {
    let frances = fixtures.person("frances").await;
    let uuid: uuid::Uuid = frances.uuid.parse().unwrap();
    let damage = "update end_user set personal = '\\x00' where user_id = $1";
    sqlx::query(damage).bind(uuid).execute(db).await.unwrap();
    let read = fixtures.key.request(Method::GET, "/api/v1/user/info");
    Row::new("ER999", "data that is damaged", read.header("user-identifier", &frances.identifier))
}

/// The wallet provider of a live client: there is none.
async fn not_connected(fixtures: &Fixtures) -> Row {
    let live = json!({"slug": "unconnected", "name": "unconnected", "mode": "live"});
    let live = fixtures.edge.partner_of(live).await;
    let user = registration("lea");
    live.post("/api/v2/user", user.clone()).await.assert_status(200);
    let request = live.request(Method::POST, "/api/v1/user/verify/payprovider");
    let request = request.header("user-identifier", user["identifier"].as_str().unwrap());
    Row::new("ER999", "a provider that is down", request.json(&json!({"access_token": "A21AAF"})))
}
