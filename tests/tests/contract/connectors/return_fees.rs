//! Money of a refunded sale that its bank had kept when the rest came back, and that comes back later.

use rampart_tests::going_live::CONNECTOR;
use rust_decimal::Decimal;

use super::sale::{number, queue, returned_in_part};
use super::*;
use crate::payments::problems;

/// A sale that was refunded after its money came back without five euros; and the part that came.
async fn refunded(context: &TestContext) -> (Connector, Value, Decimal) {
    let (connector, sale, part) = returned_in_part(context).await;
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    let refund = json!({"event": "refund", "reason": "asked for"});
    context.admin(Method::POST, &path, refund).await.assert_status(200);
    assert_eq!(sums(context).await, ["fee_payment_method EUR 5", "provider EUR -5"]);
    assert_eq!(problems(context).await, [Value::Null; 0]);
    (connector, sale, part)
}

/// Tells that so many euros of a sale came back under this reference; true for the first time.
async fn is_new(connector: &Connector, sale: &Value, reference: &str, euros: u32) -> bool {
    let event = json!({"id": format!("returned-{reference}"), "kind": "transfer.returned",
        "occurredAt": "2026-03-02T13:00:00Z", "partner": "acme", "orderId": sale["orderId"],
        "providerReference": reference, "amount": euros, "currency": "EUR"});
    connector.event(event).await.assert_status(200).json() == json!({"duplicate": false})
}

/// The sums of all books that are not zero.
async fn sums(context: &TestContext) -> Vec<String> {
    let sums = "select a.kind || ' ' || a.currency || ' ' || trim_scale(sum(l.amount))::text \
        from ledger_posting l join ledger_account a using (client_id, account_id) \
        group by a.kind, a.currency having sum(l.amount) <> 0 order by a.kind";
    sqlx::query_scalar(sums).fetch_all(context.db()).await.unwrap()
}

#[tokio::test]
async fn what_a_bank_has_kept_of_a_refunded_sales_money_is_a_fee_until_it_comes_back() {
    let context = TestContext::start().await;
    let (connector, sale, part) = refunded(&context).await;
    assert!(is_new(&connector, &sale, "rest", 5).await);
    assert!(!is_new(&connector, &sale, "rest", 5).await);
    assert_eq!(sums(&context).await, [""; 0]);
    assert_eq!(queue(&context).await, [Value::Null; 0]);

    let statement = format!(
        "date,amount,currency,providerReference\n2026-03-01,-{sent},EUR,sepa-1\n\
         2026-03-01,{part},EUR,sepa-1\n2026-03-02,5,EUR,rest\n",
        sent = part + Decimal::from(5)
    );
    let path = format!("/admin/v1/reconciliations?connector={CONNECTOR}");
    let made = context.admin_bytes(Method::POST, &path, statement.into()).await;
    let made = made.assert_status(201).json();
    assert_eq!((&made["matched"], &made["differences"]), (&json!(3), &json!([])));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn what_comes_back_beyond_the_fee_waits_until_it_is_given_back() {
    let context = TestContext::start().await;
    let (connector, sale, _part) = refunded(&context).await;
    assert!(is_new(&connector, &sale, "first", 2).await);
    assert_eq!(sums(&context).await, ["fee_payment_method EUR 3", "provider EUR -3"]);
    assert_eq!(queue(&context).await, [Value::Null; 0]);
    assert!(is_new(&connector, &sale, "second", 4).await);
    assert_eq!(sums(&context).await, ["provider EUR 1", "suspense EUR -1"]);
    assert_eq!(queue(&context).await, [json!([sale["orderId"].to_string(), ["returned"]])]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);

    let body = json!({"partner": "acme", "kind": "refunded", "amount": 1, "currency": "EUR",
        "providerReference": "back", "orderId": sale["orderId"], "reason": "sent back"});
    context.admin(Method::POST, "/admin/v1/payments", body).await.assert_status(201);
    assert_eq!(sums(&context).await, [""; 0]);
    assert_eq!(queue(&context).await, [Value::Null; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

/// What the books have at each provider that is not zero, in euros.
async fn at_providers(context: &TestContext) -> Vec<String> {
    let sums = "select a.holder || ' ' || trim_scale(sum(l.amount))::text \
        from ledger_posting l join ledger_account a using (client_id, account_id) \
        where a.kind = 'provider' group by a.holder having sum(l.amount) <> 0 order by a.holder";
    sqlx::query_scalar(sums).fetch_all(context.db()).await.unwrap()
}

#[tokio::test]
async fn money_of_a_sale_that_left_by_two_ways_is_back_where_it_left() {
    let context = TestContext::start().await;
    let (_connector, sale, part) = returned_in_part(&context).await;
    let by_hand = json!({"partner": "acme", "kind": "transfer-sent", "amount": number(part),
        "currency": "EUR", "providerReference": "by-hand", "orderId": sale["orderId"],
        "reason": "by hand"});
    context.admin(Method::POST, "/admin/v1/payments", by_hand).await.assert_status(201);
    let kept = format!("{CONNECTOR} -5");
    let by_hand = format!("manual -{}", part.normalize());
    assert_eq!(at_providers(&context).await, [kept.clone(), by_hand]);
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    let refund = json!({"event": "refund", "reason": "asked for"});
    context.admin(Method::POST, &path, refund).await.assert_status(200);
    assert_eq!(at_providers(&context).await, [kept], "by hand it is with us again");
    assert_eq!(sums(&context).await, ["fee_payment_method EUR 5", "provider EUR -5"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
