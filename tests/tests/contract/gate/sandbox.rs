//! A test client's order passes the gate without an operator.

use chrono::TimeDelta;

use super::*;

const WALLET: &str = "0x52908400098527886E0F7030069857D2E4169EE7";

#[tokio::test]
async fn the_users_of_test_clients_pass_every_check_on_the_pages() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let gate = json!({"complianceGate": "before-payout"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", gate).await.assert_status(200);
    let mut body = rampart_tests::user::registration("ada");
    for member in ["address", "addressNo", "postalCode", "city", "privacyAgreement"] {
        body.as_object_mut().unwrap().remove(member);
    }
    let ada = User {
        partner: acme.clone(),
        identifier: body["identifier"].as_str().unwrap().to_owned(),
        email: String::new(),
        password: String::new(),
    };
    acme.post("/api/v2/user", body).await.assert_status(200);
    let order = order_of(&ada, 100, WALLET).await;
    let event = format!("/api/v2/sandbox/orders/{order}/payment-received");
    ada.post(&event, &json!({})).await.assert_status(200);
    let settle = async || {
        context.clock().advance(TimeDelta::seconds(60));
        context.core().settle_sandbox_orders().await.unwrap();
        let read = ada.get(&format!("/api/v2/buy/orders/{order}")).await.json();
        read["blockchainInfo"]["transactionId"].as_str().unwrap().to_owned()
    };
    assert_eq!(settle().await, "", "the coins wait");
    let codes: Vec<_> = reasons_of(&ada, order).await.iter().map(|r| r["code"].clone()).collect();
    assert_eq!(codes, ["010", "011", "012", "014"]);
    let pages: Vec<_> = reasons_of(&ada, order).await.iter().map(path).collect();
    send(&acme, &pages[0], &[]).await.assert_status(400);
    send(&acme, &pages[0], &[("privacy", "yes")]).await.assert_status(200);
    send(&acme, &pages[1], &[("outcome", "failed")]).await.assert_status(200);
    let status = "select identity_status from end_user where identity_status = 'failed'";
    let failed: Option<String> =
        sqlx::query_scalar(status).fetch_optional(context.db()).await.unwrap();
    assert!(failed.is_some());
    send(&acme, &pages[1], &[("outcome", "verified")]).await.assert_status(200);
    let questions = visit(&acme, &pages[2]).await;
    let names: Vec<_> = questions.text().split("<select name=\"").skip(1).collect();
    let answers: Vec<_> = names
        .iter()
        .map(|rest| {
            let name = rest.split('"').next().unwrap();
            let option = rest.split("<option value=\"").nth(2).unwrap().split('"').next().unwrap();
            (name, option)
        })
        .collect();
    assert!(answers.len() > 3, "{}", questions.text());
    send(&acme, &pages[2], &answers).await.assert_status(200);
    send(&acme, &pages[3], &[("address", "Keizersgracht")]).await.assert_status(400);
    let address = [
        ("address", "Keizersgracht"),
        ("addressNo", "7"),
        ("postalCode", "1015 CJ"),
        ("city", "Amsterdam"),
    ];
    send(&acme, &pages[3], &address).await.assert_status(200);
    assert!(reasons_of(&ada, order).await.is_empty());
    context.core().settle_sandbox_orders().await.unwrap();
    assert_ne!(settle().await, "", "the coins have left");
}

#[tokio::test]
async fn magic_values_give_each_outcome_of_a_screening() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    for (name, codes) in [("Sandboxreview", ["023"]), ("Sandboxblock", ["023"])] {
        ada.patch("/api/v2/user", &json!({ "lastName": name })).await.assert_status(200);
        let order = order_of(&ada, 100, WALLET).await;
        let all: Vec<_> = reasons_of(&ada, order).await.iter().map(|r| r["code"].clone()).collect();
        assert!(all.ends_with(&codes.map(Value::from)), "{all:?}");
    }
    ada.patch("/api/v2/user", &json!({"lastName": "Lovelace"})).await.assert_status(200);
    for (reference, is_held) in [
        ("sandbox-screening-review", true),
        ("sandbox-screening-block-7", true),
        ("sandbox-screening-blocks", false),
    ] {
        let asked =
            json!({"currencyPair": "ETH-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
        let quote = ada.post("/api/v1/buy/quote", &asked).await.json();
        let confirm = json!({"quote": quote["quote"], "walletAddress": WALLET,
            "partnerOrderIdentifier": reference, "returnUrl": "https://shop.example/back"});
        let order = ada.post("/api/v1/buy/confirm", &confirm).await.assert_status(200).json();
        let reasons = reasons_of(&ada, order["orderId"].as_i64().unwrap()).await;
        assert_eq!(reasons.iter().any(|r| r["code"] == "023"), is_held, "{reference}");
    }
}
