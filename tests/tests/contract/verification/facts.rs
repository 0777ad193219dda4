//! Facts about users and their accounts, which follow from what happened.

use chrono::{DateTime, TimeDelta, Utc};
use rampart_tests::buyer::WALLET;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::user::registration;

use super::*;

const CARD: &str = "555555******4444";

async fn with_card() -> (TestContext, Partner, User) {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let card = json!({"type": "creditCard", "identifier": CARD, "name": "Ada", "verified": true});
    opened(&context, &ada, card).await;
    (context, acme, ada)
}

async fn card(user: &User) -> Value {
    user.get("/api/v2/user/limit").await.assert_status(200).json()["accounts"][CARD].clone()
}

async fn quote(user: &User, method: &str) -> Value {
    let asked = json!({"currencyPair": "BTC-EUR", "paymentMethod": method, "fiatAmount": 100});
    user.post("/api/v1/buy/quote", &asked).await.assert_status(200).json()
}

#[tokio::test]
async fn a_card_has_fast_access_where_an_operator_enabled_it() {
    let (context, _, ada) = with_card().await;
    assert_eq!(card(&ada).await["fastAccessEnabled"], false);
    let accounts = format!("{}/accounts", admin_path(&ada).await);
    for (change, enabled) in [
        (json!({"fastAccessEnabled": true}), true),
        (json!({"disabled": true}), false),
        (json!({"disabled": false, "verified": false}), false),
        (json!({"verified": true}), true),
        (json!({"fastAccessEnabled": false}), false),
    ] {
        let path = format!("{accounts}/{CARD}");
        let shown = context.admin(Method::PATCH, &path, change).await.assert_status(200).json();
        assert_eq!(shown["fastAccessEnabled"], enabled);
        assert_eq!(card(&ada).await["fastAccessEnabled"], enabled);
    }
    let bank = json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164300", "name": "Ada",
        "fastAccessEnabled": true});
    context.admin(Method::POST, &accounts, bank.clone()).await.assert_status(422);
    let mut bank = bank;
    bank["fastAccessEnabled"] = json!(false);
    let opened = context.admin(Method::POST, &accounts, bank).await.assert_status(201).json();
    assert_eq!(opened["fastAccessEnabled"], Value::Null);
}

#[tokio::test]
async fn an_account_was_last_used_when_an_order_named_it() {
    let (context, _, ada) = with_card().await;
    let used = async || {
        let used = card(&ada).await["lastUsedAt"].as_str().unwrap().to_owned();
        used.parse::<DateTime<Utc>>().unwrap()
    };
    let opened = used().await;
    context.clock().advance(TimeDelta::minutes(10));
    for (account, moved) in [(Value::Null, false), (json!(CARD), true)] {
        let body = json!({"quote": quote(&ada, "creditCard").await["quote"],
            "returnUrl": "https://shop.example/", "walletAddress": WALLET,
            "accountIdentifier": account});
        ada.post("/api/v1/buy/confirm", &body).await.assert_status(200);
        assert_eq!(used().await - opened >= TimeDelta::minutes(10), moved);
    }
    // It is as new as before: the limit of a new account is not lifted by its use.
    assert_eq!(card(&ada).await["limit"]["subType"], "new_limited_account_limit");
    let before = used().await;
    context.clock().advance(TimeDelta::minutes(10));
    let asked = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard",
        "cryptoAmount": 0.002});
    let sale = ada.post("/api/v1/sell/quote", &asked).await.assert_status(200).json();
    let body = json!({"quote": sale["quote"], "accountIdentifier": CARD});
    ada.post("/api/v1/sell/confirm", &body).await.assert_status(200);
    assert!(used().await - before >= TimeDelta::minutes(10));
}

#[tokio::test]
async fn a_method_is_disabled_where_all_accounts_of_the_user_are() {
    let (context, _, ada) = with_card().await;
    let disabled = async |method: &str| {
        let reasons = quote(&ada, method).await["quoteUnconfirmableReasons"].clone();
        reasons.as_array().unwrap().contains(&json!("paymentMethodDisabled"))
    };
    assert!(!disabled("creditCard").await);
    changed(&context, &ada, CARD, json!({"disabled": true})).await;
    assert!(disabled("creditCard").await && disabled("mobilepay1").await);
    assert!(!disabled("bankTransfer").await);
    let other = json!({"type": "creditCard", "identifier": "411111******1111", "name": "Ada"});
    opened(&context, &ada, other).await;
    assert!(!disabled("creditCard").await);
}

#[tokio::test]
async fn the_wallets_of_a_profile_are_those_of_completed_purchases_and_plans() {
    let (context, acme, ada) = with_card().await;
    let wallets =
        async || ada.get("/api/v1/user/info").await.json()["enabledWalletAddresses"].clone();
    assert_eq!(wallets().await, json!([]));
    let uuid: uuid::Uuid = ada.log_in().await["uuid"].as_str().unwrap().parse().unwrap();
    for status in ["completed", "completed", "cancelled"] {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        sqlx::query("update buy_order set user_id = $1, status = $2 where order_id = $3")
            .bind(uuid)
            .bind(status)
            .bind(order.id)
            .execute(context.db())
            .await
            .unwrap();
    }
    let shown = wallets().await;
    let id = shown[0]["id"].clone();
    assert!(id.as_str().unwrap().parse::<uuid::Uuid>().is_ok());
    let wallet = json!([{"id": id, "currency": "BTC", "address": WALLET, "destinationTag": null,
        "name": "BTC … 5mdq"}]);
    assert_eq!(shown, wallet);
    let plan = json!({"cryptoCurrency": "XRP", "walletAddress": "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh",
        "destinationTag": 7, "name": "For later"});
    let path = format!("{}/dca-codes", admin_path(&ada).await);
    context.admin(Method::POST, &path, plan).await.assert_status(201);
    let shown = wallets().await;
    assert_eq!(shown.as_array().unwrap().len(), 2);
    assert_eq!((&shown[0]["name"], &shown[0]["destinationTag"]), (&json!("For later"), &json!(7)));
    assert_eq!(shown[1], wallet[0], "the id stays");
    let other = acme.user("bob").await;
    assert_eq!(other.get("/api/v1/user/info").await.json()["enabledWalletAddresses"], json!([]));
}

#[tokio::test]
async fn a_user_is_a_business_as_its_details_say_unless_it_says_otherwise() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (name, said, is_business) in
        [("ada", None, true), ("bob", Some(false), false), ("eve", Some(true), true)]
    {
        let mut body = registration(name);
        body["businessName"] = json!("Acme B.V.");
        body["isBusiness"] = json!(said);
        let user = acme.post("/api/v2/user", body).await;
        assert_eq!(user.assert_status(200).json()["isBusiness"], is_business, "{name}");
    }
    let cy = acme.user("cy").await;
    let change = json!({"chamberOfCommerce": "12345678"});
    cy.patch("/api/v2/user", &change).await.assert_status(200);
    assert_eq!(cy.get("/api/v1/user/info").await.json()["isBusiness"], true);
}
