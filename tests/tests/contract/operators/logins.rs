//! Logins of operators: limited, counted, and from no page of another origin.

use std::net::IpAddr;

use chrono::TimeDelta;
use http::HeaderValue;
use rampart_api::operate::listener;
use rampart_core::http::reply::Reply;
use rampart_core::platform::settings::Oidc;
use rampart_tests::test_context::head;

use super::*;

/// The reply to a call with a token from an address.
async fn reply_to(context: &TestContext, peer: &str, token: &str) -> Reply {
    let mut head = head(Method::GET, "/admin/v1/pairs");
    head.peer = peer.parse::<IpAddr>().unwrap();
    let token = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    head.headers.insert("authorization", token);
    listener::answer(context.core(), head, Bytes::new()).await
}

/// The status of a call with a token from an address.
async fn from(context: &TestContext, peer: &str, token: &str) -> u16 {
    reply_to(context, peer, token).await.status.as_u16()
}

fn count(context: &TestContext, line: &str) -> u64 {
    let metrics = context.core().metrics_text();
    let found = metrics.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok());
    found.unwrap_or(0)
}

#[tokio::test]
async fn guesses_are_limited_per_address_and_counted() {
    let quota = "10/h burst 10".parse().unwrap();
    let context = TestContext::with(|settings| settings.ratelimit.operators = quota).await;
    let ada = Operator::new(&context, "ada", &["viewer"]).await;
    let mut statuses = Vec::new();
    for guess in 0..30 {
        statuses.push(from(&context, "192.0.2.1", &format!("rop_{guess}")).await);
    }
    assert_eq!((statuses[0], statuses[9], statuses[10], statuses[29]), (401, 401, 429, 429));
    let failures = |cause: &str| {
        let line = format!(r#"rampart_operator_login_failures_total{{cause="{cause}"}}"#);
        count(&context, &line)
    };
    assert_eq!((failures("wrong"), failures("limited")), (10, 20));
    // Whoever guesses does not learn that a guess was right; others are not concerned.
    assert_eq!(from(&context, "192.0.2.1", &ada.token).await, 429);
    assert_eq!(from(&context, "192.0.2.2", &ada.token).await, 200);
    context.clock().advance(TimeDelta::minutes(6));
    assert_eq!(from(&context, "192.0.2.1", &ada.token).await, 200);
    // Neighbours in one IPv6 network share their failures.
    for host in 1..=11 {
        from(&context, &format!("2001:db8::{host:x}"), "wrong").await;
    }
    assert_eq!(from(&context, "2001:db8::ffff", &ada.token).await, 429);
    assert_eq!(from(&context, "2001:db8:0:1::1", &ada.token).await, 200);
}

#[tokio::test]
async fn guesses_of_a_neighbour_do_not_stop_an_operator_who_is_known() {
    let quota = "10/h burst 2".parse().unwrap();
    let context = TestContext::with(|settings| settings.ratelimit.operators = quota).await;
    let ada = Operator::new(&context, "ada", &["viewer"]).await;
    assert_eq!(from(&context, "192.0.2.1", &ada.token).await, 200);
    for status in [401, 401, 429] {
        assert_eq!(from(&context, "192.0.2.1", "rop_guess").await, status);
    }
    assert_eq!(from(&context, "192.0.2.1", &ada.token).await, 200);
    let revoke = "update operator_token set revoked_at = now()";
    sqlx::query(revoke).execute(context.db()).await.unwrap();
    assert_eq!(from(&context, "192.0.2.1", &ada.token).await, 429, "it is asked for each time");
}

#[tokio::test]
async fn a_limited_login_has_the_seconds_to_wait() {
    let quota = "10/h burst 1".parse().unwrap();
    let context = TestContext::with(|settings| settings.ratelimit.operators = quota).await;
    assert_eq!(from(&context, "192.0.2.1", "wrong").await, 401);
    let limited = reply_to(&context, "192.0.2.1", "wrong").await;
    assert_eq!(limited.status, 429);
    let wait: u64 = limited.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=360).contains(&wait), "{wait}");
}

#[tokio::test]
async fn the_return_of_a_login_that_was_not_begun_in_this_browser_is_no_guess() {
    let quota = "10/h burst 1".parse().unwrap();
    let context = TestContext::with(|settings| {
        settings.ratelimit.operators = quota;
        let (issuer, client_id) = ("https://login.example.com".to_owned(), "rampart".to_owned());
        settings.operators.oidc = Some(Oidc { issuer, client_id, ..Oidc::default() });
    })
    .await;
    let ada = Operator::new(&context, "ada", &["viewer"]).await;
    for _ in 0..3 {
        let mut back = head(Method::GET, "/console/callback?code=c&state=s");
        back.peer = "192.0.2.1".parse().unwrap();
        assert_eq!(listener::answer(context.core(), back, Bytes::new()).await.status, 401);
    }
    assert_eq!(from(&context, "192.0.2.1", &ada.token).await, 200);
}

#[tokio::test]
async fn each_use_of_the_configured_token_is_an_alarm() {
    let context = TestContext::start().await;
    let ada = Operator::new(&context, "ada", &["viewer"]).await;
    let alarms = || count(&context, "rampart_operator_break_glass_total");
    assert_eq!(alarms(), 1);
    ada.get("/admin/v1/pairs").await.assert_status(200);
    assert_eq!(alarms(), 1);
    context.admin(Method::GET, "/admin/v1/pairs", Value::Null).await.assert_status(200);
    assert_eq!(alarms(), 2);
}

/// A change with these headers.
async fn change(context: &TestContext, headers: &[(&'static str, &'static str)]) -> Reply {
    let mut head = head(Method::PATCH, "/admin/v1/pairs/BTC-EUR");
    let token = HeaderValue::from_static("Bearer operator-of-the-test");
    head.headers.insert("authorization", token);
    head.headers.insert("host", HeaderValue::from_static("127.0.0.1:9443"));
    for (name, value) in headers {
        head.headers.insert(*name, HeaderValue::from_static(value));
    }
    listener::answer(context.core(), head, Bytes::from_static(b"{}")).await
}

#[tokio::test]
async fn a_page_of_another_origin_and_a_form_change_nothing() {
    let context = TestContext::start().await;
    let json = ("content-type", "application/json; charset=utf-8");
    assert_eq!(change(&context, &[json]).await.status, 200);
    let own = ("origin", "http://127.0.0.1:9443");
    assert_eq!(change(&context, &[json, own]).await.status, 200);
    for foreign in [("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")] {
        assert_eq!(change(&context, &[json, foreign]).await.status, 403, "{foreign:?}");
    }
    for media_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/wasm",
    ] {
        let reply = change(&context, &[("content-type", media_type)]).await;
        assert_eq!(reply.status, 415, "{media_type}");
        assert_eq!(&*reply.body, br#"{"error":"the body is application/json"}"#);
    }
}
