//! Calls that need a second person.

use http::Method;
use rampart_api::operate::admin::approvals::delete_old_approvals;
use rampart_tests::cluster::{changes, lose_first_change};
use rampart_tests::connector::Connector;
use rampart_tests::dump;
use rampart_tests::order_fixture::OrderFixture;
use serde_json::Value;

use super::*;

const PRICE: &str = "/admin/v1/prices/BTC-EUR";

async fn price(context: &TestContext) -> String {
    let pairs = context.admin(Method::GET, "/admin/v1/pairs", Value::Null).await.json();
    let pair = pairs.as_array().unwrap().iter().find(|pair| pair["pair"] == "BTC-EUR").unwrap();
    pair["price"].to_string()
}

/// Makes the call, and gives the approval that it waits for.
pub(super) async fn held(
    operator: &Operator<'_>,
    method: Method,
    path: &str,
    body: Value,
) -> String {
    let answer = operator.call(method, path, body).await;
    answer.assert_status(202).json()["approval"].as_str().unwrap().to_owned()
}

/// Grants or refuses: the status of the answer.
pub(super) async fn decide(operator: &Operator<'_>, approval: &str, word: &str) -> u16 {
    let path = format!("/admin/v1/approvals/{approval}/{word}");
    operator.call(Method::POST, &path, Value::Null).await.status()
}

#[tokio::test]
async fn a_price_takes_two_persons() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let eve = Operator::new(&context, "eve", &["viewer"]).await;
    let (before, new) = (price(&context).await, json!({"price": 41234.56}));
    let approval = held(&ada, Method::PUT, PRICE, new.clone()).await;
    assert_eq!(held(&ada, Method::PUT, PRICE, new.clone()).await, approval, "asked twice");
    assert_eq!(price(&context).await, before);
    let listed = bob.get("/admin/v1/approvals").await.json();
    assert_eq!((&listed[0]["state"], &listed[0]["body"]), (&json!("pending"), &new));
    assert_eq!(eve.get("/admin/v1/approvals").await.json()[0]["body"], Value::Null);

    assert_eq!(decide(&ada, &approval, "grant").await, 403);
    assert_eq!(decide(&eve, &approval, "grant").await, 403);
    held(&ada, Method::PUT, PRICE, new.clone()).await;
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    // The approval is for this price, from this operator, once.
    held(&ada, Method::PUT, PRICE, json!({"price": 1})).await;
    held(&bob, Method::PUT, PRICE, new.clone()).await;
    assert_eq!(price(&context).await, before);
    ada.call(Method::PUT, PRICE, new.clone()).await.assert_status(200);
    assert_eq!(price(&context).await, "41234.56");
    held(&ada, Method::PUT, PRICE, new).await;
    assert_eq!(audited(&context, "price.set").await, [("ada".into(), "BTC-EUR".into())]);
    assert_eq!(audited(&context, "approval.grant").await, [("bob".into(), approval.clone())]);
    assert_eq!(audited(&context, "approval.use").await, [("ada".into(), approval)]);
}

