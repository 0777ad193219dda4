//! Events that a partner triggers for its test orders, magic values, and the signature debugger.

mod connector;
mod faults;
mod routed;
mod users;

use chrono::TimeDelta;
use http::Method;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

const SCENARIOS: &str = "/api/v2/sandbox/scenarios";
const SIGNATURE: &str = "/api/v2/sandbox/signature";

fn path(order: &OrderFixture, event: &str) -> String {
    format!("/api/v2/sandbox/orders/{}/{event}", order.id)
}

#[tokio::test]
async fn every_state_can_be_reached() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (events, status) in [
        (&["expire"][..], "cancelled"),
        (&["cancel"], "cancelled"),
        (&["payment-denied"], "cancelled"),
        (&["payment-received"], "in progress"),
        (&["payment-amount-wrong"], "blocked"),
        (&["payment-late"], "blocked"),
        (&["payment-amount-wrong", "refund"], "refunded"),
        (&["payment-received", "hold", "release"], "in progress"),
        (&["payment-received", "coins-sent", "confirmed-on-chain"], "completed"),
    ] {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        let mut seen = json!(null);
        for event in events {
            let answer = acme.post(&path(&order, event), json!({})).await;
            seen = answer.assert_status(200).json();
        }
        assert_eq!(
            (&seen["id"], &seen["status"]),
            (&json!(order.id), &json!(status)),
            "{events:?}"
        );
    }
}

#[tokio::test]
async fn what_the_state_forbids_is_a_conflict() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let answer = acme.post(&path(&order, "coins-sent"), json!({})).await;
    answer.assert_status(409).assert_codes(&["ER999"]);
    assert_eq!(order.seen(&context).await["status"], "pending");
}

#[tokio::test]
async fn only_ones_own_test_orders_can_be_moved() {
    let context = TestContext::start().await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    let live = context.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let answer = other.post(&path(&order, "cancel"), json!({})).await;
    answer.assert_status(404).assert_codes(&["ER035"]);
    let of_live = OrderFixture::order(&context, &live, None, None).await;
    let answer = live.post(&path(&of_live, "cancel"), json!({})).await;
    answer.assert_status(404).assert_codes(&["ER998"]);
    let answer = acme.post(&path(&order, "explode"), json!({})).await;
    answer.assert_status(404).assert_codes(&["ER998"]);
    for untouched in [order, of_live] {
        assert_eq!(untouched.seen(&context).await["status"], "pending");
    }
}

#[tokio::test]
async fn every_listed_scenario_is_followed_to_its_end() {
    let context = TestContext::with(|settings| settings.sandbox.step_ms = 0).await;
    let acme = context.partner("acme").await;
    let token = acme.token().await;
    let listed = acme.get(SCENARIOS).await.assert_status(200).json();
    let listed = listed.as_array().unwrap().iter();
    let listed: Vec<_> = listed.filter(|one| one["steps"] != json!([])).collect();
    assert_eq!(listed.len(), 9);
    for scenario in listed {
        let (name, reference) = (&scenario["name"], &scenario["partnerOrderIdentifier"]);
        let with_suffix = format!("{}-7", reference.as_str().unwrap());
        let orders = [
            OrderFixture::confirmed(
                &acme,
                &token,
                json!(100),
                json!({"partnerOrderIdentifier": reference}),
            )
            .await,
            OrderFixture::confirmed(
                &acme,
                &token,
                json!(100),
                json!({"partnerOrderIdentifier": with_suffix}),
            )
            .await,
            OrderFixture::confirmed(&acme, &token, scenario["fiatAmount"].clone(), json!({})).await,
        ];
        // Every step is taken and none comes after the last.
        for left in (0..=scenario["steps"].as_array().unwrap().len()).rev() {
            let taken = context.core().settle_sandbox_orders().await.unwrap();
            assert_eq!(taken, if left > 0 { orders.len() } else { 0 }, "{name} {left}");
        }
        for order in orders {
            let seen = order.seen(&context).await;
            assert_eq!(seen["status"], scenario["status"], "{name}: {seen}");
            // The confirm is its first row.
            let steps = scenario["steps"].as_array().unwrap().len();
            assert_eq!(seen["timeline"].as_array().unwrap().len(), 1 + steps, "{name}: {seen}");
        }
    }
}

#[tokio::test]
async fn what_a_partner_does_in_between_counts() {
    let context = TestContext::with(|settings| settings.sandbox.step_ms = 60_000).await;
    let acme = context.partner("acme").await;
    let magic = json!({"partnerOrderIdentifier": "sandbox-denied"});
    let token = acme.token().await;
    let order = OrderFixture::confirmed(&acme, &token, json!(100), magic).await;
    assert_eq!(context.core().settle_sandbox_orders().await.unwrap(), 0, "it is not due");
    acme.post(&path(&order, "cancel"), json!({})).await.assert_status(200);
    context.clock().advance(TimeDelta::minutes(2));
    context.core().settle_sandbox_orders().await.unwrap();
    assert_eq!(order.seen(&context).await["statusCause"], "cancelled");
}

