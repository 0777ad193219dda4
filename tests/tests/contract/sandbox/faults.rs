//! Errors that a test client asks for by header.

use http::Method;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

const HEADER: &str = "x-rampart-scenario";
const OFFER: &str = "/api/v2/buy/offer";

fn offer() -> Value {
    json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard"})
}

/// Codes and status of an offer for which this scenario is asked.
async fn asked(partner: &Partner, scenario: &str, body: Value) -> (u16, Vec<String>) {
    let request = partner.request(Method::POST, OFFER).header(HEADER, scenario);
    let answer = request.json(&body).send().await;
    (answer.status(), answer.codes())
}

#[tokio::test]
async fn a_declared_error_is_answered_to_a_request_that_is_right() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let seen = asked(&acme, "ER325", offer()).await;
    assert_eq!(seen, (400, vec!["ER325".to_owned()]));
    // A request that is wrong is told so all the same.
    let wrong = json!({"baseCurrency": 7, "quoteCurrency": "EUR", "paymentMethod": "creditCard"});
    assert_eq!(asked(&acme, "ER325", wrong).await.1, ["ER301"]);
    let offers: i64 =
        sqlx::query_scalar("select count(*) from offer").fetch_one(context.db()).await.unwrap();
    assert_eq!(offers, 0, "it has no effect");
}

#[tokio::test]
async fn a_code_of_several_statuses_comes_with_the_one_that_is_named() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let prices = async |scenario: &str| {
        let request = acme.request(Method::GET, "/api/v1/prices").header(HEADER, scenario);
        request.send().await
    };
    assert_eq!(prices("ER999").await.assert_codes(&["ER999"]).status(), 500);
    let unavailable = prices("ER999 503").await;
    unavailable.assert_status(503).assert_codes(&["ER999"]);
    assert!(unavailable.header("retry-after").is_some());
    let limited = prices("920").await;
    limited.assert_status(429).assert_codes(&["920"]);
    assert!(limited.header("retry-after").is_some());
}

#[tokio::test]
async fn what_the_endpoint_does_not_declare_is_malformed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for scenario in ["ER006", "ER000", "", "ER325 500", "er325", "ER999 200", "ER325 "] {
        let seen = asked(&acme, scenario, offer()).await;
        assert_eq!(seen, (400, vec!["ER048".to_owned()]), "{scenario:?}");
    }
}

#[tokio::test]
async fn live_clients_and_those_without_a_credential_have_no_such_header() {
    let context = TestContext::start().await;
    let live = context.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    assert_eq!(asked(&live, "ER325", offer()).await, (200, Vec::new()));
    assert_eq!(asked(&live, "nonsense", offer()).await, (200, Vec::new()));
    let request = live.anonymous(Method::POST, "/api/v1/refresh").header(HEADER, "ER036");
    request.json(&json!({})).send().await.assert_codes(&["ER037"]);
}

#[tokio::test]
async fn a_key_keeps_the_error_as_it_keeps_any_other() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let send = async |scenario: Option<&str>| {
        let request = acme.request(Method::POST, OFFER).header("idempotency-key", "once");
        let request = match scenario {
            Some(scenario) => request.header(HEADER, scenario),
            None => request,
        };
        request.json(&offer()).send().await
    };
    // Answers of class 5xx are not saved, those of class 4xx are.
    send(Some("ER999 503")).await.assert_status(503);
    send(Some("ER325")).await.assert_codes(&["ER325"]);
    let again = send(None).await;
    again.assert_codes(&["ER325"]);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
}
