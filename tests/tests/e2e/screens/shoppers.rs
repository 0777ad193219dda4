//! Pages for shoppers.

use http::Method;
use rampart_tests::caller::Caller;
use rampart_tests::cluster;
use rampart_tests::edge::Edge;
use rampart_tests::user::registration;
use serde_json::{Value, json};

use super::{Visitor, edge};
use crate::buyer::{RETURN_URL, WALLET, order};

/// A user who buys at a partner's.
struct Buyer<'a> {
    partner: &'a Caller,
    identifier: String,
    uuid: String,
}

impl<'a> Buyer<'a> {
    /// Registers a user with this body.
    async fn register(partner: &'a Caller, user: Value) -> Self {
        let login = partner.register(&user).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self { partner, identifier: text(&user["identifier"]), uuid: text(&login["uuid"]) }
    }

    /// The answer to a request for the user.
    async fn send(&self, method: Method, path: &str, body: Value) -> Value {
        let request = self.partner.request(method, path);
        let request = request.header("user-identifier", &self.identifier);
        request.json(&body).send().await.assert_status(200).json()
    }

    /// Buys ETH for so many euros by card, with further members of the confirm.
    async fn buy(&self, euros: u32, members: Value) -> Value {
        let asked = json!({"currencyPair": "ETH-EUR", "paymentMethod": "creditCard",
            "fiatAmount": euros});
        let quote = self.send(Method::POST, "/api/v1/buy/quote", asked).await;
        let mut body = json!({"quote": quote["quote"], "returnUrl": RETURN_URL,
            "walletAddress": "0x52908400098527886E0F7030069857D2E4169EE7"});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self.send(Method::POST, "/api/v1/buy/confirm", body).await
    }
}

/// The checkout, from the shop's terms to the order.
async fn checkout(visitor: &mut Visitor, edge: &Edge, partner: &Caller) {
    let body = json!({
        "baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard",
        "quoteCurrencyAmount": 100, "returnUrl": RETURN_URL,
    });
    let made = partner.post("/api/v2/buy/checkout", body.clone()).await;
    let made = made.assert_status(200).json();
    visitor.visit("checkout", made["checkoutUrl"].as_str().unwrap()).await;
    visitor.browser.enter("input[name=wallet]", "not an address").await;
    visitor.browser.click("button[value=quote]").await;
    visitor.look("checkout-refused").await;
    let focused = visitor.browser.run("return document.activeElement.className").await;
    assert_eq!(focused, "errors", "the page opens at what is wrong");
    visitor.browser.enter("input[name=wallet]", WALLET).await;
    visitor.browser.click("button[value=quote]").await;
    visitor.browser.shows("Check and confirm").await;
    visitor.look("checkout-confirm").await;
    visitor.browser.click("input[name=consent]").await;
    visitor.browser.click("button[value=confirm]").await;
    visitor.browser.shows("Choose how this test payment ends.").await;
    visitor.look("pay").await;
    let expired = partner.post("/api/v2/buy/checkout", body).await.assert_status(200).json();
    let pool = cluster::pool(edge.setup().database()).await;
    sqlx::query("update offer set expires_at = now()").execute(&pool).await.unwrap();
    visitor.visit("checkout-ended", expired["checkoutUrl"].as_str().unwrap()).await;
}

/// The payment page of an order that has gone its way.
async fn pay(visitor: &mut Visitor, partner: &Caller, events: &[&str], name: &str) {
    let confirmed = order(partner).await.json();
    for event in events {
        let path = format!("/api/v2/sandbox/orders/{}/{event}", confirmed["orderId"]);
        partner.post(&path, Value::Null).await.assert_status(200);
    }
    visitor.visit(name, confirmed["paymentUrl"].as_str().unwrap()).await;
}

/// The pages that a user's account opens.
async fn account(visitor: &mut Visitor, partner: &Caller) {
    let ada = Buyer::register(partner, registration("ada")).await;
    let info = ada.send(Method::GET, "/api/v1/system/info", Value::Null).await;
    let urls = &info["privateUrls"];
    for (name, locales) in urls.as_object().unwrap() {
        let login = ada.send(Method::GET, "/api/v1/user/login-token", Value::Null).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let url = format!(
            "{}?token={}&uuid={}",
            text(&locales["nl-nl"]),
            text(&login["token"]),
            text(&login["uuid"])
        );
        visitor.visit(&format!("account-{name}"), &url).await;
    }
    let body = json!({"identifier": "z".repeat(40), "returnUrl": RETURN_URL});
    let made = partner.post("/api/v1/user/register-identifier", body).await;
    let url = made.assert_status(200).json()["redirectUrl"]["nl-nl"].take();
    visitor.visit("register", url.as_str().unwrap()).await;
    let body = json!({"returnUrl": RETURN_URL, "identifier": "y".repeat(40), "locale": "nl-NL"});
    let made = partner.post("/api/v2/sell/onboarding", body).await.assert_status(200).json();
    visitor.visit("onboarding", made["onboardingUrl"].as_str().unwrap()).await;
}

