//! Money that names an order which its partner has not: it waits for an operator, who can do with it
//! what can be done with any other.

use super::*;

const UNKNOWN: i64 = 1_000_000_000_000_007;

/// A payment that names an order of nobody.
async fn stray(context: &TestContext, reference: &str) -> Value {
    let named = json!({"orderId": UNKNOWN});
    pay(context, reference, named).await.assert_status(201).json()
}

fn path(payment: &Value, what: &str) -> String {
    format!("{PAYMENTS}/{}/{what}", payment["id"].as_str().unwrap())
}

#[tokio::test]
async fn it_is_listed_as_unmatched_and_matched_to_the_order_that_was_meant() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let payment = stray(&context, "bank-1").await;
    assert_eq!(payment["state"], "unmatched");
    let again =
        pay(&context, "bank-1", json!({"orderId": UNKNOWN})).await.assert_status(200).json();
    assert_eq!(again["state"], "unmatched");
    assert_eq!(list(&context, "?state=unmatched").await.len(), 1);
    assert_eq!(list(&context, "?state=suspense").await.len(), 0);
    context.core().measure_money().await.unwrap();
    let waiting =
        |state: &str| context.core().metrics.payments_waiting.with_label_values(&[state]).get();
    assert_eq!((waiting("unmatched"), waiting("suspense")), (1, 0));
    let to = json!({"orderId": order.id});
    let matched = context.admin(Method::POST, &path(&payment, "match"), to).await;
    assert_eq!(matched.assert_status(200).json()["state"], "matched");
    assert_eq!(status(&context, &order).await, "in progress");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn it_is_given_back() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let payment = stray(&context, "bank-1").await;
    let refund = json!({"reason": "nobody's"});
    let asked = context.admin(Method::POST, &path(&payment, "refund"), refund.clone()).await;
    assert_eq!(asked.assert_status(200).json()["amount"], 100);
    context.admin(Method::POST, &path(&payment, "refund"), refund).await.assert_status(409);
    pay(&context, "bank-2", json!({"kind": "refunded"})).await.assert_status(201);
    assert_eq!(balances(&context).await, [""; 0]);
}
