//! The timeline of a sale: its states, and every report of coins and money about it.

use http::Method;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::Seller;

fn path(id: impl std::fmt::Display) -> String {
    format!("/api/v2/sell/orders/{id}/timeline")
}

/// Steps as `from > to: cause (reason)`.
fn steps(timeline: &Value) -> Vec<String> {
    let step = |step: &Value| {
        let names: Vec<_> = step.as_object().unwrap().keys().collect();
        assert_eq!(names, ["time", "from", "to", "cause", "reason"]);
        assert!(step["time"].as_str().unwrap().ends_with('Z'), "{step}");
        let text = |name: &str| step[name].as_str().unwrap_or("-").to_owned();
        let reason = step["reason"].as_str().map(|reason| format!(" ({reason})"));
        let reason = reason.unwrap_or_default();
        format!("{} > {}: {}{reason}", text("from"), text("to"), text("cause"))
    };
    timeline.as_array().unwrap().iter().map(step).collect()
}

#[tokio::test]
async fn every_deposit_and_payout_is_in_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let sale = ann.sale(|body| body["partnerOrderIdentifier"] = json!("sale-1")).await;
    let fiat = ann.read(&sale).await["price"]["amount"].clone();
    let report = async |reference: &str, kind: &str, amount: &Value, currency: &str| {
        let body = json!({"partner": "acme", "connector": "manual", "providerReference": reference,
            "kind": kind, "amount": amount, "currency": currency, "orderId": sale["orderId"],
            "reason": "seen"});
        let answer = context.admin(Method::POST, "/admin/v1/payments", body).await;
        answer.assert_status(201);
    };
    report("d-1", "deposit-received", &json!(0.01), "BTC").await;
    report("d-2", "deposit-received", &json!(0.002), "BTC").await;
    report("t-1", "transfer-sent", &fiat, "EUR").await;
    report("t-1", "transfer-completed", &fiat, "EUR").await;
    let timeline = ann.get(&path(&sale["orderId"])).await.assert_status(200).json();
    let sent = format!("in progress > in progress: transfer-sent ({fiat} EUR)");
    assert_eq!(
        steps(&timeline),
        [
            "- > pending: confirmed",
            "pending > in progress: payment-received",
            "in progress > in progress: deposit-received (0.002 BTC)",
            &sent,
            "in progress > completed: paid-out",
        ]
    );
    assert_eq!(ann.get(&path("sale-1")).await.json(), timeline);
    // A client's token reads what its users have.
    let bearer = format!("Bearer {}", acme.token().await);
    let by_token = acme.anonymous(Method::GET, &path(&sale["orderId"]));
    let by_token = by_token.header("authorization", &bearer).send().await;
    assert_eq!(by_token.assert_status(200).json(), timeline);
}

#[tokio::test]
async fn a_hold_keeps_its_reason_from_the_partner() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let sale = ann.sale(|_| ()).await;
    let path_of_events = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    for event in [
        json!({"event": "payment-received"}),
        json!({"event": "hold", "reason": "who is it?"}),
        json!({"event": "refund"}),
    ] {
        context.admin(Method::POST, &path_of_events, event).await.assert_status(200);
    }
    let timeline = ann.get(&path(&sale["orderId"])).await.assert_status(200).json();
    let steps = steps(&timeline);
    assert_eq!(steps[2], "in progress > blocked: held");
    assert_eq!(steps[3], "blocked > refunded: refunded");
}

#[tokio::test]
async fn others_and_nonsense_find_nothing() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (ann, bob) =
        (Seller::of(&context, &acme, "ann").await, Seller::of(&context, &acme, "bob").await);
    let eve = Seller::of(&context, &rival, "eve").await;
    let sale = ann.sale(|_| ()).await;
    for other in [&bob, &eve] {
        let answer = other.get(&path(&sale["orderId"])).await;
        answer.assert_status(404).assert_codes(&["ER035"]);
    }
    acme.get(&path(&sale["orderId"])).await.assert_codes(&["ER700"]);
    ann.get(&path("")).await.assert_codes(&["ER033"]);
    ann.get(&path("%00")).await.assert_codes(&["ER034"]);
    ann.get(&path("x".repeat(256))).await.assert_codes(&["ER034"]);
    // A purchase is none.
    ann.get(&path(7)).await.assert_status(404).assert_codes(&["ER035"]);
}