/// The pages on which a user passes what holds the coins of an order up, one of them after a mistake.
async fn checks(visitor: &mut Visitor, edge: &Edge, partner: &Caller) {
    let mut user = registration("bea");
    for member in ["address", "addressNo", "postalCode", "city", "privacyAgreement"] {
        user.as_object_mut().unwrap().remove(member);
    }
    let bea = Buyer::register(partner, user).await;
    let path = format!("/admin/v1/users/{}", bea.uuid);
    let change = json!({"dac8Status": "missing", "limitOverrides":
        {"user_day_limit": 10_000, "user_day_limit_fiat_to_coin": 10_000}});
    edge.admin(Method::PATCH, &path, change).await.assert_status(200);
    let confirmed = bea.buy(1500, json!({"walletType": "unhosted"})).await;
    let order = &confirmed["orderId"];
    let path = format!("/api/v1/user/buy/orders/{order}");
    let read = bea.send(Method::GET, &path, Value::Null).await;
    let mut seen = Vec::new();
    for reason in read["orderNotCompletedReasons"].as_array().unwrap() {
        let url = reason["url"].as_str().unwrap();
        let name = url.rsplit('/').next().unwrap();
        visitor.visit(&format!("check-{name}"), url).await;
        seen.push(name);
        if name == "address" {
            visitor.browser.run("document.querySelector('form').noValidate = true").await;
            visitor.browser.click("button.main").await;
            visitor.look("check-address-refused").await;
        }
    }
    assert_eq!(seen, ["registration", "identity", "amld5", "tax", "address", "wallet"]);
    visitor.visit("check-ended", &edge.url("/checks/nobody/identity")).await;
    let gate = json!({"complianceGate": "before-payout"});
    edge.admin(Method::PATCH, "/admin/v1/partners/browsed", gate).await.assert_status(200);
    let paid = format!("/api/v2/sandbox/orders/{order}/payment-received");
    partner.post(&paid, Value::Null).await.assert_status(200);
    visitor.visit("pay-checks", confirmed["paymentUrl"].as_str().unwrap()).await;
}

/// The page on which a user shows that the account that paid is theirs: a card by a button, what is no
/// card of theirs any more by a proof that a person reads.
async fn account_checks(visitor: &mut Visitor, edge: &Edge, partner: &Caller) {
    const CARD: &str = "555555******0010";
    let cas = Buyer::register(partner, registration("cas")).await;
    let accounts = format!("/admin/v1/users/{}/accounts", cas.uuid);
    let card = json!({"type": "creditCard", "identifier": CARD, "name": "Cas", "verified": true});
    let card = edge.admin(Method::POST, &accounts, card).await.assert_status(201).json();
    let change = async |change: Value| {
        let path = format!("{accounts}/{}", card["accountId"].as_str().unwrap());
        edge.admin(Method::PATCH, &path, change).await.assert_status(200);
    };
    let confirmed = cas.buy(100, json!({"accountIdentifier": CARD})).await;
    change(json!({"verified": false})).await;
    let path = format!("/api/v1/user/buy/orders/{}", confirmed["orderId"]);
    let link = async || {
        let read = cas.send(Method::GET, &path, Value::Null).await;
        let reasons = read["orderNotCompletedReasons"].as_array().unwrap();
        let mut urls = reasons.iter().map(|reason| reason["url"].as_str().unwrap().to_owned());
        urls.find(|url| url.ends_with("/account"))
    };
    let url = &link().await.unwrap();
    visitor.visit("check-account-card", url).await;
    change(json!({"disabled": true})).await;
    visitor.visit("check-account-proof", url).await;
    change(json!({"disabled": false})).await;
    visitor.browser.open(url).await;
    visitor.browser.click("button[value=verify]").await;
    visitor.look("check-passed").await;
    assert_eq!(link().await, None);
}

#[tokio::test]
async fn shoppers_pages_look_as_they_should() {
    let edge = edge().await;
    let partner = edge.partner("browsed").await.authenticated().await;
    let mut visitor = Visitor::start().await;
    checkout(&mut visitor, &edge, &partner).await;
    pay(&mut visitor, &partner, &["payment-received"], "pay-on-its-way").await;
    let done = ["payment-received", "coins-sent", "confirmed-on-chain"];
    pay(&mut visitor, &partner, &done, "pay-completed").await;
    pay(&mut visitor, &partner, &["cancel"], "pay-cancelled").await;
    account(&mut visitor, &partner).await;
    checks(&mut visitor, &edge, &partner).await;
    account_checks(&mut visitor, &edge, &partner).await;
    visitor.end();
}
