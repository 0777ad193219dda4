//! Deposits, of which each becomes one order.

use chrono::TimeDelta;
use futures::future::join_all;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::cluster::{commit_once_awaited, until_a_lock_is_awaited};
use rampart_tests::connector::Connector;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::Saver;
use crate::orders::{BTC, count};
use crate::payments::problems;

pub(super) async fn deposit(
    context: &TestContext,
    code: &str,
    amount: &Value,
    reference: &str,
) -> Answer {
    let path = format!("/admin/v1/dca-codes/{code}/deposits");
    let body = json!({"amount": amount, "currencyCode": "EUR", "reference": reference});
    context.admin(Method::POST, &path, body).await
}

#[tokio::test]
async fn a_deposit_becomes_an_order_at_the_price_of_a_quote() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Saver::of(&context, &acme, "ann").await;
    let code = ann.code(&context).await;
    let made = deposit(&context, &code, &json!(123.45), "bank-1").await.assert_status(201).json();
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer", "fiatAmount": 123.45});
    let quote = acme.post("/api/v1/buy/quote", asked).await.json();

    let order = ann.request(Method::GET, &format!("/api/v2/buy/orders/{}", made["id"]));
    let order = order.send().await.assert_status(200).json();
    assert_eq!(order["isDcaOrder"], true);
    assert_eq!(order["isEstimatedQuote"], false);
    assert_eq!(order["status"], "in progress");
    assert_eq!(order["walletAddress"], BTC);
    assert_eq!(order["paymentMethod"], "bankTransfer");
    assert_eq!(order["expiresAt"], Value::Null);
    for (ordered, quoted) in [
        ("/fiatAmount/amount", "fiatAmount"),
        ("/cryptoAmount/amount", "cryptoAmount"),
        ("/fees/providerFee/amount", "providerFee"),
        ("/fees/networkFee/amount", "networkFeeCost"),
        ("/fees/spreadFee/amount", "spreadFee"),
        ("/fees/partnerFee/amount", "partnerFee"),
    ] {
        assert_eq!(order.pointer(ordered), quote.get(quoted), "{ordered}");
    }
    let types: Vec<String> = sqlx::query_scalar("select type from event order by created_at")
        .fetch_all(context.db())
        .await
        .unwrap();
    assert_eq!(types, ["order.created", "order.paid"]);
    for _ in 0..2 {
        context.clock().advance(TimeDelta::seconds(1));
        assert_eq!(context.core().settle_sandbox_orders().await.unwrap(), 1);
    }
    let order = ann.request(Method::GET, &format!("/api/v1/user/buy/orders/{}", made["id"]));
    assert_eq!(order.send().await.json()["status"], "completed");
}

#[tokio::test]
async fn a_deposit_reported_twice_buys_once() {
    let context = TestContext::start().await;
    let second = context.second_edge().await;
    let acme = context.partner("acme").await;
    second.core().refresh().await.unwrap();
    let ann = Saver::of(&context, &acme, "ann").await;
    let (code, other) = (ann.code(&context).await, ann.code(&context).await);
    let amount = json!(100);
    let reports = (0..8).map(|n| {
        let edge = if n % 2 == 0 { &context } else { &second };
        deposit(edge, &code, &amount, "bank-1")
    });
    let answers = join_all(reports).await;
    let made = answers.iter().filter(|answer| answer.status() == 201).count();
    assert_eq!(made, 1);
    for answer in &answers {
        assert!([200, 201].contains(&answer.status()), "{}", answer.text());
        assert_eq!(answer.json()["id"], answers[0].json()["id"]);
    }
    deposit(&context, &code, &json!(100.00), "bank-1").await.assert_status(200);
    deposit(&context, &code, &json!(101), "bank-1").await.assert_status(409);
    deposit(&context, &other, &amount, "bank-1").await.assert_status(409);
    assert_eq!(count(&context, "select count(*) from buy_order").await, 1);
    assert_eq!(count(&context, "select count(*) from event").await, 2);
    assert_eq!(count(&context, "select count(*) from audit where action = 'dca.deposit'").await, 1);
    // Each of the others has shown the order, with a person's wallet.
    assert_eq!(count(&context, "select count(*) from audit where action = 'order.read'").await, 8);
    deposit(&context, &code, &amount, "bank-2").await.assert_status(201);
}

