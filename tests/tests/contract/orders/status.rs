//! The status changes of an order, and the events that tell its partner.

use chrono::TimeDelta;
use futures::future::join_all;
use http::Method;
use rampart_core::trading::orders::expiry::expire_due;
use rampart_tests::cluster::until_a_lock_is_awaited;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{Shop, confirm_of, count, happen};
use crate::verification::admin_path;

async fn types(context: &TestContext) -> Vec<String> {
    sqlx::query_scalar("select type from event order by created_at, event_id")
        .fetch_all(context.db())
        .await
        .unwrap()
}

async fn delivered_to(context: &TestContext) -> Vec<String> {
    sqlx::query_scalar("select url from delivery").fetch_all(context.db()).await.unwrap()
}

async fn steps(shop: &Shop, order: i64) -> Vec<String> {
    let timeline = shop.get(&format!("/api/v2/buy/orders/{order}/timeline")).await;
    let timeline = timeline.assert_status(200).json();
    let step = |step: &Value| {
        assert!(step["time"].is_string());
        let text = |name: &str| step[name].as_str().unwrap_or("-").to_owned();
        format!("{} > {}: {}", text("from"), text("to"), text("cause"))
    };
    timeline.as_array().unwrap().iter().map(step).collect()
}

fn with_callback(body: &mut Value) {
    body["callbackUrl"] = json!("https://shop.example/cb?a=b");
}

#[tokio::test]
async fn an_event_that_waited_for_its_order_is_the_later_one() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = shop.order(&context, |_| ()).await;
    let mut holder = context.db().begin().await.unwrap();
    sqlx::query("select from buy_order where order_id = $1 for update")
        .bind(order)
        .execute(&mut *holder)
        .await
        .unwrap();
    let free = async {
        until_a_lock_is_awaited(context.db()).await;
        context.clock().advance(TimeDelta::minutes(1));
        let now = context.clock().now();
        holder.rollback().await.unwrap();
        now
    };
    let paid = happen(&context, order, json!({"event": "payment-received"}));
    let (answer, freed) = tokio::join!(paid, free);
    answer.assert_status(200);
    let at: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("select at from order_transition where cause = 'payment-received'")
            .fetch_one(context.db())
            .await
            .unwrap();
    assert!(at >= freed, "{at} is before {freed}, when another event may have been applied");
}

#[tokio::test]
async fn a_paid_order_goes_its_way_and_its_partner_is_told() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = shop.order(&context, with_callback).await;
    for (event, status) in [
        (json!({"event": "payment-received", "amount": 100, "reference": "p1"}), "in progress"),
        (json!({"event": "coins-sent", "transactionId": "ab12"}), "in progress"),
        (json!({"event": "confirmed-on-chain"}), "completed"),
    ] {
        assert_eq!(delivered_to(&context).await, Vec::<String>::new());
        happen(&context, order, event).await.assert_status(200);
        let read = shop.get(&format!("/api/v2/buy/orders/{order}")).await.json();
        assert_eq!(read["status"], status);
    }
    let read = shop.get(&format!("/api/v2/buy/orders/{order}")).await.json();
    assert_eq!(read["blockchainInfo"]["transactionId"], "ab12");
    assert_eq!(read["blockchainInfo"]["transactionExplorer"], "https://mempool.space/tx/ab12");
    let told = ["order.created", "order.paid", "order.sent", "order.completed"];
    assert_eq!(types(&context).await, told);
    let called = format!("https://shop.example/cb?a=b&orderId={order}&status=success");
    assert_eq!(delivered_to(&context).await, [called]);
    assert_eq!(
        steps(&shop, order).await,
        [
            "- > pending: confirmed",
            "pending > in progress: payment-received",
            "in progress > in progress: coins-sent",
            "in progress > completed: confirmed-on-chain",
        ]
    );
    let payload: Value =
        sqlx::query_scalar("select payload from event where type = 'order.completed'")
            .fetch_one(context.db())
            .await
            .unwrap();
    let expected = json!({"orderId": order, "partnerOrderIdentifier": null, "status": "completed"});
    assert_eq!(payload, expected);
}

#[tokio::test]
async fn what_the_state_forbids_is_refused_and_changes_nothing() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = shop.order(&context, |_| ()).await;
    for event in ["confirmed-on-chain", "hold", "release", "refund"] {
        happen(&context, order, json!({"event": event})).await.assert_status(409);
    }
    happen(&context, order, json!({"event": "cancel"})).await.assert_status(200);
    happen(&context, order, json!({"event": "payment-received"})).await.assert_status(409);
    assert_eq!(types(&context).await, ["order.created", "order.cancelled"]);
    assert_eq!(count(&context, "select count(*) from order_transition").await, 2);
    assert_eq!(count(&context, "select count(*) from delivery").await, 0);
}

