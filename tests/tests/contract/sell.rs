//! Selling: getting a user ready, and sales until they are paid out.

mod confirm;
mod onboarding;
mod onboarding_page;
mod operators;
mod orders;
mod timeline;

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::partner::{Partner, Request};
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use crate::orders::user;

const CONFIRM: &str = "/api/v1/sell/confirm";
const ORDERS: &str = "/api/v1/user/sell/orders";

/// A user who sells, and the partner.
pub(crate) struct Seller {
    partner: Partner,
    identifier: String,
}

impl Seller {
    pub(crate) async fn of(context: &TestContext, partner: &Partner, name: &str) -> Self {
        let identifier = format!("{name:x<36}");
        user(context, partner, &identifier).await;
        Self { partner: partner.clone(), identifier }
    }

    fn at(&self, edge: &TestContext) -> Self {
        Self { partner: self.partner.at(edge), identifier: self.identifier.clone() }
    }

    fn request(&self, method: Method, path: &str) -> Request {
        self.partner.request(method, path).header("user-identifier", &self.identifier)
    }

    async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path).send().await
    }

    async fn confirm(&self, body: &Value) -> Answer {
        self.request(Method::POST, CONFIRM).json(body).send().await
    }

    /// A quote for so much of a currency.
    async fn quote(&self, currency: &str, amount: &str) -> Value {
        let pair = format!("{currency}-EUR");
        let body = json!({"currencyPair": pair, "cryptoAmount": amount});
        let answer = self.request(Method::POST, "/api/v1/sell/quote").json(&body).send().await;
        answer.assert_status(200);
        answer.json()
    }

    /// Confirms a new quote over 0.01 BTC.
    pub(crate) async fn sale(&self, change: impl FnOnce(&mut Value)) -> Value {
        let mut body = json!({"quote": self.quote("BTC", "0.01").await["quote"]});
        change(&mut body);
        self.confirm(&body).await.assert_status(200).json()
    }

    async fn read(&self, sale: &Value) -> Value {
        let answer = self.get(&format!("{ORDERS}/{}", sale["orderId"])).await;
        answer.assert_status(200).json()
    }

    async fn happen(&self, sale: &Value, event: &str) -> Answer {
        let path = format!("/api/v2/sandbox/sell/orders/{}/{event}", sale["orderId"]);
        self.partner.post(&path, json!({})).await
    }
}
