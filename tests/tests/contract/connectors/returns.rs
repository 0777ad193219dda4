//! Transfers that come back more than once, each return under a reference of its own.

use rampart_tests::going_live::CONNECTOR;
use rust_decimal::Decimal;

use super::sale::{deposited, number, transfers};
use super::*;
use crate::payments::problems;

/// The transfer of a sale's money, which has left as `T1`.
async fn sent(context: &TestContext) -> (Connector, Value) {
    let (connector, _sale) = deposited(context).await;
    let transfer = transfers(context, &connector).await.remove(0);
    let result = json!({"providerReference": "T1"});
    connector.report(&transfer, "done", result).await.assert_status(200);
    (connector, transfer)
}

/// A return of this amount of a transfer, under this reference.
fn returned(transfer: &Value, reference: &str, amount: Decimal) -> Value {
    json!({"id": format!("transfer.returned/{reference}"), "kind": "transfer.returned",
        "occurredAt": "2026-03-02T00:00:00Z", "commandId": transfer["id"],
        "providerReference": reference, "originalReference": "T1", "earlierReferences": ["T1"],
        "amount": number(amount), "currency": "EUR"})
}

/// Reports it; true if it says nothing new.
async fn is_known(connector: &Connector, event: Value) -> bool {
    connector.event(event).await.assert_status(200).json()["duplicate"].as_bool().unwrap()
}

/// The money that has left the provider, by the books.
async fn left(context: &TestContext) -> Decimal {
    let left = "select -sum(l.amount) from ledger_posting l \
        join ledger_account a using (client_id, account_id) \
        where a.kind = 'provider' and a.currency = 'EUR'";
    sqlx::query_scalar(left).fetch_one(context.db()).await.unwrap()
}

#[tokio::test]
async fn each_return_of_a_transfer_counts_once_by_its_own_reference() {
    let context = TestContext::start().await;
    let (connector, transfer) = sent(&context).await;
    let whole = left(&context).await;
    let part = whole - Decimal::from(5);
    for (reference, known, expected) in [
        ("bank-2", false, whole - part),
        ("bank-3", false, whole - part - part),
        ("bank-2", true, whole - part - part),
        ("bank-4", false, whole - part - part - part),
    ] {
        let told = is_known(&connector, returned(&transfer, reference, part)).await;
        assert_eq!((told, left(&context).await), (known, expected), "{reference}");
        assert_eq!(problems(&context).await, [Value::Null; 0], "{reference}");
    }
    let line = |reference: &str| format!("2026-03-02,{part},EUR,{reference},T1,AC04\n");
    let statement = format!(
        "date,amount,currency,providerReference,endToEndId,returnReason\n\
         2026-03-01,-{whole},EUR,bank-1,T1,\n{}",
        ["bank-2", "bank-3", "bank-4"].map(line).concat()
    );
    let path = format!("/admin/v1/reconciliations?connector={CONNECTOR}");
    let made = context.admin_bytes(Method::POST, &path, statement.into()).await;
    let made = made.assert_status(201).json();
    assert_eq!((&made["matched"], &made["differences"]), (&json!(4), &json!([])));
}

#[tokio::test]
async fn a_return_that_was_told_by_its_transfers_reference_is_that_of_one_event() {
    let context = TestContext::start().await;
    let (connector, transfer) = sent(&context).await;
    let whole = left(&context).await;
    let part = whole - Decimal::from(5);
    let mut earlier = returned(&transfer, "T1", part);
    (earlier["originalReference"], earlier["earlierReferences"]) = (Value::Null, Value::Null);
    assert!(!is_known(&connector, earlier).await);
    assert!(is_known(&connector, returned(&transfer, "bank-2", part)).await);
    assert_eq!(left(&context).await, whole - part);
    let rest = returned(&transfer, "bank-3", whole - part);
    assert!(!is_known(&connector, rest).await, "it is of another amount");
    assert_eq!(left(&context).await, Decimal::ZERO);
    let equal = returned(&transfer, "bank-4", part);
    assert!(!is_known(&connector, equal).await, "the earlier one is that of one event");
    assert_eq!(left(&context).await, -part);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_return_by_hand_of_what_was_told_leaves_the_next_one_to_be_booked() {
    let context = TestContext::start().await;
    let (connector, transfer) = sent(&context).await;
    let whole = left(&context).await;
    let part = whole - Decimal::from(5);
    assert!(!is_known(&connector, returned(&transfer, "bank-2", part)).await);
    let by_hand = json!({"partner": "acme", "kind": "transfer-returned", "amount": number(part),
        "currency": "EUR", "connector": "manual", "providerReference": "hand",
        "orderId": transfer["body"]["orderId"], "reason": "seen"});
    context.admin(Method::POST, "/admin/v1/payments", by_hand).await.assert_status(201);
    assert_eq!(left(&context).await, whole - part, "it is the same money");
    assert!(!is_known(&connector, returned(&transfer, "bank-3", part)).await);
    assert_eq!(left(&context).await, whole - part - part);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_return_that_an_operator_was_first_to_tell_of_is_not_of_what_was_sent_since() {
    let context = TestContext::start().await;
    let (connector, transfer) = sent(&context).await;
    let whole = left(&context).await;
    let part = whole - Decimal::from(5);
    let order = &transfer["body"]["orderId"];
    let by_hand = json!({"partner": "acme", "kind": "transfer-returned", "amount": number(part),
        "currency": "EUR", "connector": "manual", "providerReference": "hand",
        "orderId": order, "reason": "seen"});
    context.admin(Method::POST, "/admin/v1/payments", by_hand).await.assert_status(201);
    let path = format!("/admin/v1/orders/{order}/events");
    let release = async || {
        let event = json!({"event": "release"});
        context.admin(Method::POST, &path, event).await.assert_status(200);
        transfers(&context, &connector).await
    };
    let again = release().await.remove(0);
    assert_eq!(again["body"]["amount"], number(part));
    let result = json!({"providerReference": "T2"});
    connector.report(&again, "done", result).await.assert_status(200);
    assert_eq!(left(&context).await, whole);
    assert!(!is_known(&connector, returned(&transfer, "bank-2", part)).await);
    assert_eq!(left(&context).await, whole, "what was sent again is still out");
    assert!(release().await.is_empty(), "it is not sent once more");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
