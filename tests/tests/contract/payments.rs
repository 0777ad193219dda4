//! Payments and the books: what is reported is stored and balanced, and orders follow.

mod books;
mod differences;
mod early;
mod growth;
mod interleavings;
mod limits;
mod payouts;
mod races;
mod refunds;
mod repriced;
mod returns;
mod settled;
mod statements;
mod told;
mod unknown_orders;
mod watched;

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use crate::orders::count;

const PAYMENTS: &str = "/admin/v1/payments";

/// A payment by hand, in the book of `acme`.
async fn pay(context: &TestContext, reference: &str, members: Value) -> Answer {
    let mut body = json!({"partner": "acme", "kind": "received", "amount": 100, "currency": "EUR",
        "connector": "manual", "providerReference": reference, "reason": "seen"});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    context.admin(Method::POST, PAYMENTS, body).await
}

async fn status(context: &TestContext, order: &OrderFixture) -> String {
    sqlx::query_scalar("select status from buy_order where order_id = $1")
        .bind(order.id)
        .fetch_one(context.db())
        .await
        .unwrap()
}

async fn list(context: &TestContext, query: &str) -> Vec<Value> {
    let path = format!("{PAYMENTS}{query}");
    let answer = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    answer.as_array().unwrap().clone()
}

/// The balances of `acme` that are not zero, as `kind currency: amount`.
async fn balances(context: &TestContext) -> Vec<String> {
    let path = "/admin/v1/ledger/balances?partner=acme";
    let answer = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    let text = |account: &Value| {
        let name = |name: &str| account[name].as_str().unwrap().to_owned();
        format!("{} {}: {}", name("kind"), name("currency"), account["balance"])
    };
    let rows = answer.as_array().unwrap().iter();
    rows.filter(|account| account["balance"] != json!(0)).map(text).collect()
}