#[tokio::test]
async fn an_approval_is_for_the_members_of_a_call_however_they_are_spelled() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let spelled = async |body: &'static str| {
        context.admin_as(Some(&ada.token), Method::PUT, PRICE, Bytes::from(body)).await
    };
    let held = spelled("{\n  \"pr\\u0069ce\" : 41234.56, \"maxAgeSeconds\": 3600\n}").await;
    let held = held.assert_status(202).json();
    let approval = held["approval"].as_str().unwrap();
    assert_eq!(decide(&bob, approval, "grant").await, 204);
    spelled(r#"{"maxAgeSeconds":3600,"price":41234.57}"#).await.assert_status(202);
    spelled(r#"{"maxAgeSeconds":3600,"price":41234.56}"#).await.assert_status(200);
    assert_eq!(price(&context).await, "41234.56");
}

#[tokio::test]
async fn of_racing_calls_one_uses_the_approval() {
    let context = TestContext::start().await;
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let bob = Operator::new(&context, "bob", &["owner"]).await;
    let new = json!({"price": 41234.56});
    let approval = held(&ada, Method::PUT, PRICE, new.clone()).await;
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    let calls = (0..8).map(|_| ada.call(Method::PUT, PRICE, new.clone()));
    let answers = futures::future::join_all(calls).await;
    let done = answers.iter().filter(|answer| answer.status() == 200).count();
    // Those that had found it unused are refused, later ones wait for another approval.
    let others = answers.iter().filter(|answer| [202, 409].contains(&answer.status())).count();
    assert_eq!((done, others), (1, 7));
    assert_eq!(audited(&context, "price.set").await.len(), 1);
}

#[tokio::test]
async fn what_is_refused_withdrawn_or_expired_is_not_done() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let new = json!({"price": 41234.56});
    let first = held(&ada, Method::PUT, PRICE, new.clone()).await;
    assert_eq!(decide(&bob, &first, "refuse").await, 204);
    assert_eq!(decide(&bob, &first, "grant").await, 409);
    let second = held(&ada, Method::PUT, PRICE, new.clone()).await;
    assert_ne!(second, first);
    assert_eq!(decide(&bob, &second, "grant").await, 204);
    assert_eq!(decide(&ada, &second, "refuse").await, 204);
    let third = held(&ada, Method::PUT, PRICE, new.clone()).await;
    assert_eq!(decide(&bob, &third, "grant").await, 204);
    sqlx::query("update approval set expires_at = now()").execute(context.db()).await.unwrap();
    let fourth = held(&ada, Method::PUT, PRICE, new).await;
    assert_ne!(fourth, third);
    assert_eq!(decide(&bob, &third, "grant").await, 404);
    assert_eq!(audited(&context, "price.set").await, []);
}

#[tokio::test]
async fn going_live_raised_limits_and_large_payments_take_two_persons() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let user = acme.user("ada").await.log_in().await;
    let ada = Operator::new(&context, "ada", &["platform", "compliance", "treasury"]).await;
    Connector::of_live(&context).await;
    let live = json!({"slug": "big", "name": "Big", "mode": "live"});
    held(&ada, Method::POST, "/admin/v1/partners", live).await;
    let user = format!("/admin/v1/users/{}", user["uuid"].as_str().unwrap());
    let raised = json!({"limitOverrides": {"user_day_limit": 100000}});
    held(&ada, Method::PATCH, &user, raised).await;
    let verified = json!({"verification": {"identity": "verified"}});
    ada.call(Method::PATCH, &user, verified).await.assert_status(200);
    let account = json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164300",
        "name": "A. Lovelace", "limitRaised": true});
    held(&ada, Method::POST, &format!("{user}/accounts"), account).await;

    let order = OrderFixture::order(&context, &acme, None, None).await;
    let path = format!("/admin/v1/orders/{}/events", order.id);
    let large = json!({"event": "payment-received", "amount": 1000.01});
    held(&ada, Method::POST, &path, large).await;
    let usual = json!({"event": "payment-received"});
    ada.call(Method::POST, &path, usual).await.assert_status(200);
}

