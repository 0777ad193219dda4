//! Refunds of which an operator and a connector tell by their provider's name: one fact.

use rampart_tests::answer::Answer;
use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, paid_order, status};
use super::refunds::{overpaid, owed, refunded};
use super::refunds_by_hand::{amounts, given_back, tell, told, told_partner};
use super::*;
use crate::payments::problems;

/// An operator's record that so much of the order's money was given back, under this reference.
async fn record(
    context: &TestContext,
    order: &OrderFixture,
    reference: &str,
    amount: u32,
) -> Answer {
    let body = json!({"partner": "acme", "kind": "refunded", "amount": amount, "currency": "EUR",
        "connector": "manual", "providerReference": reference, "orderId": order.id,
        "reason": "seen at the provider"});
    context.admin(Method::POST, "/admin/v1/payments", body).await
}

#[tokio::test]
async fn a_refund_that_is_recorded_by_its_name_and_told_afterwards_is_booked_once() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let reference = format!("re-{}", order.id);
    record(&context, &order, &reference, 100).await.assert_status(201);
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(owed(&context, "acme").await, ["provider: -100", "provider: 100"]);
    let mut event = told(&order, "re", 100);
    tell(&connector, event.clone()).await;
    assert_eq!(owed(&context, "acme").await, [""; 0], "it has left its provider");
    event["id"] = json!("again");
    assert!(tell(&connector, event).await, "it is told already");
    record(&context, &order, &reference, 100).await.assert_status(200);
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_that_was_told_is_not_booked_again_by_its_name() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let reference = format!("re-{}", order.id);
    assert!(!tell(&connector, told(&order, "re", 100)).await);
    let known = record(&context, &order, &reference, 100).await.assert_status(200).json();
    assert_eq!(
        (&known["duplicate"], &known["providerReference"], &known["amount"]),
        (&json!(true), &json!(reference), &json!(100))
    );
    assert_ne!(known["connector"], "manual");
    record(&context, &order, &reference, 40).await.assert_status(409);
    assert_eq!(given_back(&context, &order).await, amounts(&[100]));
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    // Nor is one by the order's event that its connector has confirmed.
    let order = paid_order(&acme, &connector).await;
    order.event(&context, "refund").await.assert_status(200);
    assert!(tell(&connector, told(&order, "re", 100)).await);
    record(&context, &order, &format!("re-{}", order.id), 100).await.assert_status(200);
    assert_eq!(given_back(&context, &order).await, amounts(&[100]));
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn of_a_refund_that_is_recorded_and_told_by_one_name_at_once_one_is_booked() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for _ in 0..8 {
        let order = paid_order(&acme, &connector).await;
        let reference = format!("re-{}", order.id);
        let (by_hand, by_provider) = tokio::join!(
            record(&context, &order, &reference, 100),
            connector.event(told(&order, "re", 100))
        );
        assert!([200, 201].contains(&by_hand.status()), "{}", by_hand.text());
        by_provider.assert_status(200);
        assert_eq!(status(&context, &order).await, "refunded");
        assert_eq!(owed(&context, "acme").await, [""; 0]);
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn what_is_told_beyond_what_was_recorded_by_its_name_is_given_back_besides() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    record(&context, &order, &format!("re-{}", order.id), 40).await.assert_status(201);
    assert_eq!(status(&context, &order).await, "blocked");
    assert!(!tell(&connector, told(&order, "re", 100)).await);
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(status(&context, &order).await, "refunded");
    let whole = json!([{"amount": 100, "currencyCode": "EUR"}]);
    assert_eq!(told_partner(&context, &order).await, whole);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_by_command_that_is_recorded_by_its_name_is_told_afterwards() {
    let context = TestContext::start().await;
    let (connector, order, _, command) = overpaid(&context).await;
    connector.report(&command, "done", Value::Null).await.assert_status(200);
    let event = refunded(&command, 30);
    let reference = event["providerReference"].as_str().unwrap();
    record(&context, &order, reference, 30).await.assert_status(201);
    order.event(&context, "refund").await.assert_status(409);
    tell(&connector, event.clone()).await;
    assert_eq!(owed(&context, "acme").await, ["provider: 100"]);
    order.event(&context, "refund").await.assert_status(200);
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
