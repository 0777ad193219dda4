//! A payment that was begun at a provider ends with its order.

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
