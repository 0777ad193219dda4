//! Callbacks as a partner's host receives them: form, signature, order of attempts.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use http::Method;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::receiver::{Heard, Reaction, Receiver};
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tokio::time::timeout;

/// Longest delivery to a host that has answered: less than the 15 s of an attempt.
const ANSWER_MAX: Duration = Duration::from_secs(12);
/// Most bytes that leave a host whose answer is not read: what sockets hold.
const TAKEN_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The deliveries of a partner as operators see them, newest first.
async fn deliveries(context: &TestContext, query: &str) -> Vec<Value> {
    let answer =
        context.admin(Method::GET, &format!("/admin/v1/deliveries{query}"), json!({})).await;
    answer.assert_status(200);
    answer.json().as_array().unwrap().clone()
}

async fn deliver(context: &TestContext) -> usize {
    context.core().deliver_due().await.unwrap()
}

/// True if the request is signed with this secret.
fn is_signed(heard: &Heard, secret: &str) -> bool {
    let sent_at = heard.header("webhook-timestamp").parse().unwrap();
    let expected = Webhook::new(secret).unwrap();
    let expected = expected.sign(heard.header("webhook-id"), sent_at, &heard.body).unwrap();
    heard.header("webhook-signature").split(' ').any(|signature| signature == expected)
}

async fn acme(context: &TestContext) -> (Partner, Receiver) {
    (context.partner("acme").await, Receiver::start().await)
}

