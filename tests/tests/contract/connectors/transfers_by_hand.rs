//! Transfers of sales that an operator tells of, and their connector, too: they leave its provider.

use rampart_tests::going_live::CONNECTOR;

use super::sale::{deposited, queue, transfers};
use super::*;
use crate::payments::problems;

/// The connectors whose accounts hold euros of the partner, or owe them.
async fn holders(context: &TestContext) -> Vec<String> {
    let path = "/admin/v1/ledger/balances?partner=acme&currency=EUR";
    let balances = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    let lines = balances.as_array().unwrap().iter();
    let lines = lines.filter(|line| line["kind"] == "provider" && line["balance"] != json!(0));
    lines.map(|line| line["holder"].as_str().unwrap().to_owned()).collect()
}

/// An operator's record of a transfer by the name that its bank has for it.
async fn record(context: &TestContext, transfer: &Value, kind: &str) {
    let body = json!({"partner": "acme", "kind": kind, "amount": transfer["body"]["amount"],
        "currency": "EUR", "providerReference": "sepa-1", "orderId": transfer["body"]["orderId"],
        "reason": "seen on the statement"});
    context.admin(Method::POST, "/admin/v1/payments", body).await.assert_status(201);
}

/// The connector's own event about its transfer.
async fn tell(connector: &Connector, transfer: &Value, kind: &str) {
    let event = json!({"id": kind, "kind": kind, "commandId": transfer["id"],
        "occurredAt": "2026-03-01T13:00:00Z", "providerReference": "sepa-1",
        "amount": transfer["body"]["amount"], "currency": "EUR"});
    connector.event(event).await.assert_status(200);
}

#[tokio::test]
async fn a_transfer_that_is_told_by_hand_first_has_left_its_connectors_provider() {
    for by_hand in
        [&["transfer-sent"][..], &["transfer-completed"], &["transfer-sent", "transfer-completed"]]
    {
        let context = TestContext::start().await;
        let (connector, sale) = deposited(&context).await;
        let transfer = transfers(&context, &connector).await.remove(0);
        for kind in by_hand {
            record(&context, &transfer, kind).await;
        }
        assert_eq!(holders(&context).await, ["manual"], "{by_hand:?}");
        let sent = json!({"providerReference": "sepa-1"});
        connector.report(&transfer, "done", sent).await.assert_status(200);
        assert_eq!(holders(&context).await, [CONNECTOR], "{by_hand:?}");
        tell(&connector, &transfer, "transfer.completed").await;
        assert_eq!(holders(&context).await, [CONNECTOR], "{by_hand:?}");
        let path = format!("/admin/v1/orders/{}", sale["orderId"]);
        let seen = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
        assert_eq!(seen["status"], "completed", "{by_hand:?}");
        assert_eq!(queue(&context).await, [Value::Null; 0], "{by_hand:?}");
        assert_eq!(problems(&context).await, [Value::Null; 0], "{by_hand:?}");
    }
}

#[tokio::test]
async fn a_transfer_that_is_told_by_hand_afterwards_stays_at_its_connectors_provider() {
    let context = TestContext::start().await;
    let (connector, _sale) = deposited(&context).await;
    let transfer = transfers(&context, &connector).await.remove(0);
    let sent = json!({"providerReference": "sepa-1"});
    connector.report(&transfer, "done", sent).await.assert_status(200);
    record(&context, &transfer, "transfer-sent").await;
    tell(&connector, &transfer, "transfer.completed").await;
    assert_eq!(holders(&context).await, [CONNECTOR]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn money_whose_arrival_an_operators_event_tells_of_first_has_left_its_provider() {
    let context = TestContext::start().await;
    let (connector, sale) = deposited(&context).await;
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    let paid_out = json!({"event": "paid-out"});
    context.admin(Method::POST, &path, paid_out).await.assert_status(200);
    assert_eq!(holders(&context).await, ["manual"]);
    let completed = json!({"id": "seen", "kind": "transfer.completed", "partner": "acme",
        "orderId": sale["orderId"], "occurredAt": "2026-03-01T13:00:00Z",
        "providerReference": "sepa-1"});
    connector.event(completed).await.assert_status(200);
    assert_eq!(holders(&context).await, [CONNECTOR]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_transfer_by_hand_that_its_connector_tells_of_as_returned_is_at_neither() {
    let context = TestContext::start().await;
    let (connector, _sale) = deposited(&context).await;
    let transfer = transfers(&context, &connector).await.remove(0);
    record(&context, &transfer, "transfer-sent").await;
    tell(&connector, &transfer, "transfer.returned").await;
    assert_eq!(holders(&context).await, [""; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn of_a_transfer_that_is_told_by_hand_and_by_its_connector_at_once_one_has_left() {
    for _ in 0..4 {
        let context = TestContext::start().await;
        let (connector, _sale) = deposited(&context).await;
        let transfer = transfers(&context, &connector).await.remove(0);
        tokio::join!(
            record(&context, &transfer, "transfer-completed"),
            tell(&connector, &transfer, "transfer.completed")
        );
        assert_eq!(holders(&context).await, [CONNECTOR]);
        assert_eq!(queue(&context).await, [Value::Null; 0]);
        assert_eq!(problems(&context).await, [Value::Null; 0]);
    }
}
