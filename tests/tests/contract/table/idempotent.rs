//! Retries: what a `POST` of the partners' API creates or changes, a retry with its `Idempotency-Key`
//! does not do twice.

use http::Method;
use rampart_api::ENDPOINTS;

/// Those that may be sent again without a key: they read, tell who somebody is, offer what binds nobody,
/// or end in the same state.
const REPEATABLE: [&str; 9] = [
    "/api/v1/authenticate",
    "/api/v1/refresh",
    "/api/v1/buy/quote",
    "/api/v1/sell/quote",
    "/api/v2/wallets/check",
    "/api/v1/user/login",
    "/api/v1/user/logout",
    "/api/v2/sell/onboarding/verify",
    "/api/v2/sandbox/signature",
];

#[test]
fn every_post_that_creates_or_changes_something_takes_a_key() {
    let posts = ENDPOINTS.iter().filter(|route| route.method == Method::POST);
    let without: Vec<_> = posts.filter(|route| !route.idempotent).map(|route| route.path).collect();
    assert_eq!(without, REPEATABLE);
}
