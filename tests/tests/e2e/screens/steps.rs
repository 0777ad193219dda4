//! The steps of an order on screens of every width: no word of their names is broken.

use rampart_tests::browser::Browser;
use serde_json::{Value, json};

use super::edge;
use crate::buyer::order;

/// Languages of pages.
const LANGUAGES: [&str; 8] = ["en", "nl", "de", "fr", "es", "pt", "it", "pl"];
/// Widths of screens in CSS pixels: the narrowest, a telephone, the narrowest with steps beside each
/// other, and the one from which on the page is a card with a margin of its own.
const WIDTHS: [u32; 4] = [320, 390, 513, 640];
/// Finds words of the steps' names that are on more than one line, and steps that leave their list.
const BROKEN: &str = r"
    const broken = [];
    const range = document.createRange();
    for (const label of document.querySelectorAll('ol.stepper li > :last-child')) {
        const text = label.firstChild;
        for (const word of text.data.matchAll(/\S+/g)) {
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            if (range.getClientRects().length > 1) broken.push(word[0]);
        }
    }
    const list = document.querySelector('ol.stepper');
    if (list.scrollWidth > list.clientWidth) broken.push('too wide');
    return broken;";

#[tokio::test]
async fn no_word_of_a_steps_name_is_broken() {
    let edge = edge().await;
    let partner = edge.partner("browsed").await.authenticated().await;
    let confirmed = order(&partner).await.json();
    for event in ["payment-received", "coins-sent"] {
        let path = format!("/api/v2/sandbox/orders/{}/{event}", confirmed["orderId"]);
        partner.post(&path, Value::Null).await.assert_status(200);
    }
    let browser = Browser::start().await;
    let mut broken = Vec::new();
    for language in LANGUAGES {
        browser.prefer_language(language).await;
        browser.open(confirmed["paymentUrl"].as_str().unwrap()).await;
        assert_eq!(browser.run("return document.documentElement.lang").await, language);
        for width in WIDTHS {
            let size =
                json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
            browser.command("Emulation.setDeviceMetricsOverride", size).await;
            let found = browser.run(BROKEN).await;
            if found != json!([]) {
                broken.push(format!("{language}, {width} pixels: {found}"));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}
