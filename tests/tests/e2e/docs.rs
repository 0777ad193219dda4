//! A form of the documentation sends a request with the reader's key, in a browser.

use rampart_tests::browser::Browser;
use rampart_tests::edge::Edge;
use serde_json::{Value, json};

use crate::buyer::{order, order_of};

const KEY: &str = "#try [name=X-Api-Key]";

/// The status that the form shows.
async fn answered(browser: &Browser, status: &str) -> Value {
    browser.shows(status).await;
    let shown = browser.run("return document.querySelector('#try pre').textContent").await;
    serde_json::from_str(shown.as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_reader_tries_a_request_with_a_key_for_tests_alone() {
    let edge = Edge::shared().await;
    let partner = edge.partner("reader-of-docs").await;
    let (_, key) = partner.credential();
    let browser = Browser::start().await;

    browser.open(&edge.url("/docs/quoteBuy")).await;
    let body = json!({"currencyPair": "BTC-EUR", "fiatAmount": 100, "paymentMethod": "creditCard"});
    browser.enter("#try textarea", &body.to_string()).await;
    browser.enter(KEY, &key.replace("rk_test_", "rk_live_")).await;
    browser.requested().await;
    browser.click("#try button").await;
    browser.shows("This is not a key for tests. Nothing was sent.").await;
    assert!(browser.requested().await.is_empty());

    browser.enter(KEY, key).await;
    browser.click("#try button").await;
    let quote = answered(&browser, "Status 200").await;
    assert_eq!(quote["fiatAmount"], 100, "{quote}");

    browser.enter(KEY, "rk_test_wrong_key").await;
    browser.click("#try button").await;
    let refused = answered(&browser, "Status 400").await;
    assert!(refused["errors"]["ER805"].is_object(), "{refused}");
}

#[tokio::test]
async fn what_is_filled_in_goes_into_path_and_query() {
    let edge = Edge::shared().await;
    let partner = edge.partner("filler-of-forms").await;
    let order = order_of(&order(&partner.authenticated().await).await).to_string();
    let browser = Browser::start().await;

    browser.open(&edge.url("/docs/simulateOrderEvent")).await;
    browser.enter(KEY, partner.credential().1).await;
    browser.enter("#try [name=id]", &order).await;
    browser.click("#try [name=event] option:nth-of-type(2)").await;
    browser.click("#try button").await;
    browser.shows("Status 200").await;

    browser.open(&edge.url("/docs/compareQuotes")).await;
    browser.enter(KEY, partner.credential().1).await;
    browser.enter("#try [name=fiatAmount]", "100").await;
    browser.enter("#try [name=currency]", "EUR").await;
    browser.requested().await;
    browser.click("#try button").await;
    answered(&browser, "Status 200").await;
    let wanted = edge.url("/api/v2/quotes/matrix?fiatAmount=100&currency=EUR");
    assert_eq!(browser.requested().await, [wanted]);
    assert_eq!(browser.complaints().await, [""; 0]);
}

#[tokio::test]
async fn a_telephone_shows_the_names_of_members_whole_and_the_page_at_once() {
    let edge = Edge::shared().await;
    let browser = Browser::start().await;
    let size = json!({"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true});
    browser.command("Emulation.setDeviceMetricsOverride", size).await;
    for page in ["quoteBuy", "readOrder", "models"] {
        browser.open(&edge.url(&format!("/docs/{page}"))).await;
        let broken = "return [...document.querySelectorAll('th[scope=row] code')]
            .filter(name => name.getClientRects().length > 1).map(name => name.textContent)";
        assert_eq!(browser.run(broken).await, json!([]), "{page}");
        let top = browser.run("return document.querySelector('h1').offsetTop").await;
        assert!(top.as_i64().unwrap() < 422, "{page} begins {top} px below the top");
    }
}
