//! Two edges over one database: what an operator changes on one, both do, and no request is lost.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::guests::component;
use serde_json::{Value, json};

use super::{Load, partner_fee};

/// Within which a change must be seen everywhere.
const SEEN_WITHIN: Duration = Duration::from_secs(1);
/// Additional delay that is tolerated on a busy machine.
const SLACK: Duration = Duration::from_secs(59);
/// Calls that are recorded by one process and replayed by another.
const CALLS: usize = 1_000;
/// 2026-01-01T00:00:00Z.
const NOW: u32 = 1_767_225_600;

/// Waits until the edge charges this fee.
async fn charges(partner: &Caller, fee: Value) {
    let what = format!("a partner fee of {fee}");
    until(&what, SEEN_WITHIN + SLACK, async || (partner_fee(partner).await == fee).then_some(()))
        .await;
}

#[tokio::test]
async fn whatever_is_done_to_a_policy_under_load_no_request_is_lost_on_either_edge() {
    let edge = Edge::with(|setup| _ = setup.set("edge.request_timeout_seconds", "120")).await;
    let other = edge.beside().await;
    let partner = edge.partner("shop").await.over(Protocol::Http2);
    let there = partner.at(other.address);
    until("the other edge knows the partner", SOON, async || {
        (there.get("/api/v1/prices").await.status() == 200).then_some(())
    })
    .await;
    let mut loads = [&partner, &there].map(Load::start);

    let path = "/admin/v1/partners/shop/policies/fee";
    let call = async |method: Method, path: &str, body: Value| {
        let answer = edge.admin(method, path, body).await;
        assert!(matches!(answer.status(), 200 | 201 | 204), "{path}: {}", answer.text());
    };
    let mut both = async |fee: Value| {
        charges(&partner, fee.clone()).await;
        charges(&there, fee).await;
        for load in &mut loads {
            load.goes_on().await;
        }
    };
    let built_in = partner_fee(&partner).await;
    edge.admin_bytes(Method::PUT, path, component("tiered-fee")).await.assert_status(200);
    both(json!(1.5)).await;
    call(Method::PUT, &format!("{path}/config"), json!({"config": {"tiers": ["0=20000"]}})).await;
    both(json!(2)).await;
    let hostile = STANDARD.encode(component("hostile"));
    let staged = json!({"component": hostile, "config": {}});
    call(Method::POST, &format!("{path}/versions"), staged).await;
    call(Method::POST, &format!("{path}/versions/3/shadow"), json!({})).await;
    both(json!(2)).await;
    call(Method::POST, &format!("{path}/versions/3/activate"), json!({"percentage": 50})).await;
    // The load is one user, who is in or not, on both edges alike.
    until("the share is seen alike", SOON, async || {
        (partner_fee(&partner).await == partner_fee(&there).await).then_some(())
    })
    .await;
    call(Method::POST, &format!("{path}/versions/3/activate"), json!({})).await;
    both(json!(1)).await;
    call(Method::POST, &format!("{path}/rollback"), json!({"reason": "too cheap"})).await;
    both(json!(2)).await;
    call(Method::DELETE, path, json!({})).await;
    both(built_in).await;

    for load in loads {
        load.end().await;
    }
}

/// Questions that differ in all that decides.
fn questions() -> Vec<Value> {
    let countries = ["DE", "NL", "FR", "BE", "AT"];
    let methods = ["creditCard", "bankTransfer", "bancontact"];
    let question = |n: usize| {
        json!({
            "side": if n.is_multiple_of(7) { "sell" } else { "buy" },
            "pay": {"amount": format!("{}.{:02}", 1 + n * 13 % 5_000, n % 100), "currency": "EUR"},
            "midRate": format!("0.0000{}", 100 + n),
            "country": countries[n % countries.len()],
            "paymentMethod": methods[n % methods.len()],
            "userTier": if n.is_multiple_of(2) { "guest" } else { "registered" },
            "promoCode": n.is_multiple_of(5).then_some("WELCOME"),
        })
    };
    (0..CALLS).map(question).collect()
}

#[tokio::test]
async fn a_second_process_decides_a_thousand_recorded_calls_byte_for_byte_alike() {
    let edge = Edge::start().await;
    let _partner = edge.partner("shop").await;
    let path = "/admin/v1/partners/shop/policies/fee";
    edge.admin_bytes(Method::PUT, path, component("tiered-fee")).await.assert_status(200);
    let dry_run = format!("{path}/dry-run");
    let body = json!({"inputs": questions(), "now": NOW});
    let recorded = edge.admin(Method::POST, &dry_run, body.clone()).await;
    let decisions = recorded.assert_status(200).json()["decisions"].clone();
    let decisions = decisions.as_array().unwrap();
    assert_eq!(decisions.len(), CALLS);
    assert!(decisions.iter().all(|decision| decision["fuel"].as_u64().unwrap() > 0));
    assert!(decisions.iter().any(|decision| decision["decision"] != decisions[0]["decision"]));

    let other = edge.beside().await;
    let replayed = other.admin(Method::POST, &dry_run, body).await;
    assert_eq!(replayed.assert_status(200).bytes(), recorded.bytes());
}
