//! Orders that have one number: of two partners, or a purchase and a sale of one.

use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, paid, payable_order};
use super::sale::{ADDRESSES, sell, transfers};
use super::*;
use crate::orders::count;
use crate::payments::problems;

/// Gives the orders that are bought this number.
async fn number_purchases(context: &TestContext, number: i64) {
    sqlx::query("update buy_order set order_id = $1")
        .bind(number)
        .execute(context.db())
        .await
        .unwrap();
}

/// The partners whose order has this status.
async fn partners(context: &TestContext, status: &str) -> Vec<String> {
    sqlx::query_scalar(
        "select c.slug from buy_order o join client c on c.client_id = o.client_id \
         where o.status = $1 order by c.slug",
    )
    .bind(status)
    .fetch_all(context.db())
    .await
    .unwrap()
}

#[tokio::test]
async fn an_event_that_names_no_partner_is_of_neither_order() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let body = json!({"slug": "globex", "name": "Globex", "mode": "live"});
    let globex = context.partner_of(body).await;
    let number = OrderFixture::order(&context, &acme, None, None).await.id;
    OrderFixture::order(&context, &globex, None, None).await;
    number_purchases(&context, number).await;
    let tell = async |kind: &str, members: Value| {
        let mut event = json!({"id": members["id"].as_str().unwrap_or(kind), "kind": kind,
            "orderId": number, "occurredAt": "2026-03-01T12:00:00Z"});
        event.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        connector.event(event).await.assert_status(200);
    };
    // The amount of each would be that of its order.
    tell("payment.failed", json!({"reason": "declined"})).await;
    tell("payout.confirmed", json!({"transactionId": "0xab", "confirmations": 2})).await;
    tell("transfer.completed", json!({"providerReference": "T1"})).await;
    assert_eq!(partners(&context, "pending").await, ["acme", "globex"]);
    assert_eq!(count(&context, "select count(*) from payment").await, 0);

    let confirmed = json!({"id": "stated", "providerReference": "0xcd", "amount": 0.002,
        "asset": "BTC", "confirmations": 2, "networkFee": 0.00002, "networkFeeAsset": "ETH"});
    tell("payout.confirmed", confirmed).await;
    assert_eq!(count(&context, "select count(*) from payment").await, 1);
    let of_orders = "select count(*) from ledger_entry where order_id is not null";
    assert_eq!(count(&context, of_orders).await, 0, "nor is the network's fee of either");

    tell("payment.failed", json!({"id": "named", "partner": "globex"})).await;
    assert_eq!(partners(&context, "cancelled").await, ["globex"]);
    assert_eq!(partners(&context, "pending").await, ["acme"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_event_that_names_no_partner_is_of_the_order_of_its_command() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let body = json!({"slug": "globex", "name": "Globex", "mode": "live"});
    let globex = context.partner_of(body).await;
    let order = payable_order(&acme, &connector, 100).await;
    OrderFixture::order(&context, &globex, None, None).await;
    number_purchases(&context, order.id).await;
    connector.event(paid(&order, 100)).await.assert_status(200);
    let leased = connector.lease(10).await;
    let payout = leased.iter().find(|command| command["kind"] == "payout.send").unwrap();
    connector.report(payout, "done", json!({"transactionId": "0xab"})).await.assert_status(200);
    // It names neither the transaction that was told, nor an amount.
    let confirmed = json!({"id": "c", "kind": "payout.confirmed", "orderId": order.id,
        "commandId": payout["id"], "occurredAt": "2026-03-01T12:10:00Z",
        "transactionId": "0xcd", "confirmations": 2});
    connector.event(confirmed).await.assert_status(200);
    assert_eq!(partners(&context, "completed").await, ["acme"]);
    assert_eq!(partners(&context, "pending").await, ["globex"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_transfer_is_recorded_though_a_purchase_has_the_number_of_its_sale() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let made = json!([{"address": ADDRESSES[0]}, {"address": ADDRESSES[1]}]);
    connector.fill_pool(&context, "ETH", made).await;
    let sale = sell(&acme).await.assert_status(200).json();
    let deposit = json!({"id": "d-1", "kind": "deposit.received", "asset": "ETH", "amount": 0.1,
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": "0xdead",
        "address": sale["walletAddress"], "transactionId": "0xdead", "confirmations": 12});
    connector.event(deposit).await.assert_status(200);
    let transfer = transfers(&context, &connector).await.remove(0);
    OrderFixture::order(&context, &acme, None, None).await;
    number_purchases(&context, sale["orderId"].as_i64().unwrap()).await;
    let sent = json!({"providerReference": "sepa-1"});
    connector.report(&transfer, "done", sent).await.assert_status(200);
    let recorded = "select count(*) from payment where kind = 'transfer-sent'";
    assert_eq!(count(&context, recorded).await, 1);
}