#[tokio::test]
async fn a_reference_of_another_payment_is_409_and_makes_no_order() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let mut codes = Vec::new();
    for (partner, name) in [(&acme, "ann"), (&rival, "eve")] {
        codes.push(Saver::of(&context, partner, name).await.code(&context).await);
    }
    let paid = json!({"partner": "rival", "kind": "received", "amount": 100, "currency": "EUR",
        "providerReference": "bank-1", "reason": "seen"});
    context.admin(Method::POST, "/admin/v1/payments", paid).await.assert_status(201);
    let amount = json!(100);
    for (code, amount) in [(&codes[0], &amount), (&codes[1], &json!(101))] {
        deposit(&context, code, amount, "bank-1").await.assert_status(409);
    }
    deposit(&context, &codes[0], &amount, "bank-2").await.assert_status(201);
    deposit(&context, &codes[1], &amount, "bank-2").await.assert_status(409);
    deposit(&context, &codes[1], &amount, "bank-3").await.assert_status(201);
    assert_eq!(count(&context, "select count(*) from buy_order").await, 2);
    assert_eq!(count(&context, "select count(*) from dca_deposit").await, 2);
}

#[tokio::test]
async fn a_payment_in_suspense_is_the_deposit_of_its_reference_and_is_booked_once() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let code = Saver::of(&context, &acme, "ann").await.code(&context).await;
    let other = Saver::of(&context, &rival, "eve").await.code(&context).await;
    let bank = Connector::new(&context, "bank", &["payment.create"]).await;
    for (reference, partner) in [("bank-1", None), ("bank-2", Some("acme"))] {
        let event = json!({"id": reference, "kind": "payment.received", "partner": partner,
            "occurredAt": "2026-03-01T12:00:00Z", "providerReference": reference, "amount": 100,
            "currency": "EUR"});
        bank.event(event).await.assert_status(200);
    }
    let statement = "date,amount,currency,reference,providerReference\n\
                     2026-03-01,100.00,EUR,savings,bank-3\n";
    let path = "/admin/v1/reconciliations?connector=manual";
    context.admin_bytes(Method::POST, path, statement.into()).await.assert_status(201);

    let amount = json!(100);
    deposit(&context, &code, &json!(101), "bank-1").await.assert_status(409);
    deposit(&context, &other, &amount, "bank-2").await.assert_status(409);
    assert_eq!(count(&context, "select count(*) from buy_order").await, 0);
    for reference in ["bank-1", "bank-2", "bank-3"] {
        let made = deposit(&context, &code, &amount, reference).await.assert_status(201).json();
        assert_eq!(made["status"], "in progress", "{reference}");
        let again = deposit(&context, &code, &amount, reference).await.assert_status(200).json();
        assert_eq!(again["id"], made["id"], "{reference}");
        deposit(&context, &other, &amount, reference).await.assert_status(409);
    }
    let arrived = "select count(*) from payment where kind = 'received'";
    assert_eq!(count(&context, arrived).await, 3);
    assert_eq!(count(&context, "select count(*) from payment_match").await, 3);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn two_plans_that_are_reported_one_payment_at_once_share_no_money() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let code = Saver::of(&context, &acme, "ann").await.code(&context).await;
    let other = Saver::of(&context, &rival, "eve").await.code(&context).await;
    let second = context.second_edge().await;
    let payment = json!({"kind": "received", "amount": 100, "currency": "EUR",
        "providerReference": "bank-1", "reason": "seen"});
    context.admin(Method::POST, "/admin/v1/payments", payment).await.assert_status(201);
    let amount = json!(100);
    let reports = (0..8).map(|n| match n % 2 {
        0 => deposit(&context, &code, &amount, "bank-1"),
        _ => deposit(&second, &other, &amount, "bank-1"),
    });
    let answers = join_all(reports).await;
    let mut statuses: Vec<_> = answers.iter().map(Answer::status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 201, 409, 409, 409, 409]);
    assert_eq!(count(&context, "select count(*) from buy_order").await, 1);
    assert_eq!(count(&context, "select count(*) from payment").await, 1);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_deposit_of_a_payment_waits_for_its_partner_before_its_user_is_locked() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let code = Saver::of(&context, &acme, "ann").await.code(&context).await;
    let payment = json!({"partner": "acme", "kind": "received", "amount": 100, "currency": "EUR",
        "providerReference": "bank-1", "reason": "seen"});
    context.admin(Method::POST, "/admin/v1/payments", payment).await.assert_status(201);
    // As a partner goes live, whose users are locked after it.
    let mut other = context.db().begin().await.unwrap();
    let partner = "select from client where slug = 'acme' for no key update";
    sqlx::query(partner).execute(&mut *other).await.unwrap();
    let users = async {
        until_a_lock_is_awaited(context.db()).await;
        let users = "select from end_user for no key update nowait";
        sqlx::query(users).execute(&mut *other).await.unwrap();
        other.commit().await.unwrap();
    };
    let amount = json!(100);
    let (made, ()) = futures::join!(deposit(&context, &code, &amount, "bank-1"), users);
    made.assert_status(201);
    assert_eq!(count(&context, "select count(*) from payment").await, 1);
}

