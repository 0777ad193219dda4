//! Amounts of a checkout, as the languages of its pages write them.

use chrono::TimeDelta;
use rampart_tests::test_context::TestContext;
use serde_json::json;

use super::purchase::{hidden, post, sign_in_link};
use super::{ADDRESS, link, made, page};

#[tokio::test]
async fn an_amount_is_read_in_the_language_that_it_was_typed_in() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let made = made(&acme, json!({"expireTime": 7200})).await;
    let shown = page(&acme, link(&made)).await;
    let language = hidden(shown.assert_status(200), "language");
    // A thousand in English; a single euro in Dutch, which the account speaks.
    let typed =
        [("action", "account"), ("amount", "1,000"), ("language", &*language), ("wallet", ADDRESS)];
    let resumed = sign_in_link(link(&made), &post(&acme, link(&made), &typed).await);
    let log_in = [("action", "log-in"), ("email", &*ada.email), ("password", &*ada.password)];
    let known = post(&acme, &resumed, &log_in).await;
    let text = known.assert_status(200).text();
    for part in ["<html lang=\"nl\">", "1.000,00 EUR", "value=\"1000\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The sign-in is over: what was typed in Dutch is read by a browser of English.
    let (shopper, language) = (hidden(&known, "shopper"), hidden(&known, "language"));
    context.clock().advance(TimeDelta::minutes(31));
    let typed = [
        ("action", "quote"),
        ("shopper", &*shopper),
        ("amount", "1.000"),
        ("language", &*language),
        ("wallet", ADDRESS),
    ];
    let resumed = sign_in_link(link(&made), &post(&acme, link(&made), &typed).await);
    let known = post(&acme, &resumed, &log_in).await;
    let text = known.assert_status(200).text();
    assert!(text.contains("1.000,00 EUR"), "{text}");
    assert_eq!(["amount", "language"].map(|name| hidden(&known, name)), ["1.000", "nl"]);
}
