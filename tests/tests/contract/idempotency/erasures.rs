//! Answers that are ready while their user is erased, or later.

use http::Method;
use rampart_tests::connector::Connector;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::test_context::TestContext;
use serde_json::json;
use sqlx::PgPool;

use super::faults::pool;
use crate::orders::count;

const KEYS: &str = "select count(*) from idempotency_key";

/// The operators' path of the one user.
async fn path_of_user(context: &TestContext) -> String {
    let user: String = sqlx::query_scalar("select user_id::text from end_user")
        .fetch_one(context.db())
        .await
        .unwrap();
    format!("/admin/v1/users/{user}")
}

/// Returns once a statement that begins with this text waits for a lock.
async fn until_waiting(db: &PgPool, statement: &str) {
    until(statement, SOON, async || {
        let waiting: bool = sqlx::query_scalar(
            "select exists (select from pg_stat_activity where datname = current_database() \
             and wait_event_type = 'Lock' and starts_with(query, $1))",
        )
        .bind(statement)
        .fetch_one(db)
        .await
        .unwrap();
        waiting.then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_comes_after_its_user_is_erased_is_not_kept() {
    let context = TestContext::with(|settings| settings.connectors.answer_seconds = 60).await;
    Connector::of_live(&context).await;
    let live = json!({"slug": "acme", "name": "Acme", "mode": "live"});
    let ada = context.partner_of(live).await.user("ada").await;
    let card = json!({"sessionIdentifier": "session-1", "cardHolderName": "Ada Lovelace",
        "currencyCode": "EUR"});
    let request = ada.request(Method::POST, "/api/v2/user/accounts/cards/processor");
    let request = request.header("idempotency-key", "k").json(&card);
    let user = path_of_user(&context).await;
    let erase = async {
        until("the connector is asked", SOON, async || {
            let asked = "select count(*) from command where kind = 'card.verify'";
            (count(&context, asked).await == 1).then_some(())
        })
        .await;
        let erased = context.admin(Method::PATCH, &user, json!({"deleted": true})).await;
        erased.assert_status(200);
    };
    // Nobody has the command any more that the request waits for.
    let (answer, ()) = futures::join!(request.send(), erase);
    answer.assert_status(400).assert_codes(&["ER709"]);
    assert_eq!(count(&context, KEYS).await, 0);
}

#[tokio::test]
async fn an_answer_that_comes_while_its_user_is_erased_is_not_kept() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let user = path_of_user(&context).await;
    let db = pool(&context).await;
    let mut somebody = db.begin().await.unwrap();
    // The erasure's last statement waits for it, long after saved answers were deleted.
    let lock = "lock table user_document in share mode";
    sqlx::query(lock).execute(&mut *somebody).await.unwrap();
    let card = json!({"accountIdentifier": "411111******1234"});
    let request = ada.request(Method::POST, "/api/v1/user/verify/card");
    let request = request.header("idempotency-key", "k").json(&card);
    let ask = async {
        until_waiting(&db, "update user_document").await;
        request.send().await
    };
    let release = async {
        until_waiting(&db, "update idempotency_key").await;
        somebody.rollback().await.unwrap();
    };
    let erase = context.admin(Method::PATCH, &user, json!({"deleted": true}));
    let (erased, answer, ()) = futures::join!(erase, ask, release);
    erased.assert_status(200);
    answer.assert_status(400).assert_codes(&["ER396"]);
    assert_eq!(count(&context, KEYS).await, 0);
}
