//! Sales in the admin API: operators read them and change their status.

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::Seller;
use crate::orders::count;
use crate::payments::problems;

async fn happen(context: &TestContext, sale: &Value, body: Value) -> Answer {
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    context.admin(Method::POST, &path, body).await
}

async fn found(context: &TestContext, query: &str) -> Vec<Value> {
    let answer = context.admin(Method::GET, &format!("/admin/v1/orders{query}"), json!({})).await;
    let orders = answer.assert_status(200).json();
    orders.as_array().unwrap().iter().map(|order| order["id"].clone()).collect()
}

#[tokio::test]
async fn a_sale_is_moved_to_its_end_and_every_step_is_audited() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let sale = ann.sale(|_| ()).await;
    let paid = json!({"event": "payment-received", "reference": "ab12"});
    let moved = happen(&context, &sale, paid).await.assert_status(200).json();
    assert_eq!((&moved["side"], &moved["status"]), (&json!("sell"), &json!("in progress")));
    assert_eq!((&moved["transactionId"], &moved["partner"]), (&json!("ab12"), &json!("acme")));
    let held = json!({"event": "hold", "reason": "who is it?"});
    happen(&context, &sale, held).await.assert_status(200);
    let reasons = ann.read(&sale).await["orderNotCompletedReasons"].clone();
    assert_eq!(reasons[0]["code"], "041");
    assert_eq!(reasons[0]["description"], "The order is on hold.", "{reasons}");
    for event in ["release", "paid-out"] {
        happen(&context, &sale, json!({"event": event})).await.assert_status(200);
    }
    let path = format!("/admin/v1/orders/{}", sale["orderId"]);
    let seen = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    let steps: Vec<_> = seen["timeline"].as_array().unwrap().iter().collect();
    let causes: Vec<_> = steps.iter().map(|step| step["cause"].as_str().unwrap()).collect();
    assert_eq!(causes, ["confirmed", "payment-received", "held", "released", "paid-out"]);
    assert_eq!((&steps[2]["reason"], &steps[2]["actor"]), (&json!("who is it?"), &json!("admin")));
    let audit = format!("/admin/v1/audit?target={}&action=order.event", sale["orderId"]);
    let audit = context.admin(Method::GET, &audit, json!({})).await.json();
    let rows = audit.as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(
        rows[0]["detail"],
        json!({"event": "paid-out", "from": "in progress",
        "to": "completed"})
    );
}

#[tokio::test]
async fn a_sale_of_fewer_coins_is_priced_as_they_would_have_been_quoted() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let (sale, quoted) = (ann.sale(|_| ()).await, ann.quote("BTC", "0.005").await);
    let spread = json!({"spreadPercentage": 3});
    let changed = context.admin(Method::PATCH, "/admin/v1/pairs/BTC-EUR", spread).await;
    changed.assert_status(200);
    let deposit = json!({"partner": "acme", "connector": "manual", "providerReference": "d-1",
        "kind": "deposit-received", "amount": 0.005, "currency": "BTC", "reason": "seen",
        "orderId": sale["orderId"]});
    context.admin(Method::POST, "/admin/v1/payments", deposit).await.assert_status(201);
    assert_eq!(ann.read(&sale).await["status"], "blocked");
    happen(&context, &sale, json!({"event": "release"})).await.assert_status(200);
    let path = format!("/admin/v1/orders/{}", sale["orderId"]);
    let seen = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    for (member, of_quote) in [
        ("fiatAmount", "fiatAmount"),
        ("cryptoAmount", "cryptoAmount"),
        ("partnerFee", "partnerFee"),
        ("providerFee", "providerFee"),
        ("paymentMethodFee", "paymentMethodCost"),
        ("networkFee", "networkFeeCost"),
        ("spreadFee", "spreadFee"),
    ] {
        assert_eq!(seen[member], quoted[of_quote], "{member}");
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_event_that_a_sale_does_not_take_changes_nothing() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let sale = ann.sale(|_| ()).await;
    for (body, status) in [
        (json!({"event": "payment-denied"}), 422),
        (json!({"event": "confirmed-on-chain"}), 422),
        (json!({"event": "coins-sent", "transactionId": "ab12"}), 422),
        (json!({"event": "paid-out", "reason": "x"}), 422),
        (json!({"event": "paid-out"}), 409),
        (json!({"event": "release"}), 409),
    ] {
        happen(&context, &sale, body).await.assert_status(status);
    }
    assert_eq!(ann.read(&sale).await["status"], "pending");
    assert_eq!(count(&context, "select count(*) from audit where action = 'order.event'").await, 0);
    happen(&context, &sale, json!({"event": "cancel"})).await.assert_status(200);
    assert_eq!(ann.read(&sale).await["status"], "cancelled");
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "paid-out").await.assert_status(422);
}

