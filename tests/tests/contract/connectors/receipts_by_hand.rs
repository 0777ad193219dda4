//! Payments that an operator has booked, and that their provider tells of afterwards.

use super::purchase::{live, paid, payable_order, status};
use super::refunds::{again, arrivals, owed, refund, refund_by_hand};
use super::*;
use crate::payments::problems;

/// The kinds of the commands that wait for the connector.
async fn commanded(connector: &Connector) -> Vec<String> {
    let commands = connector.lease(10).await.into_iter();
    commands.map(|command| command["kind"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn money_that_an_operator_has_booked_is_not_given_back_when_its_provider_tells_of_it() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = payable_order(&acme, &connector, 100).await;
    order.event(&context, "payment-received").await.assert_status(200);
    connector.event(paid(&order, 100)).await.assert_status(200);
    assert_eq!(commanded(&connector).await, ["payout.send"]);
    let both = ["provider: 100", "provider: 100", "suspense: -100"];
    assert_eq!(owed(&context, "acme").await, both, "an operator decides");
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
    let order = payable_order(&acme, &connector, 100).await;
    order.event(&context, "payment-received").await.assert_status(200);
    let mut other = paid(&order, 70);
    (other["id"], other["providerReference"]) = (json!("other"), json!("pay-other"));
    connector.event(other).await.assert_status(200);
    assert_eq!(commanded(&connector).await, ["payout.send", "payment.refund"]);
    connector.event(paid(&order, 100)).await.assert_status(200);
    assert!(commanded(&connector).await.is_empty(), "it may be what the operator has booked");
    connector.event(again(&order)).await.assert_status(200);
    assert_eq!(commanded(&connector).await, ["payment.refund"], "it was booked once");
    // An operator gives back what waits, too.
    let waits = arrivals(&context, &order).await;
    let waits = waits
        .iter()
        .find(|payment| payment["providerReference"] == paid(&order, 100)["providerReference"]);
    assert_eq!(refund(&context, waits.unwrap(), json!(100)).await, 200);
    assert_eq!(commanded(&connector).await, ["payment.refund"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
