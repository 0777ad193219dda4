//! An operator's page, and what two persons change on it.

use super::*;

const EVE: &str = "/console/operators/eve";

#[tokio::test]
async fn a_call_without_an_answer_shows_none() {
    let context = TestContext::start().await;
    context.operator("eve", &["support"]).await;
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    let bob = Browser::of(&context, "bob", &["owner"]).await;
    let done = together(&ada, &bob, &format!("{EVE}/roles"), &[("roles", "viewer")]).await;
    assert!(!done.text.contains("<pre"), "{}", done.text);
    ada.get(EVE).await.assert(200, "viewer");
}

#[tokio::test]
async fn an_operator_is_disabled_by_one_and_enabled_by_two() {
    let context = TestContext::start().await;
    let eve = Browser::of(&context, "eve", &["support"]).await;
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    let bob = Browser::of(&context, "bob", &["owner"]).await;
    let offered = async |offered: &str, other: &str| {
        let page = ada.get(EVE).await.assert(200, &format!("href=\"{EVE}/{offered}\""));
        assert!(!page.text.contains(&format!("href=\"{EVE}/{other}\"")), "{}", page.text);
    };
    offered("disable", "enable").await;
    ada.submit(&format!("{EVE}/disable"), &[]).await.assert(303, "");
    eve.get("/console/orders").await.assert(401, "Please sign in");
    offered("enable", "disable").await;
    together(&ada, &bob, &format!("{EVE}/enable"), &[]).await;
    offered("disable", "enable").await;
    eve.get("/console/orders").await.assert(200, "Orders");
}

#[tokio::test]
async fn what_is_wrong_in_a_list_stands_at_its_field() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    let add = [("name", "eve"), ("roles", "viewer, king")];
    let refused = ada.submit("/console/operators/~/add", &add).await;
    let refused = refused.assert(422, "href=\"#field-roles\"").assert(422, "roles[1]: ");
    assert!(refused.text.contains("viewer, king"), "{}", refused.text);
    assert_eq!(refused.text.matches("aria-invalid=\"true\"").count(), 1, "{}", refused.text);
}