#[tokio::test]
async fn a_live_order_follows_no_magic_value() {
    let context = TestContext::with(|settings| settings.sandbox.step_ms = 0).await;
    let live = context.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    let magic = json!({"partnerOrderIdentifier": "sandbox-denied"});
    let token = live.token().await;
    let order = OrderFixture::confirmed(&live, &token, json!(100), magic).await;
    assert_eq!(context.core().settle_sandbox_orders().await.unwrap(), 0);
    assert_eq!(order.seen(&context).await["status"], "pending");
    live.get(SCENARIOS).await.assert_status(404).assert_codes(&["ER998"]);
    live.post(SIGNATURE, json!({})).await.assert_status(404).assert_codes(&["ER998"]);
    // Neither a body nor a user is asked for where there is nothing.
    let broken = live.request(Method::POST, SIGNATURE).body("{").send().await;
    broken.assert_status(404).assert_codes(&["ER998"]);
    let event = json!({"event": "verified"});
    let answer = live.post("/api/v2/sandbox/user/events", event).await;
    answer.assert_status(404).assert_codes(&["ER998"]);
}

/// The debugger's answer to this body, signed over `signed`.
async fn debugged(partner: &Partner, mut body: Value, signed: &str) -> Value {
    body["signature"] = partner.sign(signed).into();
    partner.post(SIGNATURE, body).await.assert_status(200).json()
}

#[tokio::test]
async fn the_debugger_shows_what_must_be_signed_and_whether_it_was() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let body = json!({"returnUrl": "app://done?a=b c", "fee": 1.5, "walletAddressTag": ""});
    let canonical = "fee=1.5&returnUrl=app%3A%2F%2Fdone%3Fa%3Db%20c";
    let seen = acme.post(SIGNATURE, body.clone()).await.assert_status(200).json();
    assert_eq!((&seen["canonical"], &seen["valid"]), (&json!(canonical), &json!(false)));
    assert_eq!(seen["scheme"], "hmac-sha256");
    let seen = debugged(&acme, body.clone(), canonical).await;
    assert_eq!((&seen["valid"], &seen["differs"]), (&json!(true), &json!([])));
    let wrong = acme.sign(canonical);
    let seen = debugged(&acme, body, "fee=2").await;
    assert_eq!((&seen["valid"], &seen["differs"]), (&json!(false), &json!([])));
    assert!(!seen.to_string().contains(&wrong), "the right signature is never told");
}

#[tokio::test]
async fn the_debugger_names_the_field_that_was_signed_wrongly() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    // The fee is 1: JSON of another spelling would reach the edge rewritten.
    let body = json!({"returnUrl": "app://x y", "fee": 1, "walletAddress": "abc"});
    let encoded = "app%3A%2F%2Fx%20y";
    for (signed, fields) in [
        ("fee=1&returnUrl=app://x y&walletAddress=abc".to_owned(), &["returnUrl"][..]),
        ("fee=1&returnUrl=app%3A%2F%2Fx+y&walletAddress=abc".to_owned(), &["returnUrl"]),
        ("fee=1&returnUrl=app%3a%2f%2fx%20y&walletAddress=abc".to_owned(), &["returnUrl"]),
        (format!("returnUrl={encoded}&walletAddress=abc"), &["fee"]),
        (format!("returnUrl={encoded}"), &["fee", "walletAddress"]),
        (
            format!("callbackUrl=&fee=1&returnUrl={encoded}&walletAddress=abc&walletAddressTag="),
            &["callbackUrl", "walletAddressTag"],
        ),
    ] {
        let seen = debugged(&acme, body.clone(), &signed).await;
        let differs = seen["differs"].as_array().unwrap().iter();
        let named: Vec<_> = differs.map(|d| d["field"].as_str().unwrap().to_owned()).collect();
        assert_eq!(named, fields, "{signed}: {seen}");
        // The same is found where the partner says what it has signed.
        let mut told = body.clone();
        told["canonical"] = signed.as_str().into();
        let told = acme.post(SIGNATURE, told).await.assert_status(200).json();
        let named = told["differs"].as_array().unwrap().iter().map(|d| d["field"].clone());
        assert_eq!(named.collect::<Vec<_>>(), fields, "{signed}: {told}");
    }
}

#[tokio::test]
async fn the_debugger_compares_the_text_that_was_signed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let told = async |canonical: &str| {
        let body = json!({"fee": 1, "walletAddress": "abc", "canonical": canonical});
        acme.post(SIGNATURE, body).await.assert_status(200).json()
    };
    let other = told("fee=2&walletAddress=abc").await;
    assert_eq!(other["differs"][0], json!({"field": "fee", "problem": "another value was signed"}));
    let uncovered = told("expireTime=3600&fee=1&walletAddress=abc").await;
    assert_eq!(uncovered["differs"][0]["field"], "expireTime");
    let order = told("walletAddress=abc&fee=1").await;
    assert_eq!(order["differs"], json!([]));
    assert!(order["explanation"].as_str().unwrap().contains("alphabetical"));
}

#[tokio::test]
async fn the_debugger_refuses_what_is_no_signature() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    acme.post(SIGNATURE, json!({"signature": 7})).await.assert_codes(&["ER338"]);
    acme.post(SIGNATURE, json!({"canonical": 7})).await.assert_codes(&["ER048"]);
    let upper = "AB".repeat(32);
    let seen = acme.post(SIGNATURE, json!({"fee": 1, "signature": upper})).await.json();
    assert!(seen["explanation"].as_str().unwrap().contains("lower-case hex"), "{seen}");
    // A text that was signed wrongly is told besides.
    let body = json!({"fee": 1, "signature": upper, "canonical": "fee=2"});
    let seen = acme.post(SIGNATURE, body).await.json();
    assert_eq!(seen["differs"][0]["field"], "fee", "{seen}");
}