#[tokio::test]
async fn one_person_lowers_a_limit_and_two_raise_it() {
    let context = TestContext::start().await;
    let user = context.partner("acme").await.user("ada").await.log_in().await;
    let user = format!("/admin/v1/users/{}", user["uuid"].as_str().unwrap());
    let accounts = format!("{user}/accounts");
    let account = json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164300",
        "name": "A. Lovelace", "limit": 5000});
    context.admin(Method::POST, &accounts, account).await.assert_status(201);
    context.admin(Method::PATCH, &user, json!({"level": "gold"})).await.assert_status(200);
    let ada = Operator::new(&context, "ada", &["compliance"]).await;
    let account = format!("{accounts}/NL91ABNA0417164300");
    let day = |limit: u32| json!({"limitOverrides": {"user_day_limit": limit}});
    for (path, lower, higher) in [
        (&account, json!({"limit": 5}), json!({"limit": 5.01})),
        (&account, json!({"limit": 4, "limitRaised": false}), json!({"limitRaised": true})),
        (&account, json!({"limit": 3}), json!({"limit": null})),
        (&user, json!({"level": "silver"}), json!({"level": "gold"})),
        (&user, day(100), day(101)),
        (&user, json!({"level": "bronze"}), json!({"limitOverrides": {}})),
    ] {
        for _ in 0..2 {
            ada.call(Method::PATCH, path, lower.clone()).await.assert_status(200);
        }
        held(&ada, Method::PATCH, path, higher).await;
    }
}

#[tokio::test]
async fn an_approval_lasts_for_a_call_that_is_tried_again() {
    let context = TestContext::start().await;
    let user = context.partner("acme").await.user("ada").await.log_in().await;
    let accounts = format!("/admin/v1/users/{}/accounts", user["uuid"].as_str().unwrap());
    let account = json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164300",
        "name": "A. Lovelace", "limit": 5});
    context.admin(Method::POST, &accounts, account).await.assert_status(201);
    let ada = Operator::new(&context, "ada", &["compliance"]).await;
    let bob = Operator::new(&context, "bob", &["compliance"]).await;
    let (path, more) = (format!("{accounts}/NL91ABNA0417164300"), json!({"limit": 6}));
    let approval = held(&ada, Method::PATCH, &path, more.clone()).await;
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    lose_first_change(context.db(), "payment_account").await;
    let changed = ada.call(Method::PATCH, &path, more).await.assert_status(200).json();
    assert_eq!(changed["limit"], 6);
    assert_eq!(changes(context.db()).await, 2);
}

#[tokio::test]
async fn a_partner_may_demand_two_persons_for_its_policies() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["platform"]).await;
    let partner = "/admin/v1/partners/acme";
    let demand = json!({"policyApprovalRequired": true});
    let rollback = format!("{partner}/policies/fee/rollback");
    ada.call(Method::POST, &rollback, json!({})).await.assert_status(409);
    ada.call(Method::PATCH, partner, demand).await.assert_status(200);
    // Nobody is asked about a version that does not exist. A component is examined once it is agreed to.
    ada.call(Method::POST, &rollback, json!({})).await.assert_status(409);
    let versions = format!("{partner}/policies/fee/versions");
    ada.call(Method::POST, &format!("{versions}/1/activate"), json!({})).await.assert_status(404);
    held(&ada, Method::POST, &versions, json!({"component": "AAAA", "activate": true})).await;
    held(&ada, Method::PATCH, partner, json!({"policyApprovalRequired": false})).await;
}

#[tokio::test]
async fn an_owner_cannot_make_the_second_person_alone() {
    let context = TestContext::start().await;
    let olga = Operator::new(&context, "olga", &["owner"]).await;
    let sock = json!({"name": "sock", "roles": ["owner"]});
    held(&olga, Method::POST, "/admin/v1/operators", sock).await;
    Operator::new(&context, "ada", &["viewer"]).await;
    held(&olga, Method::POST, "/admin/v1/operators/ada/tokens", json!({})).await;
    let roles = json!({"roles": ["owner"]});
    held(&olga, Method::PATCH, "/admin/v1/operators/ada", roles).await;
    let off = json!({"disabled": true});
    olga.call(Method::PATCH, "/admin/v1/operators/ada", off).await.assert_status(204);
}

