//! Loops over the operators' table: a rule for every endpoint holds for the next one too.

use bytes::Bytes;
use http::{Method, StatusCode};
use rampart_api::operate::admin::BODY_BYTES_MAX;
use rampart_api::{OPERATOR_ENDPOINTS, OPERATORS_API};
use rampart_core::endpoint::{Body, Route};
use rampart_tests::edge::UNLIMITED;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

/// The route's path with a value for every `{name}`; none of them exists.
pub(crate) fn some_path(route: &Route) -> String {
    let segments = route.path.split('/').map(|segment| match segment {
        "{slug}" => "nobody",
        "{kind}" => "fee",
        "{version}" => "1",
        "{pair}" => "BTC-EUR",
        "{name}" | "{code}" => "nothing",
        segment if segment.starts_with('{') => "00000000-0000-7000-8000-000000000000",
        segment => segment,
    });
    segments.collect::<Vec<_>>().join("/")
}

fn with_json() -> impl Iterator<Item = &'static Route> {
    OPERATOR_ENDPOINTS.iter().filter(|route| route.body == Body::StrictJson)
}

async fn audited(context: &TestContext) -> i64 {
    sqlx::query_scalar("select count(*) from audit").fetch_one(context.db()).await.unwrap()
}

#[tokio::test]
async fn without_a_token_or_with_another_every_route_is_401() {
    let unlimited = UNLIMITED.parse().unwrap();
    let context = TestContext::with(|settings| settings.ratelimit.operators = unlimited).await;
    let unknown = (Method::GET, "/admin/v1/nothing".to_owned());
    let routes = OPERATOR_ENDPOINTS.iter().map(|route| (route.method.clone(), some_path(route)));
    for (method, path) in routes.chain([unknown]) {
        for token in [None, Some("another"), Some("")] {
            // The token is looked at before anything else, the body's JSON too.
            let body = Bytes::from_static(b"{");
            let answer = context.admin_as(token, method.clone(), &path, body).await;
            answer.assert_status(401);
            assert_eq!(
                answer.text(),
                r#"{"error":"the admin token is missing or wrong"}"#,
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_is_400_everywhere() {
    let context = TestContext::start().await;
    for route in with_json() {
        for body in ["{", "nonsense", r#"{"a":1,"a":2}"#, "\u{0}"] {
            let path = some_path(route);
            let answer = context.admin_bytes(route.method.clone(), &path, body.into()).await;
            assert_eq!(answer.status(), 400, "{route:?} {body:?}");
            assert_eq!(answer.text(), r#"{"error":"the body is not valid JSON"}"#);
        }
    }
    assert_eq!(audited(&context).await, 0);
}

#[tokio::test]
async fn a_body_that_is_no_object_is_422_everywhere() {
    let context = TestContext::start().await;
    for route in with_json() {
        // A list could name the members by their places.
        for body in [json!([]), json!([null, null, null, null, null]), json!("x"), json!(null)] {
            let answer = context.admin(route.method.clone(), &some_path(route), body.clone()).await;
            assert_eq!(answer.status(), 422, "{route:?} {body}");
        }
    }
    assert_eq!(audited(&context).await, 0);
}

#[tokio::test]
async fn an_oversized_body_is_413_everywhere() {
    let context = TestContext::start().await;
    let body = Bytes::from(vec![b' '; BODY_BYTES_MAX + 1]);
    for route in OPERATOR_ENDPOINTS {
        let path = some_path(route);
        let answer = context.admin_bytes(route.method.clone(), &path, body.clone()).await;
        assert_eq!(answer.status(), 413, "{route:?}");
    }
}

#[tokio::test]
async fn a_document_that_takes_too_much_memory_is_413_everywhere() {
    let context = TestContext::start().await;
    let body = Bytes::from(format!("[{}0]", "[],".repeat(120_000)));
    for route in with_json() {
        let path = some_path(route);
        let answer = context.admin_bytes(route.method.clone(), &path, body.clone()).await;
        assert_eq!(answer.status(), 413, "{route:?}");
    }
}

#[tokio::test]
async fn an_unknown_member_is_422_everywhere() {
    let context = TestContext::start().await;
    for route in with_json() {
        let mut body: Value = serde_json::from_str(route.doc.request).unwrap();
        body["typingError"] = json!(true);
        let answer = context.admin(route.method.clone(), &some_path(route), body).await;
        assert_eq!(answer.status(), 422, "{route:?} {}", answer.text());
        assert!(answer.text().contains("typingError"), "{route:?} {}", answer.text());
    }
    assert_eq!(audited(&context).await, 0);
}

#[tokio::test]
async fn a_query_has_the_parameters_of_the_document_and_no_other() {
    let context = TestContext::start().await;
    let mut parameters = 0;
    for route in OPERATOR_ENDPOINTS.iter().filter(|route| !route.doc.query.is_empty()) {
        let ask = async |name: &str| {
            let path = format!("{}?{name}=%21", some_path(route));
            context.admin_bytes(route.method.clone(), &path, Bytes::new()).await
        };
        let unknown = ask("typingError").await;
        assert_eq!(unknown.status(), 422, "{route:?} {}", unknown.text());
        assert!(unknown.text().contains("unknown field `typingError`"), "{}", unknown.text());
        for member in route.doc.query {
            let known = ask(member.name()).await;
            assert!(!known.text().contains("unknown field"), "{route:?} {}", known.text());
            parameters += 1;
        }
    }
    assert!(parameters > 15, "looked elsewhere");
}

#[tokio::test]
async fn a_subject_that_does_not_exist_is_404() {
    let context = TestContext::start().await;
    for route in OPERATOR_ENDPOINTS.iter().filter(|route| route.path.contains('{')) {
        // These make what the path names, or it exists.
        if route.method == Method::PUT && route.path.contains("operator-keys")
            || route.path.contains("{pair}")
        {
            continue;
        }
        let body = route.doc.request.to_owned();
        let answer =
            context.admin_bytes(route.method.clone(), &some_path(route), body.into()).await;
        assert_eq!(answer.status(), 404, "{route:?} {}", answer.text());
        assert!(route.statuses.contains(&StatusCode::NOT_FOUND), "{route:?} does not declare 404");
    }
}

#[tokio::test]
async fn another_method_is_405_and_names_the_methods() {
    let context = TestContext::start().await;
    for route in OPERATOR_ENDPOINTS {
        let path = some_path(route);
        let answer = context.admin_bytes(Method::TRACE, &path, Bytes::new()).await;
        answer.assert_status(405);
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        let named = error.strip_prefix("use ").unwrap();
        let listed = named.split(", ").any(|method| method == route.method);
        assert!(listed, "{route:?}: {error}");
        assert_eq!(answer.header("allow"), Some(named), "{route:?}");
    }
    let nothing = context.admin_bytes(Method::GET, "/admin/v1/nothing", Bytes::new()).await;
    assert_eq!(nothing.assert_status(404).text(), r#"{"error":"no such call"}"#);
}

#[tokio::test]
async fn a_read_without_a_subject_answers_as_documented() {
    let context = TestContext::start().await;
    let simple = |route: &&Route| route.method == Method::GET && !route.path.contains('{');
    let mut granted = 0;
    for route in OPERATOR_ENDPOINTS.iter().filter(simple) {
        let answer = context.admin_bytes(Method::GET, route.path, Bytes::new()).await;
        assert_eq!(answer.status(), 200, "{route:?} {}", answer.text());
        granted += 1;
    }
    assert!(granted >= 8, "only {granted} answers were successes");
}

#[test]
fn a_status_that_is_not_declared_is_found() {
    let route = OPERATORS_API.find(&Method::GET, "/admin/v1/overview").endpoint().unwrap();
    assert!(route.declares_status(StatusCode::OK));
    assert!(route.declares_status(StatusCode::UNAUTHORIZED));
    for status in [StatusCode::NOT_FOUND, StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY] {
        assert!(!route.declares_status(status), "{status}");
    }
}

#[tokio::test]
async fn an_array_is_no_object_and_an_amount_is_above_zero() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for (path, body) in [
        ("partners/acme", json!({"branding": []})),
        ("partners/acme", json!({"guestOrders": [true, null]})),
        ("partners/acme", json!({"guestOrders": {"allowed": true, "maxFiat": 0}})),
        ("partners/acme", json!({"guestOrders": {"allowed": false, "maxFiat": -1}})),
        ("pairs/BTC-EUR", json!({"sell": []})),
        ("payment-methods/creditCard", json!({"fees": []})),
    ] {
        let path = format!("/admin/v1/{path}");
        let answer = context.admin(Method::PATCH, &path, body.clone()).await;
        assert_eq!(answer.status(), 422, "{path} {body}: {}", answer.text());
    }
}

#[tokio::test]
async fn an_error_names_the_member_and_no_type_of_the_program() {
    let context = TestContext::start().await;
    let user = "/admin/v1/users/00000000-0000-7000-8000-000000000000";
    for (method, path, body, told) in [
        (
            Method::PATCH,
            "/admin/v1/pairs/BTC-EUR",
            json!({"buy": "x"}),
            "buy: invalid type: string \"x\", expected an object",
        ),
        (
            Method::PATCH,
            user,
            json!({"limitOverrides": {"sell": {"max": 1}}}),
            "limitOverrides.sell: expected a number",
        ),
        (
            Method::PATCH,
            user,
            json!({"documents": [{"type": "passport", "side": 1, "status": "verified"}]}),
            "documents[0].side: invalid type: number, expected a string",
        ),
        (
            Method::POST,
            "/admin/v1/payments/00000000-0000-7000-8000-000000000000/match",
            json!({"orderId": "1234567890123456"}),
            "orderId: invalid type: string \"1234567890123456\", expected a whole number",
        ),
        (
            Method::POST,
            "/admin/v1/payments/00000000-0000-7000-8000-000000000000/match",
            json!({"orderId": 0}),
            "orderId: not an order's number",
        ),
        (Method::GET, "/admin/v1/deliveries?after=x", Value::Null, "after: not a UUID"),
        (
            Method::GET,
            "/admin/v1/ledger/export?from=x",
            Value::Null,
            "from: not a date or time in the form of RFC 3339",
        ),
    ] {
        let refused = context.admin(method, path, body).await.assert_status(422).json();
        assert_eq!(refused["error"], told, "{path}");
    }
}
