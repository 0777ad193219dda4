//! The gate before coins leave: what a paid order waits for, who clears it, and what follows.

mod accounts;
mod cancellations;
mod identity;
mod pages;
mod plans;
mod races;
mod sales;
mod sandbox;
mod screening;
mod wallets;

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::connector::Connector;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};

/// A live partner with a user who has passed every check, and the connector that moves its money.
struct Shop {
    context: TestContext,
    partner: Partner,
    connector: Connector,
    ada: User,
    /// Path of the user in the operators' API.
    user: String,
}

impl Shop {
    async fn open() -> Self {
        Self::over(TestContext::start().await).await
    }

    async fn over(context: TestContext) -> Self {
        let connector = Connector::of_live(&context).await;
        let body = json!({"slug": "acme", "name": "Acme", "mode": "live"});
        let partner = context.partner_of(body).await;
        let ada = partner.user("ada").await;
        let uuid = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
        let user = format!("/admin/v1/users/{uuid}");
        let shop = Self { context, partner, connector, ada, user };
        shop.change(json!({"limitOverrides": {"user_day_limit": 1_000_000,
            "user_day_limit_fiat_to_coin": 1_000_000}}))
            .await;
        shop.change(json!({"verification": {"identity": "verified", "amld5": "verified"}})).await;
        shop
    }

    /// An operator's change of the user.
    async fn change(&self, body: Value) {
        self.context.admin(Method::PATCH, &self.user, body).await.assert_status(200);
    }

    /// Ada's confirmed order of ETH.
    async fn order(&self, fiat: u32, wallet: &str) -> i64 {
        order_of(&self.ada, fiat, wallet).await
    }

    /// Ada's order, created and paid at the connector.
    async fn paid(&self, fiat: u32, wallet: &str) -> i64 {
        let order = self.order(fiat, wallet).await;
        self.pay(order, fiat).await;
        order
    }

    async fn pay(&self, order: i64, fiat: u32) {
        for command in self.connector.lease(100).await {
            assert_eq!(command["kind"], "payment.create");
            self.connector.report(&command, "done", json!({})).await.assert_status(200);
        }
        let paid = json!({"id": format!("paid-{order}"), "kind": "payment.received",
            "occurredAt": "2026-03-01T12:00:00Z", "partner": "acme", "orderId": order,
            "providerReference": format!("pay-{order}"), "amount": fiat, "currency": "EUR"});
        self.connector.event(paid).await.assert_status(200);
    }

    /// The reasons that Ada's order is not completed.
    async fn reasons(&self, order: i64) -> Vec<Value> {
        reasons_of(&self.ada, order).await
    }

    /// The codes of those reasons.
    async fn codes(&self, order: i64) -> Vec<String> {
        let reasons = self.reasons(order).await;
        reasons.iter().map(|reason| reason["code"].as_str().unwrap().to_owned()).collect()
    }

    /// Payouts that were commanded for an order.
    async fn payouts(&self, order: i64) -> i64 {
        let count = "select count(*) from command where order_id = $1 and kind = 'payout.send'";
        sqlx::query_scalar(count).bind(order).fetch_one(self.context.db()).await.unwrap()
    }

    /// An operator's call.
    async fn decide(&self, path: &str, body: Value) -> Answer {
        self.context.admin(Method::POST, path, body).await
    }
}

/// A user's confirmed order of ETH.
async fn order_of(user: &User, fiat: u32, wallet: &str) -> i64 {
    let asked =
        json!({"currencyPair": "ETH-EUR", "paymentMethod": "creditCard", "fiatAmount": fiat});
    let quote = user.post("/api/v1/buy/quote", &asked).await.assert_status(200).json();
    let confirm = json!({"quote": quote["quote"], "walletAddress": wallet,
        "returnUrl": "https://shop.example/back"});
    let confirmed = user.post("/api/v1/buy/confirm", &confirm).await.assert_status(200).json();
    confirmed["orderId"].as_i64().unwrap()
}

async fn reasons_of(user: &User, order: i64) -> Vec<Value> {
    let read = user.get(&format!("/api/v1/user/buy/orders/{order}")).await;
    let reasons = read.assert_status(200).json()["orderNotCompletedReasons"].take();
    reasons.as_array().unwrap().clone()
}

/// The path of a reason's page.
fn path(reason: &Value) -> String {
    let url = reason["url"].as_str().unwrap();
    url.strip_prefix("https://pay.example.com").unwrap().to_owned()
}

/// Opens a page.
async fn visit(partner: &Partner, path: &str) -> Answer {
    partner.anonymous(Method::GET, path).send().await
}

/// The page that an answer leads to, or the answer itself.
async fn shown(partner: &Partner, answer: Answer) -> Answer {
    match answer.header("location") {
        Some(path) => {
            answer.assert_status(303);
            visit(partner, path).await
        }
        None => answer,
    }
}

/// Sends a page's form; what is shown afterwards.
async fn send(partner: &Partner, path: &str, members: &[(&str, &str)]) -> Answer {
    let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(members).finish();
    let request = partner.anonymous(Method::POST, path);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    shown(partner, request.body(form).send().await).await
}

/// The text between two others in a page.
fn between<'a>(page: &'a Answer, before: &str, after: &str) -> &'a str {
    let (_, rest) = page.text().split_once(before).unwrap();
    rest.split_once(after).unwrap().0
}

#[tokio::test]
async fn every_reason_of_a_user_has_a_page_that_answers() {
    let shop = Shop::open().await;
    shop.change(json!({"dac8Status": "missing", "verification": {"identity": "pending",
        "amld5": "pending", "residentialAddress": "missing", "privacyAgreement": "pending"}}))
        .await;
    let order = shop.paid(1500, "0x52908400098527886E0F7030069857D2E4169EE7").await;
    assert_eq!(shop.codes(order).await, ["010", "011", "012", "013", "014", "021"]);
    for reason in shop.reasons(order).await {
        assert_eq!(reason["userActionRequired"], true);
        let page = visit(&shop.partner, &path(&reason)).await;
        page.assert_status(200);
        assert!(page.text().contains("<form") || reason["code"] == "011", "{reason}");
    }
    let forged = path(&shop.reasons(order).await[0]).replace("/checks/", "/checks/A");
    visit(&shop.partner, &forged).await.assert_status(404);
}
