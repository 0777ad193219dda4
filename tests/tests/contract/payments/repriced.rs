//! Orders that are priced again keep the rules of their quotes, whatever the partner's policy and the
//! catalogue say by then.

use rampart_tests::partner::Partner;

use super::*;
use crate::policies::push;

const FEE: &str = "/admin/v1/partners/acme/policies/fee";

/// An order of a quote over 100 EUR by card.
async fn order(acme: &Partner) -> OrderFixture {
    OrderFixture::confirmed(acme, &acme.token().await, json!(100), json!({})).await
}

/// Releases an order for another amount than its own, and answers it as an operator sees it.
async fn released(context: &TestContext, order: &OrderFixture, amount: u32) -> Value {
    let paid = json!({"orderId": order.id, "amount": amount});
    pay(context, &format!("bank-{}", order.id), paid).await.assert_status(201);
    assert_eq!(status(context, order).await, "blocked");
    order.event(context, "release").await.assert_status(200);
    order.seen(context).await
}

fn assert_members(order: &Value, members: &[(&str, Value)]) {
    for (member, value) in members {
        assert_eq!(order[member], *value, "{member}: {order}");
    }
}

#[tokio::test]
async fn flat_fees_are_those_of_the_quote() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    // It takes one euro of every purchase.
    push(&context, FEE, "hostile").await.assert_status(200);
    let (fixed, estimated) = (order(&acme).await, order(&acme).await);
    sqlx::query("update buy_order set is_estimated_quote = true where order_id = $1")
        .bind(estimated.id)
        .execute(context.db())
        .await
        .unwrap();
    context.admin(Method::DELETE, FEE, json!({})).await.assert_status(204);
    for (method, path, change) in [
        (Method::PATCH, "payment-methods/creditCard", json!({"fees": {"fixed": 2}})),
        (Method::PATCH, "pairs/BTC-EUR", json!({"spreadPercentage": 3})),
        (Method::PUT, "prices/BTC-EUR", json!({"price": 90900})),
    ] {
        let path = format!("/admin/v1/{path}");
        context.admin(method, &path, change).await.assert_status(200);
    }
    context.core().refresh().await.unwrap();
    let fees = [
        ("fiatAmount", json!(82)),
        ("partnerFee", json!(1)),
        ("partnerFeePercentage", json!(1.2195)),
        ("providerFee", json!(0.82)),
        ("paymentMethodFee", json!(2.3)),
        ("networkFee", json!(1.5)),
        ("spreadFee", json!(0)),
    ];
    let fixed = released(&context, &fixed, 82).await;
    assert_members(&fixed, &fees);
    assert_members(&fixed, &[("price", json!(90000)), ("cryptoAmount", json!(0.000_848_66))]);
    let estimated = released(&context, &estimated, 82).await;
    assert_members(&estimated, &fees);
    assert_members(&estimated, &[("price", json!(90900)), ("cryptoAmount", json!(0.000_840_26))]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_least_fee_holds_for_another_payment() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let path = format!("{FEE}?config={{%22minimum%22:2.5}}");
    push(&context, &path, "tiered-fee").await.assert_status(200);
    // The rate of the tier is 1.5 %.
    for (amount, fee) in [(82, json!(2.5)), (150, json!(2.5)), (200, json!(3))] {
        let order = order(&acme).await;
        let released = released(&context, &order, amount).await;
        assert_members(&released, &[("fiatAmount", json!(amount)), ("partnerFee", fee)]);
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_order_that_kept_no_rules_keeps_the_rates_that_its_fees_came_to() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    push(&context, FEE, "hostile").await.assert_status(200);
    let order = order(&acme).await;
    sqlx::query("update buy_order set fee_rules = null where order_id = $1")
        .bind(order.id)
        .execute(context.db())
        .await
        .unwrap();
    let released = released(&context, &order, 82).await;
    let fees = [("partnerFee", json!(0.82)), ("partnerFeePercentage", json!(1))];
    assert_members(&released, &fees);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
