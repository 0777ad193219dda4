//! Loops over the table of endpoints: what holds for all holds for the next one too.

mod deprecated;
mod disabled_users;
mod documented;
mod idempotent;
mod pages;
mod scopes;

use bytes::Bytes;
use rampart_api::ENDPOINTS;
use rampart_core::endpoint::{Body, Route};
use rampart_tests::test_context::TestContext;

/// The route's path with something in the place of every `{name}`.
fn some_path(route: &Route) -> String {
    let segments = route.path.split('/').map(|segment| {
        if segment.starts_with('{') { "00000000-0000-7000-8000-000000000000" } else { segment }
    });
    segments.collect::<Vec<_>>().join("/")
}

fn behind_a_client() -> impl Iterator<Item = &'static Route> {
    ENDPOINTS.iter().filter(|route| route.client)
}

#[tokio::test]
async fn without_a_credential_every_route_says_so() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for route in behind_a_client() {
        let answer = acme.anonymous(route.method.clone(), &some_path(route)).send().await;
        answer.assert_status(400).assert_codes(&["ER802"]);
    }
}

#[tokio::test]
async fn two_credentials_are_one_too_many_everywhere() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for route in behind_a_client() {
        let request = acme.request(route.method.clone(), &some_path(route));
        let answer = request.header("authorization", "Bearer a.b.c").send().await;
        answer.assert_status(400).assert_codes(&["ER803"]);
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_is_er048_everywhere() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for route in ENDPOINTS.iter().filter(|route| matches!(route.body, Body::Json)) {
        for body in ["{", "", "nonsense", r#"{"a":1,"a":2}"#] {
            let request = acme.request(route.method.clone(), &some_path(route));
            let request = if route.client { request } else { request.without("x-api-key") };
            let answer = request.body(body).send().await;
            assert_eq!(answer.status(), 400, "{route:?} {body:?}");
            answer.assert_codes(&["ER048"]);
        }
    }
}

#[tokio::test]
async fn an_oversized_body_is_413_everywhere() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let body = Bytes::from(vec![b' '; rampart_core::http::request::BODY_BYTES_MAX + 1]);
    for route in ENDPOINTS.iter().filter(|route| matches!(route.body, Body::Json)) {
        let request = acme.request(route.method.clone(), &some_path(route));
        let request = if route.client { request } else { request.without("x-api-key") };
        request.body(body.clone()).send().await.assert_status(413).assert_codes(&["ER048"]);
    }
}

#[tokio::test]
async fn unknown_paths_and_other_methods_are_er998() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    acme.get("/api/v3/anything").await.assert_status(404).assert_codes(&["ER998"]);
    for route in ENDPOINTS {
        let answer = acme.request(http::Method::TRACE, &some_path(route)).send().await;
        answer.assert_status(405).assert_codes(&["ER998"]);
        assert!(answer.header("allow").unwrap().contains(route.method.as_str()), "{route:?}");
    }
}

#[tokio::test]
async fn a_path_with_a_slash_behind_it_is_another_one() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    // Of an order the number or name that is missing has a code of its own.
    let is_order = |path: &str| path.ends_with("/orders");
    let whole = ENDPOINTS.iter().filter(|route| !route.path.contains('{'));
    for route in whole.filter(|route| !is_order(route.path)) {
        let path = format!("{}/", route.path);
        let answer = acme.request(route.method.clone(), &path).send().await;
        assert_eq!(answer.status(), 404, "{route:?}");
        answer.assert_codes(&["ER998"]);
    }
}

#[tokio::test]
async fn the_catalogue_lists_every_code_with_its_endpoints() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let answer = acme.get("/api/v2/system/errors").await;
    answer.assert_status(200);
    let entries = answer.json();
    let find = |code: &str| {
        let entries = entries.as_array().unwrap();
        entries
            .iter()
            .find(|entry| entry["code"] == code)
            .unwrap_or_else(|| panic!("{code}"))
            .clone()
    };
    assert_eq!(find("ER035")["status"], 404);
    assert_eq!(find("920")["status"], 429);
    assert_eq!(find("920")["retryable"], true);
    assert!(find("ER802")["endpoints"].as_array().is_some_and(|e| !e.is_empty()));
}