#[tokio::test]
async fn a_deposit_that_was_taken_back_before_it_is_reported_waits() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let code = Saver::of(&context, &acme, "ann").await.code(&context).await;
    for (kind, gone) in [("refunded", 100), ("disputed", 100), ("refunded", 40)] {
        let reference = format!("bank-{kind}-{gone}");
        let told = json!({"partner": "acme", "kind": kind, "amount": gone, "currency": "EUR",
            "providerReference": reference, "reason": "seen"});
        context.admin(Method::POST, "/admin/v1/payments", told).await.assert_status(201);
        let made = deposit(&context, &code, &json!(100), &reference).await;
        assert_eq!(made.assert_status(201).json()["status"], "blocked", "{reference}");
        let sent =
            "select count(*) from command where kind = 'payout.send' and state <> 'rejected'";
        assert_eq!(count(&context, sent).await, 0, "{reference}: no coins are sent for it");
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn what_cannot_be_bought_makes_no_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Saver::of(&context, &acme, "ann").await;
    let code = ann.code(&context).await;
    for (amount, reference) in [
        (json!(0), "bank-1"),
        (json!(-5), "bank-1"),
        (json!(50.001), "bank-1"),
        (json!("50"), "bank-1"),
        (json!(1), "bank-1"),
        (json!(1_000_000), "bank-1"),
        (json!(50), ""),
        (json!(50), "a\nb"),
    ] {
        deposit(&context, &code, &amount, reference).await.assert_status(422);
    }
    deposit(&context, "0123456789AB", &json!(50), "bank-1").await.assert_status(404);
    deposit(&context, "%00", &json!(50), "bank-1").await.assert_status(404);
    let path = format!("/admin/v1/dca-codes/{code}/deposits");
    for currency in ["USD", "BTC", "XYZ"] {
        let body = json!({"amount": 50, "currencyCode": currency, "reference": "bank-1"});
        context.admin(Method::POST, &path, body).await.assert_status(422);
    }
    let closed = json!({"buy": {"status": "maintenance"}});
    context.admin(Method::PATCH, "/admin/v1/pairs/BTC-EUR", closed).await.assert_status(200);
    deposit(&context, &code, &json!(50), "bank-1").await.assert_status(422);
    let open = json!({"buy": {"status": "enabled"}});
    context.admin(Method::PATCH, "/admin/v1/pairs/BTC-EUR", open).await.assert_status(200);
    sqlx::query("update end_user set disabled_at = now()").execute(context.db()).await.unwrap();
    deposit(&context, &code, &json!(50), "bank-1").await.assert_status(422);
    assert_eq!(count(&context, "select count(*) from buy_order").await, 0);
    assert_eq!(count(&context, "select count(*) from dca_deposit").await, 0);
}

#[tokio::test]
async fn a_user_who_is_disabled_while_a_deposit_is_reported_buys_nothing() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let code = Saver::of(&context, &acme, "ann").await.code(&context).await;
    let mut operator = context.db().begin().await.unwrap();
    let disable = sqlx::query("update end_user set disabled_at = now()");
    disable.execute(&mut *operator).await.unwrap();
    let (amount, commit) = (json!(50), commit_once_awaited(context.db(), operator));
    let (refused, ()) = futures::join!(deposit(&context, &code, &amount, "bank-1"), commit);
    refused.assert_status(422);
    assert_eq!(count(&context, "select count(*) from buy_order").await, 0);
}