#[tokio::test]
async fn what_a_disabled_operator_has_agreed_to_waits_again() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let cleo = Operator::new(&context, "cleo", &["treasury"]).await;
    let (before, new) = (price(&context).await, json!({"price": 41234.56}));
    let approval = held(&ada, Method::PUT, PRICE, new.clone()).await;
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    let off = context.admin(Method::PATCH, "/admin/v1/operators/bob", json!({"disabled": true}));
    off.await.assert_status(204);
    assert_eq!(held(&ada, Method::PUT, PRICE, new.clone()).await, approval);
    assert_eq!(price(&context).await, before);
    assert_eq!(cleo.get("/admin/v1/approvals").await.json()[0]["state"], "pending");
    assert_eq!(decide(&cleo, &approval, "grant").await, 204);
    ada.call(Method::PUT, PRICE, new).await.assert_status(200);
}

#[tokio::test]
async fn a_token_for_somebody_else_takes_a_second_owner() {
    let context = TestContext::start().await;
    let olga = Operator::new(&context, "olga", &["owner"]).await;
    let otto = Operator::new(&context, "otto", &["owner"]).await;
    let eve = Operator::new(&context, "eve", &["viewer", "treasury"]).await;
    Operator::new(&context, "bob", &["treasury"]).await;
    let tokens = "/admin/v1/operators/bob/tokens";
    let approval = held(&olga, Method::POST, tokens, json!({})).await;
    assert_eq!(decide(&eve, &approval, "grant").await, 403);
    assert_eq!(decide(&eve, &approval, "refuse").await, 403);
    held(&olga, Method::POST, tokens, json!({})).await;
    assert_eq!(decide(&otto, &approval, "grant").await, 204);
    olga.call(Method::POST, tokens, json!({})).await.assert_status(201);
}

pub(super) const PAYMENTS: &str = "/admin/v1/payments";

pub(super) fn received(reference: &str, amount: Value, currency: &str) -> Value {
    json!({"partner": "acme", "kind": "received", "amount": amount, "currency": currency,
        "providerReference": reference, "reason": "seen"})
}

#[tokio::test]
async fn coins_and_matches_of_large_payments_take_two_persons() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let of = |payment: &Value, act: &str| {
        format!("{PAYMENTS}/{}/{act}", payment["id"].as_str().unwrap())
    };
    let to = json!({"orderId": order.id});
    // By any kind, coins are coins.
    held(&ada, Method::POST, PAYMENTS, received("1", json!(0.5), "BTC")).await;
    let coins = context.admin(Method::POST, PAYMENTS, received("2", json!(0.5), "BTC")).await;
    let coins = coins.assert_status(201).json();
    let back = json!({"amount": 0.5, "reason": "nobody's"});
    held(&ada, Method::POST, &of(&coins, "refund"), back).await;

    let large = context.admin(Method::POST, PAYMENTS, received("3", json!(1000.01), "EUR")).await;
    let large = large.assert_status(201).json();
    let bob = Operator::new(&context, "bob", &["treasury"]).await;
    let approval = held(&ada, Method::POST, &of(&large, "match"), to.clone()).await;
    assert_eq!(order.seen(&context).await["status"], "pending");
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    ada.call(Method::POST, &of(&large, "match"), to).await.assert_status(200);

    let small = ada.call(Method::POST, PAYMENTS, received("4", json!(100), "EUR")).await;
    let small = small.assert_status(201).json();
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let to = json!({"orderId": order.id});
    ada.call(Method::POST, &of(&small, "match"), to).await.assert_status(200);
    assert_eq!(order.seen(&context).await["status"], "in progress");
}

#[tokio::test]
async fn payouts_of_large_orders_take_two_persons() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let order = async || OrderFixture::order(&context, &acme, None, None).await;
    let (small, large) = (order().await, order().await);
    sqlx::query(
        "update buy_order set fiat_amount = 2000, crypto_amount = 0.04 where order_id = $1",
    )
    .bind(large.id)
    .execute(context.db())
    .await
    .unwrap();
    let path = |order: &OrderFixture| format!("/admin/v1/orders/{}/events", order.id);
    large.event(&context, "payment-received").await.assert_status(200);
    small.event(&context, "payment-received").await.assert_status(200);
    for event in [
        json!({"event": "coins-sent", "transactionId": "ab12"}),
        json!({"event": "confirmed-on-chain"}),
    ] {
        held(&ada, Method::POST, &path(&large), event.clone()).await;
        ada.call(Method::POST, &path(&small), event).await.assert_status(200);
    }
    assert_eq!(small.seen(&context).await["status"], "completed");
    assert_eq!(large.seen(&context).await["status"], "in progress");
}

