//! Tokens of a user whom an operator disables, over the whole table of endpoints.

use chrono::TimeDelta;
use http::Method;
use rampart_api::ENDPOINTS;
use rampart_core::auth::caller::UserProof;
use rampart_core::endpoint::Route;
use rampart_core::platform::error::Code;
use rampart_tests::buyer::WALLET;
use rampart_tests::partner::Request;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};

use super::some_path;

/// A user with the token of a login.
struct Holder {
    context: TestContext,
    user: User,
    uuid: String,
    token: String,
}

impl Holder {
    async fn start() -> Self {
        let context = TestContext::start().await;
        let user = context.partner("acme").await.user("ada").await;
        let session = user.log_in().await;
        let text = |name: &str| session[name].as_str().unwrap().to_owned();
        Self { context, user, uuid: text("uuid"), token: format!("Bearer {}", text("token")) }
    }

    /// An operator's decision.
    async fn set_disabled(&self, disabled: bool) {
        self.context.clock().advance(TimeDelta::seconds(60));
        let path = format!("/admin/v1/users/{}", self.uuid);
        let body = json!({ "disabled": disabled });
        self.context.admin(Method::PATCH, &path, body).await.assert_status(200);
    }

    /// A request with the token.
    fn request(&self, method: Method, path: &str) -> Request {
        self.user.partner.request(method, path).header("user-authorization", &self.token)
    }

    /// Codes of the answer to a request with an empty body.
    async fn codes(&self, route: &Route) -> Vec<String> {
        self.request(route.method.clone(), &some_path(route)).body("{}").send().await.codes()
    }
}

/// The routes that read a user's token.
fn for_users() -> impl Iterator<Item = &'static Route> {
    ENDPOINTS.iter().filter(|route| route.client && route.user != UserProof::None)
}

/// True for a confirm, which refuses a disabled user itself.
fn confirms(route: &Route) -> bool {
    route.errors.contains(&Code::UserDisabled)
}

#[tokio::test]
async fn every_route_refuses_the_token_of_a_disabled_user() {
    let ada = Holder::start().await;
    let info = "/api/v1/user/info";
    ada.request(Method::GET, info).send().await.assert_status(200);
    ada.set_disabled(true).await;
    for route in for_users().filter(|route| !confirms(route)) {
        assert_eq!(ada.codes(route).await, ["ER702"], "{route:?}");
    }
    let both = ada.request(Method::GET, info).header("user-identifier", &ada.user.identifier);
    both.send().await.assert_status(400).assert_codes(&["ER702"]);
    ada.user.get(info).await.assert_status(200);
    // A login that has ended stays so.
    ada.set_disabled(false).await;
    for route in for_users() {
        assert_eq!(ada.codes(route).await, ["ER702"], "{route:?}");
    }
}

#[tokio::test]
async fn a_token_is_not_good_again_after_the_sandboxs_events() {
    let ada = Holder::start().await;
    let info = "/api/v1/user/info";
    let simulate = async |event: &str| {
        ada.context.clock().advance(TimeDelta::seconds(60));
        let body = json!({ "event": event });
        ada.user.post("/api/v2/sandbox/user/events", &body).await.assert_status(204);
    };
    simulate("enable").await;
    // It was not disabled.
    ada.request(Method::GET, info).send().await.assert_status(200);
    for event in ["disable", "enable"] {
        simulate(event).await;
        assert_eq!(ada.request(Method::GET, info).send().await.codes(), ["ER702"], "{event}");
    }
    ada.user.get(info).await.assert_status(200);
}

#[tokio::test]
async fn a_confirm_with_the_token_of_a_disabled_user_says_that_it_is_disabled() {
    let ada = Holder::start().await;
    ada.set_disabled(true).await;
    let purchase =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 30});
    let sale = json!({"currencyPair": "BTC-EUR", "cryptoAmount": "0.002"});
    let wallet = json!({"walletAddress": WALLET, "returnUrl": "https://shop.example/back"});
    for (side, asked, mut body) in [("buy", purchase, wallet), ("sell", sale, Value::Null)] {
        let quote = ada.user.post(&format!("/api/v1/{side}/quote"), &asked).await;
        body["quote"] = quote.assert_status(200).json()["quote"].take();
        let confirm = ada.request(Method::POST, &format!("/api/v1/{side}/confirm")).json(&body);
        confirm.send().await.assert_status(400).assert_codes(&["ER124"]);
    }
    let paths = for_users().filter(|route| confirms(route)).map(|route| route.path);
    let expected = ["/api/v1/buy/confirm", "/api/v2/buy/confirm", "/api/v1/sell/confirm"];
    assert_eq!(paths.collect::<Vec<_>>(), expected);
}