#[tokio::test]
async fn orders_of_both_sides_are_found() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let bought = OrderFixture::order(&context, &acme, None, None).await;
    let sale = ann.sale(|body| body["partnerOrderIdentifier"] = json!("sale-7")).await;
    let (bought, sold) = (json!(bought.id), sale["orderId"].clone());
    assert_eq!(found(&context, "").await, [sold.clone(), bought.clone()]);
    assert_eq!(found(&context, "?side=sell").await, std::slice::from_ref(&sold));
    assert_eq!(found(&context, "?side=buy&partner=acme").await, [bought]);
    assert_eq!(
        found(&context, "?partnerOrderIdentifier=sale-7").await,
        std::slice::from_ref(&sold)
    );
    let address = sale["walletAddress"].as_str().unwrap();
    assert_eq!(found(&context, &format!("?walletAddress={address}")).await, [sold]);
    assert!(found(&context, "?partner=rival").await.is_empty());
    let wrong = context.admin(Method::GET, "/admin/v1/orders?side=swap", json!({})).await;
    wrong.assert_status(422);
}

#[tokio::test]
async fn a_step_whose_audit_cannot_be_written_is_not_taken() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let (sale, bought) =
        (ann.sale(|_| ()).await, OrderFixture::order(&context, &acme, None, None).await);
    let broken = "alter table audit add constraint audit_full_key check (action <> 'order.event')";
    sqlx::query(broken).execute(context.db()).await.unwrap();
    happen(&context, &sale, json!({"event": "cancel"})).await.assert_status(500);
    bought.event(&context, "cancel").await.assert_status(500);
    assert_eq!(ann.read(&sale).await["status"], "pending");
    assert_eq!(bought.seen(&context).await["status"], "pending");
    assert_eq!(count(&context, "select count(*) from delivery").await, 0);
    let moved = "select count(*) from event where type = 'order.cancelled'";
    assert_eq!(count(&context, moved).await, 0);
}

#[tokio::test]
async fn more_coins_than_a_sale_waits_for_take_two_persons() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let sale = ann.sale(|_| ()).await;
    let token = context.operator("ada", &["treasury"]).await;
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    let happen = async |body: Value| {
        let body = body.to_string().into();
        context.admin_as(Some(&token), Method::POST, &path, body).await
    };
    // A few coins are more than the bound in euros.
    happen(json!({"event": "payment-received", "amount": 9})).await.assert_status(202);
    assert_eq!(ann.read(&sale).await["status"], "pending");
    happen(json!({"event": "payment-received"})).await.assert_status(200);
    happen(json!({"event": "paid-out"})).await.assert_status(200);
}

#[tokio::test]
async fn the_longest_names_of_transactions_are_taken() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let sale = ann.sale(|_| ()).await;
    let longest = "a".repeat(255);
    let paid = json!({"event": "payment-received", "reference": longest});
    let moved = happen(&context, &sale, paid).await.assert_status(200).json();
    assert_eq!(moved["transactionId"], longest);
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "payment-received").await.assert_status(200);
    let sent = json!({"event": "coins-sent", "transactionId": longest});
    let order = json!({"orderId": order.id});
    happen(&context, &order, sent).await.assert_status(200);
}
