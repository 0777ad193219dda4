//! Events that a connector may tell by its capabilities.

use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, paid, payable_order, status};
use super::refunds::owed;
use super::*;

/// Events of a connector that are stored.
async fn stored(context: &TestContext, connector: &str) -> i64 {
    let count = "select count(*) from connector_event where connector = $1";
    sqlx::query_scalar(count).bind(connector).fetch_one(context.db()).await.unwrap()
}

/// The books and the order, as operators see them.
async fn seen(context: &TestContext, order: &OrderFixture) -> (Vec<String>, String) {
    (owed(context, "acme").await, status(context, order).await)
}

#[tokio::test]
async fn a_connector_of_identity_checks_reports_no_money() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = payable_order(&acme, &connector, 100).await;
    let checks = ["identity.start", "card.verify", "wallet-provider.verify"];
    let identity = Connector::new(&context, "identity", &checks).await;
    let before = seen(&context, &order).await;
    let refused = identity.event(paid(&order, 100)).await.assert_status(403).json();
    assert_eq!(
        refused["error"],
        "kind: payment.received is not within the connector's capabilities"
    );
    assert_eq!(seen(&context, &order).await, before);
    assert_eq!(stored(&context, "identity").await, 0);
    let health = json!({"id": "h", "kind": "health", "occurredAt": "2026-03-01T12:00:00Z"});
    identity.event(health).await.assert_status(200);
    connector.event(paid(&order, 100)).await.assert_status(200);
    assert_ne!(seen(&context, &order).await, before);
}

#[tokio::test]
async fn a_connector_of_payments_ends_no_identity_check() {
    let context = TestContext::start().await;
    let cards = Connector::new(&context, "cards", &["payment.create", "card.verify"]).await;
    let completed = json!({"id": "e", "kind": "identity.completed", "outcome": "verified",
        "occurredAt": "2026-03-01T12:00:00Z", "commandId": uuid::Uuid::nil()});
    let refused = cards.event(completed).await.assert_status(403).json();
    assert_eq!(
        refused["error"],
        "kind: identity.completed is not within the connector's capabilities"
    );
    assert_eq!(stored(&context, "cards").await, 0);
}

#[tokio::test]
async fn a_bank_that_only_transfers_reports_what_came_in() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = payable_order(&acme, &connector, 100).await;
    let bank = Connector::new(&context, "bank", &["transfer.send"]).await;
    let told = bank.event(paid(&order, 100)).await.assert_status(200).json();
    assert_eq!(told, json!({"duplicate": false}));
    let count = "select count(*) from payment where connector = 'bank'";
    let payments: i64 = sqlx::query_scalar(count).fetch_one(context.db()).await.unwrap();
    assert_eq!((payments, stored(&context, "bank").await), (1, 1));
}