#[tokio::test]
async fn a_payment_has_an_amount_above_zero() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = shop.order(&context, |_| ()).await;
    for amount in [json!(0), json!(-100)] {
        let paid = json!({"event": "payment-received", "amount": amount});
        let refused = happen(&context, order, paid).await.assert_status(422).json();
        assert_eq!(refused["error"], "amount: above zero");
    }
    let parts = json!({"event": "payment-received", "amount": 100.001});
    happen(&context, order, parts).await.assert_status(422);
    let huge = json!({"event": "payment-received", "amount": 1_000_000_000_000_001_i64});
    happen(&context, order, huge).await.assert_status(422);
    happen(&context, order, json!({"event": "payment-received"})).await.assert_status(200);
}

#[tokio::test]
async fn a_reference_and_a_transaction_of_an_event_are_names() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = shop.order(&context, |_| ()).await;
    for none in ["", "a\nb", "a\0b"] {
        for told in [
            json!({"event": "payment-received", "reference": none}),
            json!({"event": "coins-sent", "transactionId": none}),
        ] {
            happen(&context, order, told).await.assert_status(422);
        }
    }
    let paid = json!({"event": "payment-received", "reference": "bank-1"});
    happen(&context, order, paid).await.assert_status(200);
}

#[tokio::test]
async fn a_reason_of_an_event_has_words() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = shop.order(&context, |_| ()).await;
    for none in ["", " ", "a\nb", &"a".repeat(256)] {
        let cancel = json!({"event": "cancel", "reason": none});
        let refused = happen(&context, order, cancel).await.assert_status(422).json();
        assert_eq!(refused["error"], "reason: 1 to 255 characters, none of control", "{none}");
    }
    let cancel = json!({"event": "cancel", "reason": "a".repeat(255)});
    happen(&context, order, cancel).await.assert_status(200);
}

/// A hold as partners read it: the operator's words could warn a suspect.
const ON_HOLD: &str = "The order is on hold.";

#[tokio::test]
async fn a_wrong_or_late_payment_blocks_the_order_and_says_why() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let (short, late) = (shop.order(&context, |_| ()).await, shop.order(&context, |_| ()).await);
    happen(&context, short, json!({"event": "payment-received", "amount": 99.99})).await;
    context.clock().advance(TimeDelta::seconds(901));
    happen(&context, late, json!({"event": "payment-received"})).await;
    for (order, code) in [(short, "032"), (late, "031")] {
        let read = shop.get(&format!("/api/v1/user/buy/orders/{order}")).await.json();
        assert_eq!(read["status"], "blocked");
        let reason = &read["orderNotCompletedReasons"][0];
        assert_eq!(reason["code"], code);
        assert_eq!(reason["supportActionRequired"], true);
        assert_eq!(reason["url"], Value::Null);
    }
    happen(&context, short, json!({"event": "release"})).await.assert_status(200);
    let hold = json!({"event": "hold", "reason": "name mismatch"});
    happen(&context, short, hold).await.assert_status(200);
    let read = shop.get(&format!("/api/v1/user/buy/orders/{short}")).await.json();
    let reason = &read["orderNotCompletedReasons"][0];
    assert_eq!((&reason["code"], &reason["description"]), (&json!("041"), &json!(ON_HOLD)));
    let timeline = shop.get(&format!("/api/v2/buy/orders/{short}/timeline")).await.json();
    let held = timeline.as_array().unwrap().last().unwrap();
    assert_eq!((&held["cause"], &held["reason"]), (&json!("held"), &Value::Null));
    let path = format!("/admin/v1/orders/{short}");
    let seen = context.admin(Method::GET, &path, Value::Null).await.json();
    assert_eq!(seen["timeline"].as_array().unwrap().last().unwrap()["reason"], "name mismatch");
    for name in ["createdAt", "updatedAt"] {
        assert!(seen[name].as_str().is_some_and(|at| at.ends_with('Z')), "{name}: {seen}");
    }
    happen(&context, late, json!({"event": "refund"})).await.assert_status(200);
    let read = shop.get(&format!("/api/v1/user/buy/orders/{late}")).await.json();
    assert_eq!(
        (&read["status"], &read["orderNotCompletedReasons"]),
        (&json!("refunded"), &json!([]))
    );
}