/// Everything that a check of the books finds.
pub(crate) async fn problems(context: &TestContext) -> Vec<Value> {
    let (mut found, mut query) = (Vec::new(), String::new());
    loop {
        let path = format!("/admin/v1/ledger/check{query}");
        let page = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
        found.extend(page["problems"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { return found };
        query = format!("?after={next}");
    }
}

async fn told(context: &TestContext) -> Vec<String> {
    sqlx::query_scalar("select type from event order by created_at, event_id")
        .fetch_all(context.db())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_repeated_payment_takes_one_connection_of_the_operators() {
    let context =
        TestContext::with(|settings| settings.database.operator_connections_max = 1).await;
    let payment = json!({"kind": "received", "amount": 100, "currency": "EUR",
        "providerReference": "bank-1", "reason": "seen"});
    for status in [201, 200] {
        context.admin(Method::POST, PAYMENTS, payment.clone()).await.assert_status(status);
    }
}

#[tokio::test]
async fn the_exact_payment_is_booked_once_and_its_order_goes_on() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let named = json!({"orderId": order.id});
    let paid = pay(&context, "bank-1", named.clone()).await.assert_status(201).json();
    assert_eq!((&paid["state"], &paid["duplicate"]), (&json!("matched"), &json!(false)));
    assert_eq!(status(&context, &order).await, "in progress");
    let owed = [
        "conversion BTC: 0.002",
        "conversion EUR: -100",
        "payout_payable BTC: -0.002",
        "provider EUR: 100",
    ];
    assert_eq!(balances(&context).await, owed);
    let again = pay(&context, "bank-1", named.clone()).await.assert_status(200).json();
    assert_eq!((&again["id"], &again["duplicate"]), (&paid["id"], &json!(true)));
    let other = json!({"orderId": order.id, "amount": 99});
    pay(&context, "bank-1", other).await.assert_status(409);
    assert_eq!(balances(&context).await, owed);

    for (kind, status_then) in [("payout-sent", "in progress"), ("payout-confirmed", "completed")] {
        let sent = json!({"orderId": order.id, "kind": kind, "amount": 0.002, "currency": "BTC"});
        pay(&context, "ab12", sent).await.assert_status(201);
        assert_eq!(status(&context, &order).await, status_then);
    }
    let sent = [
        "conversion BTC: 0.002",
        "conversion EUR: -100",
        "provider EUR: 100",
        "treasury BTC: -0.002",
    ];
    assert_eq!(balances(&context).await, sent);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    let kinds = ["order.paid", "order.sent", "order.completed"];
    assert_eq!(told(&context).await, kinds);
    assert_eq!(list(&context, &format!("?order={}", order.id)).await.len(), 3);
}

#[tokio::test]
async fn what_an_order_does_not_want_waits_in_suspense_to_be_given_back() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let named = json!({"orderId": order.id});
    pay(&context, "bank-1", named.clone()).await.assert_status(201);
    let second = pay(&context, "bank-2", named).await.assert_status(201).json();
    assert_eq!((&second["state"], &second["refundRequested"]), (&json!("suspense"), &json!(100)));
    let late = OrderFixture::order(&context, &acme, None, None).await;
    late.event(&context, "cancel").await.assert_status(200);
    let late_payment = pay(&context, "bank-3", json!({"orderId": late.id})).await;
    assert_eq!(late_payment.assert_status(201).json()["state"], "suspense");
    let late_payment = late_payment.json();
    assert_eq!(status(&context, &late).await, "cancelled");
    assert!(told(&context).await.contains(&"order.payment_received".to_owned()));
    assert!(balances(&context).await.contains(&"refund_payable EUR: -200".to_owned()));
    assert_eq!(list(&context, "?state=suspense").await.len(), 2);

    let back = json!({"orderId": order.id, "kind": "refunded"});
    pay(&context, "bank-4", back).await.assert_status(201);
    assert!(balances(&context).await.contains(&"refund_payable EUR: -100".to_owned()));
    assert_eq!(status(&context, &order).await, "in progress");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    // What was given back waits no more.
    let waiting = list(&context, "?state=suspense").await;
    assert_eq!((waiting.len(), &waiting[0]["id"]), (1, &late_payment["id"]));
}

#[tokio::test]
async fn unexpected_payments_are_held_where_the_configuration_says_so() {
    use rampart_core::platform::settings::Unexpected;
    let context = TestContext::with(|settings| settings.payments.unexpected = Unexpected::Hold);
    let context = context.await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let named = json!({"orderId": order.id});
    pay(&context, "bank-1", named.clone()).await.assert_status(201);
    let second = pay(&context, "bank-2", named).await.assert_status(201).json();
    assert_eq!((&second["state"], &second["refundRequested"]), (&json!("suspense"), &json!(0)));
    let path = format!("{PAYMENTS}/{}/refund", second["id"].as_str().unwrap());
    let parts = json!({"amount": 40.001, "reason": "twice"});
    context.admin(Method::POST, &path, parts).await.assert_status(422);
    let refund = json!({"amount": 40, "reason": "twice"});
    let requested = context.admin(Method::POST, &path, refund).await.assert_status(200).json();
    assert_eq!(requested["amount"], 40);
    let more = json!({"amount": 60.01, "reason": "twice"});
    context.admin(Method::POST, &path, more).await.assert_status(409);
    assert!(balances(&context).await.contains(&"refund_payable EUR: -40".to_owned()));
    assert!(balances(&context).await.contains(&"suspense EUR: -60".to_owned()));
}

#[tokio::test]
async fn an_amount_in_parts_of_a_smallest_unit_is_refused() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for members in [
        json!({"amount": 100.001}),
        json!({"amount": 100.001, "currency": "swift:0/iso4217:EUR"}),
        json!({"amount": 100.5, "currency": "JPY"}),
        json!({"amount": 0.000_000_001, "currency": "BTC", "kind": "deposit-received"}),
    ] {
        let refused = pay(&context, "bank-1", members).await.assert_status(422).json();
        assert_eq!(refused["error"], "amount: above zero, in whole smallest units");
    }
    assert_eq!(list(&context, "").await, [Value::Null; 0]);
    pay(&context, "bank-1", json!({"amount": 100.01})).await.assert_status(201);
}