#[tokio::test]
async fn a_statement_of_one_person_pays_no_large_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let lay = async |token: &str, reference: &str, amount: &str| {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        let statement = format!(
            "date,amount,currency,reference,providerReference\n\
             2026-03-02,{amount},EUR,order {},{reference}\n",
            order.id
        );
        let path = "/admin/v1/reconciliations?connector=manual";
        let body = Bytes::from(statement);
        let laid = context.admin_as(Some(token), Method::POST, path, body).await;
        assert_eq!(laid.assert_status(201).json()["recorded"], 1);
        let path = format!("{PAYMENTS}?order={}", order.id);
        let matched =
            context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
        !matched.as_array().unwrap().is_empty()
    };
    assert!(lay(&ada.token, "1", "1000").await);
    assert!(!lay(&ada.token, "2", "1000.01").await, "above the bound");
    assert!(lay("operator-of-the-test", "3", "1000.01").await);
    let unmatched = context.admin(Method::GET, "/admin/v1/payments?state=unmatched", Value::Null);
    assert_eq!(unmatched.await.json().as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_call_about_an_account_is_kept_with_its_id_and_its_body_until_an_erasure() {
    let context = TestContext::start().await;
    let user = context.partner("acme").await.user("ada").await.log_in().await;
    let user = format!("/admin/v1/users/{}", user["uuid"].as_str().unwrap());
    let ada = Operator::new(&context, "ada", &["compliance"]).await;
    let bob = Operator::new(&context, "bob", &["compliance"]).await;
    let (iban, accounts) = ("NL91ABNA0417164300", format!("{user}/accounts"));
    let account = json!({"type": "bankTransfer", "identifier": iban, "name": "A. Lovelace"});
    let opened = ada.call(Method::POST, &accounts, account.clone()).await.assert_status(201).json();
    let by_id = format!("{accounts}/{}", opened["accountId"].as_str().unwrap());
    let (by_iban, raised) = (format!("{accounts}/{iban}"), json!({"limitRaised": true}));
    let approval = held(&ada, Method::PATCH, &by_iban, raised.clone()).await;
    assert_eq!(held(&ada, Method::PATCH, &by_id, raised.clone()).await, approval, "asked twice");
    assert_eq!(bob.get("/admin/v1/approvals").await.json()[0]["path"], by_id);
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    ada.call(Method::PATCH, &by_iban, raised.clone()).await.assert_status(200);
    assert_eq!(dump::found(&dump::of(context.db()).await, iban), None);
    let nobody = format!("{accounts}/NL58ABNA0000000001");
    ada.call(Method::PATCH, &nobody, raised).await.assert_status(404);

    let mut another = account;
    another["identifier"] = json!("NL58ABNA0000000001");
    another["limitRaised"] = json!(true);
    held(&ada, Method::POST, &accounts, another).await;
    context.admin(Method::PATCH, &user, json!({"deleted": true})).await.assert_status(200);
    let count = async |condition: &str| -> i64 {
        let count = format!("select count(*) from approval where {condition}");
        sqlx::query_scalar(sqlx::AssertSqlSafe(count)).fetch_one(context.db()).await.unwrap()
    };
    assert_eq!((count("true").await, count("sealed_body is not null").await), (2, 0));
    let ended = "update approval set expires_at = now() - interval '31 days'";
    sqlx::query(ended).execute(context.db()).await.unwrap();
    delete_old_approvals(context.core()).await.unwrap();
    assert_eq!(count("true").await, 0);
}
