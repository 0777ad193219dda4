//! Payments that an operator has booked, and that their provider tells of afterwards.

use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, order, paid, payable_order, status};
use super::refunds::{again, arrivals, owed, refund, refund_by_hand};
use super::*;
use crate::payments::problems;

/// An order of 100 euros that an operator's event has paid, and whose coins are under way.
async fn paid_by_hand(
    context: &TestContext,
    partner: &Partner,
    connector: &Connector,
) -> OrderFixture {
    let order = payable_order(partner, connector, 100).await;
    order.event(context, "payment-received").await.assert_status(200);
    let payout = connector.answer_next("done", json!({"transactionId": "tx"})).await;
    assert_eq!(payout["kind"], "payout.send");
    assert_eq!(connector.answer_next("done", Value::Null).await["kind"], "payment.cancel");
    order
}

/// Lets the connector make the refund that it is commanded.
async fn is_given_back(connector: &Connector) {
    assert_eq!(connector.answer_next("done", Value::Null).await["kind"], "payment.refund");
}

#[tokio::test]
async fn money_that_an_operator_has_booked_is_not_given_back_when_its_provider_tells_of_it() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_by_hand(&context, &acme, &connector).await;
    connector.event(paid(&order, 100)).await.assert_status(200);
    assert!(connector.lease(10).await.is_empty(), "an operator decides");
    let both = ["provider: 100", "provider: 100", "suspense: -100"];
    assert_eq!(owed(&context, "acme").await, both);
    // It was the same money: what was booked by hand had never come.
    refund_by_hand(&context, &order, "EUR").await;
    assert_eq!(owed(&context, "acme").await, ["provider: 100"]);
    assert_eq!(status(&context, &order).await, "in progress");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn more_than_an_operator_has_booked_is_given_back() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_by_hand(&context, &acme, &connector).await;
    let mut other = paid(&order, 70);
    (other["id"], other["providerReference"]) = (json!("other"), json!("pay-other"));
    connector.event(other).await.assert_status(200);
    is_given_back(&connector).await;
    let same = paid(&order, 100);
    connector.event(same.clone()).await.assert_status(200);
    assert!(connector.lease(10).await.is_empty(), "it may be what the operator has booked");
    connector.event(again(&order)).await.assert_status(200);
    // It was booked once.
    is_given_back(&connector).await;
    let waits = arrivals(&context, &order).await;
    let mut waits = waits.iter();
    let waits = waits.find(|waits| waits["providerReference"] == same["providerReference"]);
    assert_eq!(refund(&context, waits.unwrap(), json!(100)).await, 200);
    is_given_back(&connector).await;
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_payment_that_nobody_has_begun_is_not_made_for_an_order_that_is_paid() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = order(&acme, 100).await;
    order.event(&context, "payment-received").await.assert_status(200);
    let payout = connector.answer_next("done", json!({"transactionId": "tx"})).await;
    assert_eq!(payout["kind"], "payout.send");
    assert!(connector.lease(10).await.is_empty());
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_payment_that_nobody_has_begun_is_not_made_for_an_order_that_waits_with_its_money() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (released, refunded) = (order(&acme, 100).await, order(&acme, 100).await);
    for order in [&released, &refunded] {
        let path = format!("/admin/v1/orders/{}/events", order.id);
        let body = json!({"event": "payment-received", "amount": 90});
        context.admin(Method::POST, &path, body).await.assert_status(200);
        assert_eq!(status(&context, order).await, "blocked");
    }
    assert!(connector.lease(10).await.is_empty(), "both were paid");
    released.event(&context, "release").await.assert_status(200);
    let payout = connector.answer_next("done", json!({"transactionId": "tx"})).await;
    assert_eq!(
        (&payout["kind"], &payout["body"]["orderId"]),
        (&json!("payout.send"), &json!(released.id))
    );
    refunded.event(&context, "refund").await.assert_status(200);
    assert!(connector.lease(10).await.is_empty());
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_payment_that_a_connector_has_begun_ends_before_the_coins_of_its_order_go() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = order(&acme, 100).await;
    let create = connector.lease(10).await.remove(0);
    order.event(&context, "payment-received").await.assert_status(200);
    assert!(connector.lease(10).await.is_empty());
    connector.report(&create, "done", json!({"providerReference": "pay"})).await.assert_status(200);
    let leased = connector.lease(10).await;
    let kinds: Vec<_> = leased.iter().map(|command| &command["kind"]).collect();
    assert_eq!(kinds, ["payout.send", "payment.cancel"]);
    assert_eq!(leased[1]["body"]["providerReference"], "pay");
}
