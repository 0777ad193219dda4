//! Requests that are refused, each for another reason.

use http::Method;
use serde_json::{Value, json};

use super::Customer;

const QUOTE: &str = "/api/v1/buy/quote";
/// More than a request may carry.
const OVERSIZED_BYTES: usize = 300 * 1024;

impl Customer<'_> {
    pub(super) async fn refuse(&self) {
        let partner = &self.partner;
        let quote = || partner.request(Method::POST, QUOTE);
        let credential =
            |value| partner.anonymous(Method::GET, "/api/v2/prices").header("x-api-key", value);
        let invalid: Value = json!({"currencyPair": "BTC", "paymentMethod": 7, "fiatAmount": -1});
        let unknown = json!({"currencyPair": "XYZ-EUR", "paymentMethod": "creditCard",
            "fiatAmount": 25});
        for (request, expected) in [
            (partner.anonymous(Method::GET, "/api/v2/prices"), 400..=401),
            (credential("no-key"), 400..=401),
            (partner.request(Method::GET, "/api/v9/nothing"), 404..=404),
            (partner.request(Method::DELETE, QUOTE), 405..=405),
            (quote().body("{\"currencyPair\": "), 400..=400),
            (quote().json(&invalid), 400..=400),
            (quote().json(&unknown), 400..=400),
            (quote().body(vec![b' '; OVERSIZED_BYTES]), 400..=413),
            (partner.request(Method::GET, "/api/v2/buy/orders/1234567890123456"), 400..=404),
            (
                partner.request(Method::GET, "/api/v1/user/info").header("user-identifier", "none"),
                400..=404,
            ),
        ] {
            let answer = request.send().await;
            assert!(expected.contains(&answer.status()), "{}: {}", answer.status(), answer.text());
        }
    }
}