#[tokio::test]
async fn a_currency_by_hand_is_a_code_in_capitals_or_an_asset_id() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for currency in ["eur", "Euro", "E", "EUR ", "a/b"] {
        let refused = pay(&context, "bank-1", json!({ "currency": currency })).await;
        let refused = refused.assert_status(422).json();
        assert!(refused["error"].as_str().unwrap().starts_with("currency"), "{currency}");
    }
    assert_eq!(list(&context, "").await, [Value::Null; 0]);
    let paid = pay(&context, "bank-1", json!({"currency": "swift:0/iso4217:eur"})).await;
    assert_eq!(paid.assert_status(201).json()["currency"], "EUR");
}

#[tokio::test]
async fn a_payment_of_nobody_is_matched_to_its_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let body = json!({"kind": "received", "amount": 100, "currency": "EUR",
        "providerReference": "bank-1", "reason": "no reference"});
    let stray = context.admin(Method::POST, PAYMENTS, body).await.assert_status(201).json();
    assert_eq!((&stray["state"], &stray["partner"]), (&json!("unmatched"), &json!("house")));
    assert_eq!(list(&context, "?state=unmatched&partner=house").await.len(), 1);
    let path = format!("{PAYMENTS}/{}/match", stray["id"].as_str().unwrap());
    let to = json!({"orderId": order.id});
    let matched = context.admin(Method::POST, &path, to.clone()).await.assert_status(200).json();
    assert_eq!((&matched["state"], &matched["orderId"]), (&json!("matched"), &json!(order.id)));
    context.partner("other").await;
    for (partner, found) in [("acme", 1), ("house", 1), ("other", 0), ("nobody", 0)] {
        let listed = list(&context, &format!("?partner={partner}")).await;
        assert_eq!(listed.len(), found, "{partner}");
    }
    context.admin(Method::POST, &path, to).await.assert_status(409);
    assert_eq!(status(&context, &order).await, "in progress");
    assert!(balances(&context).await.contains(&"provider EUR: 100".to_owned()));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    // It is one list with the partner's own.
    let own = pay(&context, "bank-2", json!({})).await.assert_status(201).json();
    let behind = format!("?partner=acme&after={}", own["id"].as_str().unwrap());
    for (query, reference) in [("?partner=acme&limit=1", "bank-2"), (behind.as_str(), "bank-1")] {
        let page = list(&context, query).await;
        assert_eq!((page.len(), &page[0]["providerReference"]), (1, &json!(reference)));
    }
}