#[tokio::test]
async fn an_unhosted_wallet_above_1000_euros_needs_a_proof() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let codes = async |fiat: &str, wallet_type: &str| {
        let mut body =
            confirm_of(&shop.quote(&context, |quote| quote.fiat = fiat.parse().unwrap()));
        body["walletType"] = json!(wallet_type);
        let order = shop.v1(&body).await.assert_status(200).json()["orderId"].clone();
        let read = shop.get(&format!("/api/v1/user/buy/orders/{order}")).await.json();
        let reasons = read["orderNotCompletedReasons"].as_array().unwrap().clone();
        assert!(reasons.iter().all(|reason| reason["url"].is_string()));
        reasons.len()
    };
    assert_eq!(codes("1000.01", "unhosted").await, 1);
    assert_eq!(codes("1000", "unhosted").await, 0);
    assert_eq!(codes("1000.01", "vasp").await, 0);
}

#[tokio::test]
async fn an_order_that_nobody_pays_expires_once_on_two_edges() {
    let context = TestContext::start().await;
    let second = context.second_edge().await;
    let shop = Shop::of(&context, "acme").await;
    let order = shop.order(&context, with_callback).await;
    let by_bank = shop.quote(&context, |quote| quote.payment_method = "bankTransfer".to_owned());
    let patient = shop.v1(&confirm_of(&by_bank)).await.json()["orderId"].as_i64().unwrap();
    assert_eq!(expire_due(context.core()).await.unwrap(), 0);
    context.clock().advance(TimeDelta::seconds(901));
    let swept = join_all((0..6).map(|n| {
        let edge = if n % 2 == 0 { context.core() } else { second.core() };
        expire_due(edge)
    }));
    let swept: u32 = swept.await.into_iter().map(Result::unwrap).sum();
    assert_eq!(swept, 1);
    assert_eq!(
        steps(&shop, order).await,
        ["- > pending: confirmed", "pending > cancelled: expired"]
    );
    assert_eq!(steps(&shop, patient).await, ["- > pending: confirmed"]);
    let called = format!("https://shop.example/cb?a=b&orderId={order}&status=expired");
    assert_eq!(delivered_to(&context).await, [called]);
    happen(&context, order, json!({"event": "payment-received"})).await.assert_status(409);
}

#[tokio::test]
async fn of_racing_events_one_wins() {
    let context = TestContext::start().await;
    let second = context.second_edge().await;
    let shop = Shop::of(&context, "acme").await;
    for _ in 0..8 {
        let order = shop.order(&context, with_callback).await;
        let events = ["payment-received", "cancel", "payment-denied", "payment-received"];
        let racing = events.iter().enumerate().map(|(n, event)| {
            let edge = if n % 2 == 0 { &context } else { &second };
            happen(edge, order, json!({"event": event}))
        });
        let answers = join_all(racing).await;
        let won = answers.iter().filter(|answer| answer.status() == 200).count();
        assert_eq!(won, 1);
        assert!(answers.iter().all(|answer| matches!(answer.status(), 200 | 409)));
        assert_eq!(steps(&shop, order).await.len(), 2);
    }
    assert_eq!(count(&context, "select count(*) from event").await, 16);
}

#[tokio::test]
async fn what_the_user_has_not_shown_stands_in_the_order() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let quote = ada.post("/api/v1/buy/quote", &asked).await.assert_status(200).json();
    assert_eq!(quote["quoteUnconfirmableReasons"], json!(["userRegistrationNotCompleted"]));
    let body = confirm_of(quote["quote"].as_str().unwrap());
    let order = ada.post("/api/v1/buy/confirm", &body).await.assert_status(200).json();
    let reasons = async || {
        let read = ada.get(&format!("/api/v1/user/buy/orders/{}", order["orderId"])).await.json();
        let reasons = read["orderNotCompletedReasons"].as_array().unwrap().clone();
        for reason in &reasons {
            assert_eq!(reason["userActionRequired"], true);
            assert!(reason["url"].as_str().unwrap().contains("/checks/"), "{reason}");
        }
        reasons.iter().map(|reason| reason["code"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(reasons().await, ["011", "012"]);
    let user = admin_path(&ada).await;
    let change = async |body: Value| {
        context.admin(Method::PATCH, &user, body).await.assert_status(200);
    };
    change(json!({"dac8Status": "missing", "verification": {"identity": "verified"}})).await;
    assert_eq!(reasons().await, ["012", "013"]);
    change(json!({"dac8Status": "present", "verification": {"amld5": "verified"}})).await;
    assert_eq!(reasons().await, Vec::<Value>::new());
}
