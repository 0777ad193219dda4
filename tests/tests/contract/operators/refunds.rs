//! Payments and refunds that one operator may not decide alone.

use http::Method;
use rampart_tests::buyer::WALLET;
use rampart_tests::cluster::commit_once_awaited;
use rampart_tests::order_fixture::OrderFixture;

use super::approvals::{PAYMENTS, decide, held, received};
use super::*;

#[tokio::test]
async fn parts_of_one_payment_count_together() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let seen = context.admin(Method::POST, PAYMENTS, received("1", json!(5000), "EUR")).await;
    let seen = seen.assert_status(201).json();
    let refund = format!("{PAYMENTS}/{}/refund", seen["id"].as_str().unwrap());
    let part = |amount: u32| json!({"amount": amount, "reason": "nobody's"});
    ada.call(Method::POST, &refund, part(900)).await.assert_status(200);
    ada.call(Method::POST, &refund, part(100)).await.assert_status(200);
    held(&ada, Method::POST, &refund, part(1)).await;
    let path = format!("{PAYMENTS}/{}", seen["id"].as_str().unwrap());
    let read = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    assert_eq!(read["refundRequested"], 1000);
}

/// A large order that is paid.
async fn large_order(context: &TestContext) -> OrderFixture {
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(context, &acme, None, None).await;
    sqlx::query("update buy_order set fiat_amount = 2000, crypto_amount = 0.04")
        .execute(context.db())
        .await
        .unwrap();
    order.event(context, "payment-received").await.assert_status(200);
    order
}

/// A part of an order's payment that was given back by hand.
fn given_back(order: &OrderFixture, reference: &str, amount: u32) -> Value {
    json!({"kind": "refunded", "amount": amount, "currency": "EUR", "orderId": order.id,
        "providerReference": reference, "reason": "sent back"})
}

#[tokio::test]
async fn parts_of_one_order_that_are_told_of_by_hand_count_together() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let order = large_order(&context).await;
    let back = |reference: &str, amount: u32| given_back(&order, reference, amount);
    ada.call(Method::POST, PAYMENTS, back("1", 900)).await.assert_status(201);
    ada.call(Method::POST, PAYMENTS, back("1", 900)).await.assert_status(200);
    ada.call(Method::POST, PAYMENTS, back("2", 100)).await.assert_status(201);
    let approval = held(&ada, Method::POST, PAYMENTS, back("3", 1000)).await;
    assert_ne!(order.seen(&context).await["status"], "refunded");
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    ada.call(Method::POST, PAYMENTS, back("3", 1000)).await.assert_status(201);
    assert_eq!(order.seen(&context).await["status"], "refunded");
}

#[tokio::test]
async fn begin_and_end_of_transfers_count_together() {
    let context = TestContext::start().await;
    let [ada, _] = treasurers(&context).await;
    let order = large_order(&context).await;
    ada.call(Method::POST, PAYMENTS, given_back(&order, "1", 900)).await.assert_status(201);
    let sent = [
        "alter table payment disable trigger user",
        "update payment set kind = 'transfer-sent' where kind = 'refunded'",
    ];
    for statement in sent {
        sqlx::query(statement).execute(context.db()).await.unwrap();
    }
    let mut completed = given_back(&order, "2", 200);
    completed["kind"] = json!("transfer-completed");
    held(&ada, Method::POST, PAYMENTS, completed).await;
}

#[tokio::test]
async fn of_two_parts_at_once_that_exceed_the_bound_together_one_is_recorded() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let order = large_order(&context).await;
    let mut somebody = context.db().begin().await.unwrap();
    sqlx::query("select order_id from buy_order for update").execute(&mut *somebody).await.unwrap();
    let (one, other) = (given_back(&order, "1", 600), given_back(&order, "2", 600));
    let (one, other, ()) = futures::join!(
        ada.call(Method::POST, PAYMENTS, one),
        bob.call(Method::POST, PAYMENTS, other),
        commit_once_awaited(context.db(), somebody),
    );
    let mut statuses = [one.status(), other.status()];
    statuses.sort_unstable();
    assert!(matches!(statuses, [201, 202 | 409]), "{statuses:?}");
}

#[tokio::test]
async fn all_that_has_arrived_for_a_small_order_is_not_given_back_by_one_person() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let path = format!("/admin/v1/orders/{}/events", order.id);
    let back = json!({"event": "refund", "reason": "paid too much"});
    let paid = json!({"event": "payment-received", "amount": 1000.01});
    context.admin(Method::POST, &path, paid).await.assert_status(200);
    held(&ada, Method::POST, &path, back.clone()).await;

    let order = OrderFixture::order(&context, &acme, None, None).await;
    let path = format!("/admin/v1/orders/{}/events", order.id);
    let paid = json!({"event": "payment-received", "amount": 1000});
    context.admin(Method::POST, &path, paid).await.assert_status(200);
    ada.call(Method::POST, &path, back).await.assert_status(200);
}