#[tokio::test]
async fn an_order_that_ends_is_told_of_once_and_signed() {
    let context = TestContext::start().await;
    let (acme, host) = acme(&context).await;
    let order = OrderFixture::ended(&context, &acme, &host.url("/hook?shop=7")).await;
    assert_eq!(deliver(&context).await, 1);
    assert_eq!(deliver(&context).await, 0);
    let [heard] = &host.heard()[..] else { panic!("not one request: {:?}", host.heard()) };
    assert_eq!(heard.method, "POST");
    assert_eq!(heard.target, format!("/hook?shop=7&orderId={}&status=cancelled", order.id));
    assert_eq!(heard.header("content-type"), "application/json");
    let body = heard.json();
    assert_eq!(body["type"], "order.cancelled");
    assert!(body["timestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(body["data"]["orderId"], order.id);
    assert_eq!(body["data"]["partnerOrderIdentifier"], "shop-7");
    // The library that partners use, with its own idea of time.
    let webhook = Webhook::new(&acme.webhook_secret).unwrap();
    webhook.verify(&heard.body, &heard.headers).unwrap();
    let told = deliveries(&context, &format!("?order={}", order.id)).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["state"], "delivered");
    assert_eq!(told[0]["attempts"], 1);
    assert_eq!(told[0]["lastStatus"], 200);
}

#[tokio::test]
async fn a_failed_attempt_is_repeated_with_the_same_id_and_a_new_time() {
    let context = TestContext::start().await;
    let (acme, host) = acme(&context).await;
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    host.react(Reaction::status(500));
    assert_eq!(deliver(&context).await, 1);
    context.clock().advance(TimeDelta::seconds(1));
    assert_eq!(deliver(&context).await, 0, "too early");
    context.clock().advance(TimeDelta::seconds(5));
    host.react(Reaction::status(204));
    assert_eq!(deliver(&context).await, 1);
    let [first, second] = &host.heard()[..] else { panic!("not two requests") };
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    assert_eq!(first.body, second.body);
    assert_ne!(first.header("webhook-timestamp"), second.header("webhook-timestamp"));
    assert_ne!(first.header("webhook-signature"), second.header("webhook-signature"));
    assert!(is_signed(second, &acme.webhook_secret));
    let told = deliveries(&context, "?partner=acme").await;
    assert_eq!(told[0]["state"], "delivered");
    assert_eq!(told[0]["attempts"], 2);
    assert_eq!(told[0]["lastError"], Value::Null);
}

#[tokio::test]
async fn ten_attempts_over_three_days_are_made_and_no_more() {
    let context = TestContext::start().await;
    let (acme, host) = acme(&context).await;
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    host.react(Reaction::status(503));
    let pauses = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
    for pause in pauses {
        assert_eq!(deliver(&context).await, 1);
        assert_eq!(deliver(&context).await, 0);
        // The longest that jitter makes of it.
        context.clock().advance(TimeDelta::milliseconds(pause * 1_050));
    }
    assert_eq!(deliver(&context).await, 1);
    context.clock().advance(TimeDelta::days(30));
    assert_eq!(deliver(&context).await, 0);
    let ids: BTreeSet<_> =
        host.heard().iter().map(|heard| heard.header("webhook-id").to_owned()).collect();
    assert_eq!((host.heard().len(), ids.len()), (10, 1));
    let told = deliveries(&context, "?state=failed").await;
    assert_eq!((&told[0]["attempts"], &told[0]["lastError"]), (&json!(10), &json!("status")));
}

#[tokio::test]
async fn a_receiver_may_ask_for_a_longer_pause() {
    let context = TestContext::start().await;
    let (acme, host) = acme(&context).await;
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    host.react(Reaction::with_header(429, "retry-after", "3600"));
    assert_eq!(deliver(&context).await, 1);
    context.clock().advance(TimeDelta::minutes(59));
    assert_eq!(deliver(&context).await, 0);
    context.clock().advance(TimeDelta::minutes(2));
    assert_eq!(deliver(&context).await, 1);
}

#[tokio::test]
async fn gone_disables_the_delivery() {
    let context = TestContext::start().await;
    let (acme, host) = acme(&context).await;
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    host.react(Reaction::status(410));
    assert_eq!(deliver(&context).await, 1);
    context.clock().advance(TimeDelta::days(30));
    assert_eq!(deliver(&context).await, 0);
    let told = deliveries(&context, "?partner=acme").await;
    assert_eq!((&told[0]["state"], &told[0]["lastStatus"]), (&json!("disabled"), &json!(410)));
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_not_followed() {
    let context = TestContext::start().await;
    let (acme, host) = acme(&context).await;
    let elsewhere = Receiver::start().await;
    for status in [301, 302, 303, 307, 308] {
        OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
        host.react(Reaction::with_header(status, "location", &elsewhere.url("/")));
        assert_eq!(deliver(&context).await, 1);
        let told = deliveries(&context, "").await;
        assert_eq!(told[0]["lastStatus"], status);
        assert_eq!(
            (&told[0]["state"], &told[0]["lastError"]),
            (&json!("pending"), &json!("redirect"))
        );
    }
    assert!(elsewhere.heard().is_empty());
}

#[tokio::test]
async fn an_answer_without_end_is_read_in_part_and_one_without_a_body_is_not_waited_for() {
    let context = TestContext::start().await;
    let (acme, host) = acme(&context).await;
    for reaction in [Reaction::Unfinished, Reaction::Endless] {
        OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
        host.react(reaction);
        let delivered = timeout(ANSWER_MAX, deliver(&context)).await;
        assert_eq!(delivered.expect("the attempt is over before its time"), 1);
        let told = deliveries(&context, "").await;
        assert_eq!((&told[0]["state"], &told[0]["lastStatus"]), (&json!("delivered"), &json!(200)));
    }
    let sent = until("the connection is closed", SOON, async || host.cut_after()).await;
    assert!(sent < TAKEN_BYTES_MAX, "{sent} bytes");
}

#[tokio::test]
async fn a_live_client_is_never_called_on_loopback() {
    let context = TestContext::start().await;
    let host = Receiver::start().await;
    let live = context.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    for url in [host.url("/hook"), host.url("/").replace("http:", "https:")] {
        OrderFixture::ended(&context, &live, &url).await;
        assert_eq!(deliver(&context).await, 1);
        let told = deliveries(&context, "").await;
        assert_eq!(
            (&told[0]["state"], &told[0]["lastError"]),
            (&json!("pending"), &json!("forbidden"))
        );
    }
    assert!(host.heard().is_empty());
}

#[tokio::test]
async fn during_a_rotation_either_secret_verifies() {
    let context = TestContext::start().await;
    let (acme, host) = acme(&context).await;
    let rotated = context
        .admin(
            Method::POST,
            "/admin/v1/partners/acme/secrets/rotate",
            json!({"kind": "webhook", "overlapSeconds": 600}),
        )
        .await;
    let new_secret = rotated.assert_status(200).json()["secret"].as_str().unwrap().to_owned();
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    deliver(&context).await;
    context.clock().advance(TimeDelta::minutes(11));
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    deliver(&context).await;
    let [during, after] = &host.heard()[..] else { panic!("not two requests") };
    assert!(is_signed(during, &acme.webhook_secret) && is_signed(during, &new_secret));
    assert!(!is_signed(after, &acme.webhook_secret) && is_signed(after, &new_secret));
}

#[tokio::test]
async fn loopback_is_called_only_where_the_configuration_lets_it() {
    let context = TestContext::with(|settings| settings.callbacks.allow_loopback = false).await;
    let (acme, host) = acme(&context).await;
    let refused = acme.post("/api/v2/webhooks", json!({"url": host.url("/hook")})).await;
    refused.assert_status(400).assert_codes(&["ER046"]);
    // One that was taken while it was allowed.
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    assert_eq!(deliver(&context).await, 1);
    assert_eq!(host.heard().len(), 0);
    assert_eq!(deliveries(&context, "").await[0]["lastError"], "forbidden");
}
