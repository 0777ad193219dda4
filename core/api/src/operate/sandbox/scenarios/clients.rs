//! Routes, bodies, and the credentials and rates of clients.

use serde_json::json;

use super::ListedScenario;
use super::recipe::{BUY_QUOTE, ScenarioRequest, purchase, user};
use crate::platform::error::Code;

/// A read that any client may make.
const READ: &str = "/api/v1/prices";
/// Requests by which every default rate of an e-mail address is exceeded.
const TOO_MANY: u16 = 10;

pub(super) fn scenarios() -> Vec<ListedScenario> {
    let mut scenarios = credentials();
    scenarios.extend(sessions());
    scenarios.extend(requests());
    scenarios
}

fn credentials() -> Vec<ListedScenario> {
    let anonymous = || ScenarioRequest::get(READ).without_key();
    let bearer = |request: ScenarioRequest| request.header("Authorization", "Bearer a.b.c");
    let key = |key| anonymous().header("X-Api-Key", key);
    vec![
        ListedScenario::error(
            Code::ClientTokenInvalid,
            "A token that nobody issued.",
            [bearer(anonymous())],
        ),
        ListedScenario::error(Code::ClientCredentialMissing, "No credential.", [anonymous()]),
        ListedScenario::error(
            Code::ClientCredentialAmbiguous,
            "A token beside the API key.",
            [bearer(ScenarioRequest::get(READ))],
        ),
        ListedScenario::error(
            Code::ApiKeyInvalid,
            "A key that nobody issued.",
            [key("rk_test_none_none")],
        ),
        ListedScenario::error(Code::ApiKeyEmpty, "An empty key.", [key("")]),
    ]
}

fn sessions() -> Vec<ListedScenario> {
    let post = |path: &str, body| ScenarioRequest::post(path, &body).without_key();
    let unknown = json!({"refreshToken": "dW5rbm93bg"});
    vec![
        ListedScenario::error(
            Code::ClientCredentialsInvalid,
            "A client that there is not.",
            [post(
                "/api/v1/authenticate",
                json!({"username": "{{random}}", "password": "a guess"}),
            )],
        ),
        ListedScenario::error(
            Code::RefreshTokenInvalid,
            "A refresh token that nobody issued.",
            [post("/api/v1/refresh", unknown)],
        ),
        ListedScenario::error(
            Code::RefreshTokenMissing,
            "No refresh token.",
            [post("/api/v1/refresh", json!({}))],
        ),
    ]
}

fn requests() -> Vec<ListedScenario> {
    let exists = ScenarioRequest::get("/api/v1/user/exists?emailAddress={{random}}@example.com");
    let offer = |amount: i64| {
        let offer = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
            "paymentMethod": "creditCard", "quoteCurrencyAmount": amount});
        let request = ScenarioRequest::post("/api/v2/buy/offer", &offer);
        request.header("Idempotency-Key", "{{random}}")
    };
    let plan = ScenarioRequest::patch("/api/v2/user/dca-codes/none", &json!({"hidden": true}));
    vec![
        ListedScenario::error(
            Code::RateLimited,
            "More questions about one e-mail address than its rate allows.",
            [exists.times(TOO_MANY)],
        ),
        ListedScenario::error(
            Code::RequestMalformed,
            "A body that is no JSON.",
            [ScenarioRequest::post(BUY_QUOTE, &purchase()).text("{")],
        ),
        ListedScenario::error(
            Code::RouteNotFound,
            "A path that there is not.",
            [ScenarioRequest::get("/api/v3/prices")],
        ),
        ListedScenario::error(
            Code::RouteNotFound,
            "A method that the path does not have.",
            [ScenarioRequest::post(READ, &json!({}))],
        )
        .with_http_status(405),
        ListedScenario::error(
            Code::GeneralError,
            "A savings plan that the user does not have.",
            [user(), plan.for_user()],
        )
        .with_http_status(404),
        ListedScenario::error(
            Code::GeneralError,
            "An idempotency key that came with another body before.",
            [offer(100), offer(200)],
        )
        .with_http_status(422),
    ]
}
