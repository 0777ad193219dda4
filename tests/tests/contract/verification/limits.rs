//! Limits of a user and its accounts.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{admin_path, changed, opened};

const PATH: &str = "/api/v2/user/limit";
const CARD: &str = "555555******4444";

fn euros(cents: &str) -> Value {
    json!({"amount": cents, "calculator": "decimal", "currency": {"code": "EUR"}})
}

async fn priced(context: &TestContext) {
    let path = "/admin/v1/prices/BTC-EUR";
    context.admin(Method::PUT, path, json!({"price": 50000})).await.assert_status(200);
    context.core().refresh().await.unwrap();
}

#[tokio::test]
async fn remaining_amounts_follow_the_orders_of_the_day() {
    let context = TestContext::start().await;
    priced(&context).await;
    let ada = context.partner("acme").await.user("ada").await;
    let day =
        async || ada.get(PATH).await.assert_status(200).json()["limits"]["user_day_limit"].clone();
    assert_eq!(
        day().await,
        json!({"type": "user", "blockType": "hard", "subType": "user_day_limit",
            "boundaryType": "maximum", "limit": euros("100000"), "remainingLimit": euros("100000")})
    );
    let order = ada.buy(400).await.assert_status(200).json()["orderId"].clone();
    assert_eq!(day().await["remainingLimit"], euros("60000"));
    ada.buy(700).await.assert_status(400).assert_codes(&["ER011"]);
    ada.buy(600).await.assert_status(200);
    assert_eq!(day().await["remainingLimit"], euros("0"));
    let path = format!("/admin/v1/orders/{order}/events");
    context.admin(Method::POST, &path, json!({"event": "cancel"})).await.assert_status(200);
    assert_eq!(day().await["remainingLimit"], euros("40000"));
    context.clock().advance(TimeDelta::hours(25));
    assert_eq!(day().await["remainingLimit"], euros("100000"));
}

#[tokio::test]
async fn an_operator_sets_other_limits() {
    let context = TestContext::start().await;
    priced(&context).await;
    let ada = context.partner("acme").await.user("ada").await;
    let set = json!({"limitOverrides": {"user_day_limit": 50.5, "number_of_non_raised_accounts_limit": 1}});
    context.admin(Method::PATCH, &admin_path(&ada).await, set).await.assert_status(200);
    let limits = ada.get(PATH).await.json()["limits"].clone();
    assert_eq!(limits["user_day_limit"]["limit"], euros("5050"));
    assert_eq!(limits["non_raised_limit_account_limit"]["limit"], euros("5050"));
    assert_eq!(limits["number_of_non_raised_accounts_limit"]["limit"], json!(1));
    ada.buy(51).await.assert_codes(&["ER011"]);
    let profile = ada.get("/api/v1/user/info").await.json();
    assert_eq!(profile["limits"]["buy"]["limit"]["amount"], json!(50.5));
}

#[tokio::test]
async fn accounts_have_limits_of_their_own() {
    let context = TestContext::start().await;
    priced(&context).await;
    let ada = context.partner("acme").await.user("ada").await;
    opened(&context, &ada, json!({"type": "creditCard", "identifier": CARD, "name": "Ada"})).await;
    ada.buy(100).await.assert_status(200);
    let card = async || ada.get(PATH).await.json()["accounts"][CARD].clone();
    let new = card().await;
    for (member, value) in [
        ("identifier", json!(CARD)),
        ("name", json!("Ada")),
        ("type", json!("creditCard")),
        ("disabled", json!(false)),
        ("verified", json!(false)),
        ("limitRaised", json!(false)),
        ("isStoredCard", json!(false)),
        ("totalSpent", euros("10000")),
    ] {
        assert_eq!(new[member], value, "{member}");
    }
    assert!(new["lastUsedAt"].is_string());
    assert_eq!(new["limit"]["subType"], "new_limited_account_limit");
    assert_eq!(new["limit"]["remainingLimit"], euros("15000"));
    changed(&context, &ada, CARD, json!({"limitRaised": true})).await;
    assert_eq!(card().await["limit"], Value::Null);
    changed(&context, &ada, CARD, json!({"limit": 80})).await;
    assert_eq!(card().await["limit"]["remainingLimit"], euros("0"));
    changed(&context, &ada, CARD, json!({"disabled": true})).await;
    assert_eq!(card().await["limit"]["subType"], "disabled_account_limit");
}

#[tokio::test]
async fn groups_narrow_the_answer() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    opened(&context, &ada, json!({"type": "creditCard", "identifier": CARD, "name": "Ada"})).await;
    let user = ada.get(&format!("{PATH}?groups=userLimits")).await.assert_status(200).json();
    assert_eq!((user["limits"].as_object().unwrap().len(), &user["accounts"]), (4, &json!({})));
    let accounts = ada.get(&format!("{PATH}?groups=accountLimits")).await.json();
    assert_eq!(
        (&accounts["limits"], accounts["accounts"].as_object().unwrap().len()),
        (&json!({}), 1)
    );
    let both = ada.get(&format!("{PATH}?groups=userLimits,accountLimits")).await.json();
    assert_eq!(both, ada.get(PATH).await.json());
    let types = json!(["mobilepay1", "mobilepay2", "creditCard", "localcard"]);
    assert_eq!(both["limitedAccountTypes"], types);
    acme.get(PATH).await.assert_codes(&["ER700"]);
}
