//! Framing, routes, and the credentials and rates of clients.

use std::net::SocketAddr;

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::wire::Wire;
use serde_json::json;

use super::Row;
use super::fixtures::Fixtures;

/// A route that any proven client may read.
const READ: &str = "/api/v1/prices";
/// Bounds of a body, with an image in it or without; of a URL and of a head.
const BODY_BYTES_MAX: usize = 256 * 1024;
const IMAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
const URL_BYTES_MAX: usize = 8 * 1024;
const HEAD_BYTES_MAX: usize = 16 * 1024;

pub(super) async fn rows(fixtures: &Fixtures) -> Vec<Row> {
    let mut rows = credentials(fixtures).await;
    rows.extend(sessions(fixtures));
    rows.extend(framing(fixtures));
    rows.extend(rates(fixtures).await);
    rows.extend(routes(fixtures).await);
    rows
}

async fn credentials(fixtures: &Fixtures) -> Vec<Row> {
    let anonymous = || fixtures.shop.anonymous(Method::GET, READ);
    let expired = fixtures.earlier().await.token().await;
    let (_, key) = fixtures.key.credential();
    vec![
        Row::new(
            "ER800",
            "a token that is none",
            anonymous().header("authorization", "Bearer a.b.c"),
        ),
        Row::new(
            "ER801",
            "a token of an hour that is over",
            anonymous().header("authorization", &format!("Bearer {expired}")),
        ),
        Row::new("ER802", "no credential", anonymous()),
        Row::new(
            "ER803",
            "two credentials",
            fixtures.shop.request(Method::GET, READ).header("x-api-key", key),
        ),
        Row::new(
            "ER805",
            "an API key that nobody issued",
            anonymous().header("x-api-key", "rk_test_none_none"),
        ),
        Row::new("ER806", "an empty API key", anonymous().header("x-api-key", "")),
    ]
}

fn sessions(fixtures: &Fixtures) -> Vec<Row> {
    let post = |path: &str, body| fixtures.shop.anonymous(Method::POST, path).json(&body);
    let wrong = json!({"username": fixtures.shop.secret("username"), "password": "a guess"});
    let unknown = json!({"refreshToken": "dW5rbm93bg"});
    vec![
        Row::new("ER038", "a wrong password", post("/api/v1/authenticate", wrong)),
        Row::new("ER036", "an unknown refresh token", post("/api/v1/refresh", unknown)),
        Row::new("ER037", "no refresh token", post("/api/v1/refresh", json!({}))),
    ]
}

fn framing(fixtures: &Fixtures) -> Vec<Row> {
    let (name, value) = fixtures.key.credential();
    let head = |line: String, more: String| {
        format!("{line} HTTP/1.1\r\nHost: localhost\r\n{name}: {value}\r\n{more}\r\n")
    };
    let announced = |path: &str, bytes: usize| {
        let more = format!("Content-Length: {}\r\n", bytes + 1);
        exchange(fixtures.edge.address, head(format!("POST {path}"), more))
    };
    let query = "x".repeat(URL_BYTES_MAX);
    let padding = format!("X-Padding: {}\r\n", "x".repeat(HEAD_BYTES_MAX));
    let long_url =
        exchange(fixtures.edge.address, head(format!("GET {READ}?{query}"), String::new()));
    let long_head = exchange(fixtures.edge.address, head(format!("GET {READ}"), padding));
    let not_json = fixtures.shop.request(Method::POST, "/api/v1/buy/quote").body("{");
    vec![
        Row::new("ER048", "a body that is no JSON", not_json),
        Row::of("ER048", "a large body", announced("/api/v1/buy/quote", BODY_BYTES_MAX))
            .with_status(413),
        Row::of("ER048", "a long URL", long_url).with_status(414),
        Row::of("ER048", "a long head", long_head).with_status(431),
        Row::of("ER078", "a large image", announced("/api/v2/user", IMAGE_BYTES_MAX))
            .with_status(413),
    ]
}

async fn exchange(edge: SocketAddr, request: String) -> Answer {
    let mut wire = Wire::open(edge).await;
    wire.exchange(request.as_bytes()).await.expect("an answer").checked(&Method::GET, "/no/route")
}

async fn rates(fixtures: &Fixtures) -> Vec<Row> {
    let hasty = fixtures.edge.limited_partner("hasty").await;
    let slow = json!({"rateLimits": {"client": "1/min burst 1"}});
    fixtures.operator(Method::PATCH, "/admin/v1/partners/hasty", slow).await;
    hasty.get(READ).await.assert_status(200);
    let again = hasty.request(Method::GET, READ);
    vec![Row::new("920", "one request too many", again).with_status(429)]
}

async fn routes(fixtures: &Fixtures) -> Vec<Row> {
    let live = json!({"slug": "live", "name": "live", "mode": "live"});
    let live = fixtures.edge.partner_of(live).await;
    let scenarios = live.request(Method::GET, "/api/v2/sandbox/scenarios");
    let nowhere = fixtures.shop.request(Method::GET, "/api/v3/prices");
    let other_method = fixtures.shop.request(Method::DELETE, READ);
    vec![
        Row::new("ER998", "a path that there is not", nowhere).with_status(404),
        Row::new("ER998", "the sandbox of a live client", scenarios).with_status(404),
        Row::new("ER998", "a method that the path has not", other_method).with_status(405),
    ]
}
