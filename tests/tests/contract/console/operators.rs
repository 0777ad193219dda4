//! An operator's page, and what two persons change on it.

use super::*;

const EVE: &str = "/console/operators/eve";

/// Asks for an action, has another operator agree, and carries it out.
async fn together(
    ada: &Browser<'_>,
    bob: &Browser<'_>,
    action: &str,
    typed: &[(&str, &str)],
) -> Shown {
    let waits = ada.submit(&format!("{EVE}/{action}"), typed).await.assert(303, "");
    let approval = waits.header("location").split("waits=").nth(1).unwrap().to_owned();
    let approval = format!("/console/approvals/{approval}");
    bob.submit(&format!("{approval}/grant"), &[]).await.assert(303, "");
    let carried_out = ada.submit(&format!("{approval}/carry-out"), &[]).await;
    carried_out.assert(200, "The call is carried out.")
}

#[tokio::test]
async fn a_call_without_an_answer_shows_none() {
    let context = TestContext::start().await;
    context.operator("eve", &["support"]).await;
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    let bob = Browser::of(&context, "bob", &["owner"]).await;
    let done = together(&ada, &bob, "roles", &[("roles", "viewer")]).await;
    assert!(!done.text.contains("<pre"), "{}", done.text);
    ada.get(EVE).await.assert(200, "viewer");
}
