//! Scopes of API keys, over the whole table of endpoints.

use http::Method;
use rampart_api::ENDPOINTS;
use rampart_core::tenancy::tenants::Scope;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::json;

use super::some_path;

/// The partner with a key of these scopes.
async fn with_scopes(context: &TestContext, partner: &Partner, scopes: &[Scope]) -> Partner {
    let path = format!("/admin/v1/partners/{}/api-keys", partner.slug);
    let answer = context.admin(Method::POST, &path, json!({ "scopes": scopes })).await;
    answer.assert_status(201);
    partner.with_key(answer.json()["apiKey"].as_str().unwrap())
}

#[tokio::test]
async fn every_route_of_clients_refuses_a_key_without_its_scope_alone() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for scope in Scope::ALL {
        let others: Vec<_> =
            Scope::ALL.into_iter().filter(|one| *one != scope && *one != Scope::All).collect();
        let (holder, stranger) = (
            with_scopes(&context, &acme, &[scope]).await,
            with_scopes(&context, &acme, &others).await,
        );
        for route in ENDPOINTS.iter().filter(|route| route.scope == Some(scope)) {
            let path = some_path(route);
            let refused = stranger.request(route.method.clone(), &path).body("{}").send().await;
            refused.assert_status(400).assert_codes(&["ER805"]);
            let solution = refused.json()["errors"]["ER805"]["solution"].to_string();
            assert!(solution.contains(scope.as_str()), "{route:?}: {solution}");
            let held = holder.request(route.method.clone(), &path).body("{}").send().await;
            assert!(!held.codes().contains(&"ER805".to_owned()), "{route:?}");
        }
    }
}

#[tokio::test]
async fn an_unknown_scope_is_refused_at_issue() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let path = "/admin/v1/partners/acme/api-keys";
    for scopes in [json!(["orders:refund"]), json!(["ORDERS:READ"]), json!([""]), json!("*")] {
        let answer = context.admin(Method::POST, path, json!({ "scopes": scopes })).await;
        answer.assert_status(422);
    }
    let eight = vec!["quotes:read"; Scope::ALL.len() + 1];
    context.admin(Method::POST, path, json!({ "scopes": eight })).await.assert_status(422);
}

#[tokio::test]
async fn the_mode_in_a_key_is_part_of_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let api_key = acme.api_key.replacen("rk_test_", "rk_live_", 1);
    assert_ne!(api_key, acme.api_key);
    let other_mode = acme.with_key(api_key);
    let answer = other_mode.get("/api/v2/system/errors").await;
    answer.assert_status(400).assert_codes(&["ER805"]);
    acme.get("/api/v2/system/errors").await.assert_status(200);
}