#[tokio::test]
async fn an_edge_that_has_not_heard_of_a_corrected_price_buys_at_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let code = Saver::of(&context, &acme, "ann").await.code(&context).await;
    let second = context.second_edge().await;
    let valid_from = context.clock().now() + TimeDelta::minutes(1);
    let corrected = json!({"price": 45_000, "quotesValidFrom": valid_from});
    let set = context.admin(Method::PUT, "/admin/v1/prices/BTC-EUR", corrected).await;
    set.assert_status(200);
    for (edge, reference) in [(&second, "bank-1"), (&context, "bank-2")] {
        deposit(edge, &code, &json!(100), reference).await.assert_status(201);
    }
    assert_eq!(count(&context, "select count(*) from buy_order").await, 2);
    assert_eq!(count(&context, "select count(distinct price) from buy_order").await, 1);
}

#[tokio::test]
async fn operators_read_plans_and_their_deposits() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (ann, eve) =
        (Saver::of(&context, &acme, "ann").await, Saver::of(&context, &rival, "eve").await);
    let mut codes = Vec::new();
    for saver in [&ann, &eve, &ann] {
        codes.push(saver.code(&context).await);
        context.clock().advance(TimeDelta::seconds(1));
    }
    let [first, other, newest] = [&*codes[0], &*codes[1], &*codes[2]];
    let list = async |query: &str| {
        let path = format!("/admin/v1/dca-codes{query}");
        let rows = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
        let codes = rows.as_array().unwrap().iter().map(|row| row["code"].as_str().unwrap());
        codes.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(list("").await, [newest, other, first]);
    assert_eq!(list("?partner=acme").await, [newest, first]);
    assert_eq!(list(&format!("?user={}", eve.user)).await, [other]);
    assert_eq!(list(&format!("?code={first}&partner=acme")).await, [first]);
    assert_eq!(list(&format!("?after={other}")).await, [first]);
    for wrong in ["code=nothing", "after=000000000000", "after=x", "user=ann"] {
        let path = format!("/admin/v1/dca-codes?{wrong}");
        context.admin(Method::GET, &path, Value::Null).await.assert_status(422);
    }

    let mut orders = Vec::new();
    for (amount, reference) in [(json!(100), "bank-1"), (json!(50.5), "bank-2")] {
        let made = deposit(&context, first, &amount, reference).await.assert_status(201).json();
        orders.push(made["id"].clone());
        context.clock().advance(TimeDelta::seconds(1));
    }
    let read = async |code: &str| {
        context.admin(Method::GET, &format!("/admin/v1/dca-codes/{code}"), Value::Null).await
    };
    let plan = read(first).await.assert_status(200).json();
    let owner = json!(ann.user.to_string());
    assert_eq!((&plan["partner"], &plan["userId"]), (&json!("acme"), &owner));
    // A wallet is a person's: it is in no list, and reads of it stand in the audit.
    assert_eq!(plan["walletAddress"], BTC);
    let listed = context.admin(Method::GET, "/admin/v1/dca-codes", Value::Null).await.json();
    assert_eq!(listed[0].get("walletAddress"), None, "{listed}");
    let audited = "select count(*) from audit where action = 'dca.read'";
    assert_eq!(count(&context, audited).await, 1);
    let shown = |row: &Value| ["reference", "amount", "orderId"].map(|member| row[member].clone());
    let deposits = plan["deposits"].as_array().unwrap().iter().map(shown);
    let expected = [
        [json!("bank-2"), json!(50.5), orders[1].clone()],
        [json!("bank-1"), json!(100), orders[0].clone()],
    ];
    assert_eq!(deposits.collect::<Vec<_>>(), expected);
    assert_eq!(read(newest).await.assert_status(200).json()["deposits"], json!([]));
    for unknown in ["nothing", "000000000000"] {
        read(unknown).await.assert_status(404);
    }
    let same = "update dca_plan set code = $1 where code = $2";
    sqlx::query(same).bind(first).bind(other).execute(context.db()).await.unwrap();
    read(first).await.assert_status(409);
}
