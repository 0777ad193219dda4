//! The fee of a checkout, which no quote of another checkout's page replaces.

use rampart_tests::test_context::TestContext;
use serde_json::json;

use super::purchase::{buy, hidden, post};
use super::{ADDRESS, link, made};

#[tokio::test]
async fn a_quote_of_a_page_with_another_fee_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (free, usual) = (made(&acme, json!({"fee": 0})).await, made(&acme, json!({})).await);
    let inputs = [("amount", "100"), ("wallet", ADDRESS)];
    let quoted = post(&acme, link(&free), &[&inputs[..], &[("action", "quote")]].concat()).await;
    let quote = hidden(quoted.assert_status(200), "quote");
    let confirm = [("action", "confirm"), ("quote", &*quote), ("consent", "yes")];
    let confirm = [&confirm[..], &inputs[..]].concat();
    let refused = post(&acme, link(&usual), &confirm).await;
    assert!(refused.assert_status(400).text().contains("ER137"), "{}", refused.text());
    buy(&acme, link(&usual), &inputs).await.assert_status(303);
    post(&acme, link(&free), &confirm).await.assert_status(303);
}
