//! A payment that was begun at a provider ends when its order waits for it no more.

use chrono::TimeDelta;
use rampart_core::trading::orders::expiry::expire_due;
use rampart_tests::wallet::Wallet;

use super::*;

#[tokio::test]
async fn an_order_that_ends_unpaid_cancels_its_payment() {
    let shop = Shop::open().await;
    let wallet = Wallet::new(7).address();
    let (expired, cancelled) = (shop.order(100, &wallet).await, shop.order(100, &wallet).await);
    let (denied, refused) = (shop.order(100, &wallet).await, shop.order(100, &wallet).await);
    for create in shop.connector.lease(100).await {
        let order = create["body"]["orderId"].as_i64().unwrap();
        let outcome = if order == refused { "rejected" } else { "done" };
        let result = json!({"providerReference": format!("pi-{order}")});
        shop.connector.report(&create, outcome, result).await.assert_status(200);
    }
    for (order, event) in [(cancelled, "cancel"), (denied, "payment-denied")] {
        let path = format!("/admin/v1/orders/{order}/events");
        shop.decide(&path, json!({ "event": event })).await.assert_status(200);
    }
    shop.context.clock().advance(TimeDelta::seconds(901));
    assert_eq!(expire_due(shop.context.core()).await.unwrap(), 1);
    let mut cancels = Vec::new();
    for command in shop.connector.lease(100).await {
        assert_eq!(command["kind"], "payment.cancel");
        let order = command["body"]["orderId"].as_i64().unwrap();
        assert_eq!(command["body"]["providerReference"], format!("pi-{order}"));
        cancels.push(order);
    }
    cancels.sort_unstable();
    let mut ended = [expired, cancelled, denied];
    ended.sort_unstable();
    assert_eq!(cancels, ended);
}

#[tokio::test]
async fn a_cancellation_names_a_payment_that_was_being_made_meanwhile() {
    let shop = Shop::open().await;
    let order = shop.order(100, &Wallet::new(7).address()).await;
    let create = shop.connector.lease(100).await.remove(0);
    let path = format!("/admin/v1/orders/{order}/events");
    shop.decide(&path, json!({"event": "cancel"})).await.assert_status(200);
    assert!(shop.connector.lease(100).await.is_empty(), "the payment is being made");
    let made = json!({"providerReference": "pi-1"});
    shop.connector.report(&create, "done", made).await.assert_status(200);
    let cancels = shop.connector.lease(100).await;
    assert_eq!(cancels.len(), 1, "{cancels:?}");
    assert_eq!(cancels[0]["kind"], "payment.cancel");
    assert_eq!(cancels[0]["body"]["providerReference"], "pi-1");
}

/// A report that this much has come for an order.
fn received(order: i64, reference: &str, amount: u32) -> Value {
    json!({"id": reference, "kind": "payment.received", "occurredAt": "2026-03-01T12:00:00Z",
        "partner": "acme", "orderId": order, "providerReference": reference, "amount": amount,
        "currency": "EUR"})
}

#[tokio::test]
async fn an_order_that_is_paid_otherwise_cancels_its_payment_once() {
    let shop = Shop::open().await;
    let wallet = Wallet::new(7).address();
    let bank = Connector::new(&shop.context, "bank", &["payment.create"]).await;
    let (by_hand, by_bank) = (shop.order(100, &wallet).await, shop.order(100, &wallet).await);
    let (short, held) = (shop.order(100, &wallet).await, shop.order(100, &wallet).await);
    for create in shop.connector.lease(100).await {
        shop.connector.report(&create, "done", json!({})).await.assert_status(200);
    }
    let event = async |order: i64, body: Value| {
        shop.decide(&format!("/admin/v1/orders/{order}/events"), body).await.assert_status(200);
    };
    event(by_hand, json!({"event": "payment-received"})).await;
    event(short, json!({"event": "payment-received", "amount": 90})).await;
    shop.change(json!({"verification": {"identity": "pending"}})).await;
    event(held, json!({"event": "payment-received"})).await;
    bank.event(received(by_bank, "b", 100)).await.assert_status(200);
    shop.change(json!({"verification": {"identity": "verified"}})).await;
    // The payouts wait for no cancellation, whichever was commanded first, nor it for them.
    let leased = shop.connector.lease(100).await;
    let of = |kind: &str| {
        let of_kind = leased.iter().filter(|command| command["kind"] == kind);
        let mut orders: Vec<_> = of_kind.map(|one| one["body"]["orderId"].as_i64()).collect();
        orders.sort_unstable();
        orders
    };
    let sorted = |orders: &[i64]| {
        let mut orders: Vec<_> = orders.iter().copied().map(Some).collect();
        orders.sort_unstable();
        orders
    };
    assert_eq!(of("payment.cancel"), sorted(&[by_hand, by_bank, short, held]));
    assert_eq!(of("payout.send"), sorted(&[by_hand, by_bank, held]));
    event(short, json!({"event": "refund"})).await;
    assert!(shop.connector.lease(100).await.is_empty(), "it is cancelled already");
}

#[tokio::test]
async fn a_refund_by_another_connector_waits_for_no_cancellation() {
    let shop = Shop::open().await;
    let order = shop.order(100, &Wallet::new(7).address()).await;
    let bank = Connector::new(&shop.context, "bank", &["payment.create", "payment.refund"]).await;
    shop.connector.answer_next("done", json!({})).await;
    bank.event(received(order, "first", 90)).await.assert_status(200);
    bank.event(received(order, "second", 100)).await.assert_status(200);
    let refunds = bank.lease(10).await;
    assert_eq!(refunds.len(), 1, "{refunds:?}");
    assert_eq!(refunds[0]["kind"], "payment.refund");
    assert_eq!(shop.connector.answer_next("done", json!({})).await["kind"], "payment.cancel");
}

#[tokio::test]
async fn a_paid_order_cancels_nothing() {
    let shop = Shop::open().await;
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    shop.context.clock().advance(TimeDelta::seconds(901));
    assert_eq!(expire_due(shop.context.core()).await.unwrap(), 0);
    let kinds: Vec<_> =
        shop.connector.lease(100).await.iter().map(|command| command["kind"].clone()).collect();
    assert_eq!((kinds, shop.payouts(order).await), (vec![json!("payout.send")], 1));
}
