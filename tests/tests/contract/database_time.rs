//! Rows are judged by the database's time, whatever an edge takes it for.

use chrono::TimeDelta;
use http::Method;
use rampart_core::trading::orders::expiry::expire_due;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::json;
use uuid::Uuid;

use crate::orders::{Shop, confirm_of};

/// Time goes on, and the edge does not notice.
fn passes_unnoticed(context: &TestContext, time: TimeDelta) {
    context.clock().advance(time);
    context.clock().misset(-time);
}

#[tokio::test]
async fn a_quote_ends_when_the_database_says_so() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let (first, second) = (shop.quote(&context, |_| ()), shop.quote(&context, |_| ()));
    shop.v1(&confirm_of(&first)).await.assert_status(200);
    passes_unnoticed(&context, TimeDelta::minutes(6));
    shop.v1(&confirm_of(&second)).await.assert_status(400).assert_codes(&["ER006"]);
    // The order that a quote has become is found whatever the time is.
    shop.v1(&confirm_of(&first)).await.assert_status(200);
}

#[tokio::test]
async fn an_order_expires_when_the_database_says_so() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    context.clock().misset(TimeDelta::hours(2));
    assert_eq!(expire_due(context.core()).await.unwrap(), 0, "it is not over for the database");
    context.clock().misset(-TimeDelta::hours(2));
    passes_unnoticed(&context, TimeDelta::hours(2));
    assert_eq!(expire_due(context.core()).await.unwrap(), 1);
    assert_eq!(order.seen(&context).await["status"], "cancelled");
}

#[tokio::test]
async fn a_payment_is_late_when_the_database_says_so() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    passes_unnoticed(&context, TimeDelta::hours(2));
    order.event(&context, "payment-received").await.assert_status(200);
    assert_eq!(order.seen(&context).await["status"], "blocked");
}

#[tokio::test]
async fn a_rotated_password_ends_when_the_database_says_so() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let login = async || {
        let body = json!({"username": acme.username, "password": acme.password});
        let request = acme.anonymous(Method::POST, "/api/v1/authenticate").json(&body);
        request.send().await.status()
    };
    let end = "update client_secret set valid_until = now() + interval '1 hour' \
        where kind = 'password'";
    sqlx::query(end).execute(context.db()).await.unwrap();
    context.clock().misset(TimeDelta::hours(2));
    assert_eq!(login().await, 200);
    context.clock().misset(-TimeDelta::hours(2));
    passes_unnoticed(&context, TimeDelta::hours(2));
    assert_ne!(login().await, 200);
}

#[tokio::test]
async fn an_attempt_is_under_way_until_the_database_says_otherwise() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    OrderFixture::ended(&context, &acme, "https://shop.example.com/hook").await;
    let lease = "update delivery set leased_until = now() + interval '30 seconds' \
        returning delivery_id";
    let id: Uuid = sqlx::query_scalar(lease).fetch_one(context.db()).await.unwrap();
    let redeliver = async || {
        let path = format!("/admin/v1/deliveries/{id}/redeliver");
        context.admin(Method::POST, &path, json!({})).await.status()
    };
    context.clock().misset(TimeDelta::minutes(1));
    assert_eq!(redeliver().await, 409);
    context.clock().misset(-TimeDelta::minutes(1));
    passes_unnoticed(&context, TimeDelta::minutes(1));
    assert_eq!(redeliver().await, 200);
}