#[tokio::test]
async fn a_call_that_cannot_be_carried_out_asks_nobody() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let user = acme.user("ada").await.log_in().await;
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let large = context.admin(Method::POST, PAYMENTS, received("1", json!(2000), "EUR")).await;
    let large = large.assert_status(201).json();
    let refund = format!("{PAYMENTS}/{}/refund", large["id"].as_str().unwrap());
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let events = format!("/admin/v1/orders/{}/events", order.id);
    let plans = format!("/admin/v1/users/{}/dca-codes", user["uuid"].as_str().unwrap());
    let plan = json!({"cryptoCurrency": "BTC", "walletAddress": WALLET});
    let plan = context.admin(Method::POST, &plans, plan).await.assert_status(201).json();
    let deposits = format!("/admin/v1/dca-codes/{}/deposits", plan["code"].as_str().unwrap());
    for (path, body) in [
        (PAYMENTS, received("2", json!(1000.001), "EUR")),
        (PAYMENTS, received("2", json!(0.000_000_001), "BTC")),
        (&*refund, json!({"amount": 1000.001, "reason": "twice"})),
        (&*events, json!({"event": "payment-received", "amount": 1000.001})),
        (&*events, json!({"event": "coins-sent"})),
        (&*events, json!({"event": "paid-out"})),
        (&*deposits, json!({"amount": 1000.001, "currencyCode": "EUR", "reference": "3"})),
    ] {
        ada.call(Method::POST, path, body).await.assert_status(422);
    }
    assert_eq!(ada.get("/admin/v1/approvals").await.json(), json!([]));
}

#[tokio::test]
async fn an_order_that_has_grown_meanwhile_is_not_given_back_by_one_person() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "payment-received").await.assert_status(200);
    let mut somebody = context.db().begin().await.unwrap();
    sqlx::query("update buy_order set fiat_amount = 2000, crypto_amount = 0.04")
        .execute(&mut *somebody)
        .await
        .unwrap();
    let path = format!("/admin/v1/orders/{}/events", order.id);
    let back = json!({"event": "refund", "reason": "paid too much"});
    let commit = commit_once_awaited(context.db(), somebody);
    let (refused, ()) = futures::join!(ada.call(Method::POST, &path, back.clone()), commit);
    let refused = refused.assert_status(409);
    assert!(refused.text().contains("two persons"), "{}", refused.text());
    assert_eq!(order.seen(&context).await["status"], "in progress");
    // By its books, which have not grown, a part of its payout has left: one that waits may have it back.
    order.event(&context, "hold").await.assert_status(200);
    held(&ada, Method::POST, &path, back).await;
}

#[tokio::test]
async fn who_decides_about_orders_reports_no_payment_of_theirs() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let path = format!("/admin/v1/orders/{}/events", order.id);
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let eve = Operator::new(&context, "eve", &["compliance"]).await;
    let paid = json!({"event": "payment-received"});
    for event in [
        paid.clone(),
        json!({"event": "coins-sent", "transactionId": "ab12"}),
        json!({"event": "confirmed-on-chain"}),
        json!({"event": "paid-out"}),
    ] {
        let refused = eve.call(Method::POST, &path, event).await;
        assert!(refused.assert_status(403).text().contains("treasury"));
    }
    let large = json!({"event": "payment-received", "amount": 1000.01});
    let approval = held(&ada, Method::POST, &path, large).await;
    assert_eq!(decide(&eve, &approval, "grant").await, 403);
    ada.call(Method::POST, &path, paid).await.assert_status(200);
    let hold = json!({"event": "hold", "reason": "source of funds"});
    eve.call(Method::POST, &path, hold).await.assert_status(200);
}

#[tokio::test]
async fn a_large_refund_is_agreed_to_by_treasury_and_withdrawn_by_whoever_asked() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let path = format!("/admin/v1/orders/{}/events", order.id);
    let paid = json!({"event": "payment-received", "amount": 1000.01});
    context.admin(Method::POST, &path, paid).await.assert_status(200);
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let bob = Operator::new(&context, "bob", &["compliance"]).await;
    let eve = Operator::new(&context, "eve", &["compliance"]).await;
    let back = json!({"event": "refund", "reason": "source of funds"});
    let approval = held(&eve, Method::POST, &path, back.clone()).await;
    for word in ["grant", "refuse"] {
        assert_eq!(decide(&bob, &approval, word).await, 403);
    }
    assert_eq!(decide(&eve, &approval, "grant").await, 403);
    assert_eq!(decide(&eve, &approval, "refuse").await, 204);
    let approval = held(&eve, Method::POST, &path, back.clone()).await;
    assert_eq!(decide(&ada, &approval, "grant").await, 204);
    eve.call(Method::POST, &path, back).await.assert_status(200);
}
