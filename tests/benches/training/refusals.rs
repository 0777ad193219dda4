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
            (partner.anonymous(Method::GET, "/api/v2/prices"), 400),
            (credential("no-key"), 400),
            (partner.request(Method::GET, "/api/v9/nothing"), 404),
            (partner.request(Method::DELETE, QUOTE), 405),
            (quote().body("{\"currencyPair\": "), 400),
            (quote().json(&invalid), 400),
            (quote().json(&unknown), 400),
            (quote().body(vec![b' '; OVERSIZED_BYTES]), 413),
            (partner.request(Method::GET, "/api/v2/buy/orders/1234567890123456"), 400),
            (
                partner.request(Method::GET, "/api/v1/user/info").header("user-identifier", "none"),
                400,
            ),
        ] {
            let answer = request.send().await;
            answer.assert_status(expected);
        }
    }
}