#[tokio::test]
async fn another_amount_blocks_the_order_which_is_released_for_it_or_given_back() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = async || OrderFixture::order(&context, &acme, None, None).await;
    let (less, more, back) = (order().await, order().await, order().await);
    for (order, amount, reference) in [(&less, 50, "1"), (&more, 150, "2"), (&back, 99, "3")] {
        let paid = json!({"orderId": order.id, "amount": amount});
        pay(&context, reference, paid).await.assert_status(201);
        assert_eq!(status(&context, order).await, "blocked");
    }
    for order in [&less, &more] {
        order.event(&context, "release").await.assert_status(200);
    }
    let amounts: Vec<(i64, String, String)> = sqlx::query_as(
        "select order_id, fiat_amount::text, trim_scale(crypto_amount)::text from buy_order \
         where status = 'in progress' order by buy_order.fiat_amount",
    )
    .fetch_all(context.db())
    .await
    .unwrap();
    let of = |order: &OrderFixture, fiat: &str, crypto: &str| {
        (order.id, fiat.to_owned(), crypto.to_owned())
    };
    assert_eq!(amounts, [of(&less, "50", "0.001"), of(&more, "150", "0.003")]);
    assert_eq!(told(&context).await.iter().filter(|t| *t == "order.repriced").count(), 2);
    for (member, number) in less.seen(&context).await.as_object().unwrap() {
        let text = number.to_string();
        let is_shortest = !(text.contains('.') && text.ends_with('0'));
        assert!(!number.is_number() || is_shortest, "{member}: {text}");
    }

    let found = list(&context, &format!("?order={}", back.id)).await;
    let path = format!("{PAYMENTS}/{}/refund", found[0]["id"].as_str().unwrap());
    let reason = json!({"reason": "too little"});
    context.admin(Method::POST, &path, reason.clone()).await.assert_status(200);
    back.event(&context, "release").await.assert_status(409);
    let refunded = json!({"orderId": back.id, "kind": "refunded", "amount": 99});
    pay(&context, "4", refunded).await.assert_status(201);
    assert_eq!(status(&context, &back).await, "refunded");
    context.admin(Method::POST, &path, reason).await.assert_status(409);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_failed_payout_comes_back_and_a_dispute_after_the_end_is_a_loss() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let report = async |reference: &str, kind: &str, members: Value| {
        let mut body = json!({"orderId": order.id, "kind": kind});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        pay(&context, reference, body).await.assert_status(201);
    };
    let coins = json!({"amount": 0.002, "currency": "BTC"});
    report("1", "received", json!({})).await;
    report("2", "payout-sent", coins.clone()).await;
    report("3", "payout-failed", coins.clone()).await;
    assert_eq!(status(&context, &order).await, "blocked");
    assert!(balances(&context).await.contains(&"payout_payable BTC: -0.002".to_owned()));
    order.event(&context, "release").await.assert_status(200);
    // The end of the payout is told first.
    report("4", "payout-confirmed", coins.clone()).await;
    report("4", "payout-sent", coins).await;
    assert_eq!(status(&context, &order).await, "completed");
    assert!(balances(&context).await.contains(&"treasury BTC: -0.002".to_owned()));
    report("5", "disputed", json!({})).await;
    assert_eq!(status(&context, &order).await, "completed");
    assert!(balances(&context).await.contains(&"dispute EUR: 100".to_owned()));
    assert_eq!(told(&context).await.last().map(String::as_str), Some("order.disputed"));
    report("6", "dispute-won", json!({})).await;
    assert!(!balances(&context).await.iter().any(|line| line.starts_with("dispute")));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_operators_events_and_the_sandboxs_are_booked_as_well() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    for event in ["payment-received", "hold", "release", "refund"] {
        order.event(&context, event).await.assert_status(200);
        assert_eq!(problems(&context).await, [Value::Null; 0], "{event}");
    }
    assert_eq!(balances(&context).await, [""; 0]);
    let payload: Value =
        sqlx::query_scalar("select payload from event where type = 'order.refunded'")
            .fetch_one(context.db())
            .await
            .unwrap();
    assert_eq!(payload["refunded"], json!([{"amount": 100, "currencyCode": "EUR"}]));
    let completed = OrderFixture::order(&context, &acme, None, None).await;
    let sandbox = async |event: &str| {
        let path = format!("/api/v2/sandbox/orders/{}/{event}", completed.id);
        acme.request(Method::POST, &path).send().await.assert_status(200);
    };
    for event in ["payment-received", "coins-sent", "confirmed-on-chain"] {
        sandbox(event).await;
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    assert_eq!(
        count(&context, "select count(*) from payment where connector = 'sandbox'").await,
        3
    );
}

#[tokio::test]
async fn a_payment_by_hand_was_made_since_2000_and_not_in_the_future() {
    use chrono::{DateTime, TimeDelta, Utc};
    let context = TestContext::start().await;
    context.partner("acme").await;
    let now = context.clock().now();
    let later = (now + TimeDelta::hours(1)).to_rfc3339();
    for at in ["-4900-01-01T00:00:00Z", "1999-12-31T23:59:59Z", "9999-12-31T23:59:59Z", &later] {
        let refused = pay(&context, "bank-1", json!({"occurredAt": at})).await;
        refused.assert_status(422);
    }
    // A clock that is ahead is no reason to refuse money.
    let ahead = json!({"occurredAt": (now + TimeDelta::seconds(30)).to_rfc3339()});
    let paid = pay(&context, "bank-1", ahead).await.assert_status(201).json();
    let occurred_at: DateTime<Utc> = paid["occurredAt"].as_str().unwrap().parse().unwrap();
    assert!(occurred_at < now + TimeDelta::seconds(30), "{paid}");
}

#[tokio::test]
async fn the_reason_of_a_payment_by_hand_says_something() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for reason in [" ", "se\nen"] {
        let refused = pay(&context, "bank-1", json!({"reason": reason})).await;
        assert_eq!(
            refused.assert_status(422).json()["error"],
            "reason: 1 to 255 characters, none of control"
        );
    }
}
