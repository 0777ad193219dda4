//! The operators' console in a browser: signed in by a token, it works, loads nothing from elsewhere
//! and breaks no policy of its own, on a telephone and on a desk.

mod files;
mod work;

use http::Method;
use rampart_tests::browser::Browser;
use rampart_tests::edge::Edge;
use serde_json::{Value, json};

use crate::buyer::{order, order_of};

/// The pages of the navigation.
const PAGES: [&str; 13] = [
    "",
    "/orders",
    "/reviews",
    "/payments",
    "/users",
    "/partners",
    "/market",
    "/ledger",
    "/deliveries",
    "/connectors",
    "/approvals",
    "/operators",
    "/audit",
];

/// The token of a new operator who may do everything.
async fn owner(edge: &Edge, name: &str) -> String {
    let new = json!({"name": name, "roles": ["owner"]});
    let made = edge.admin(Method::POST, "/admin/v1/operators", new).await;
    made.assert_status(201).json()["token"].as_str().unwrap().to_owned()
}

async fn sign_in(browser: &Browser, edge: &Edge, token: &str) {
    browser.open(&format!("http://{}/console", edge.admin)).await;
    browser.enter("input[name=token]", token).await;
    browser.click("button.main").await;
    browser.shows("Overview").await;
}

#[tokio::test]
async fn an_operator_works_with_the_console_in_a_browser() {
    let edge = Edge::start().await;
    let order = order_of(&order(&edge.partner("shop").await.authenticated().await).await);
    let browser = Browser::start().await;
    sign_in(&browser, &edge, &owner(&edge, "ada").await).await;
    let own = format!("http://{}/console", edge.admin);
    for page in PAGES {
        browser.open(&format!("{own}{page}")).await;
        // A wide table scrolls by itself, and never the page.
        let wider = "return document.documentElement.scrollWidth > innerWidth";
        assert_eq!(browser.run(wider).await, Value::Bool(false), "{page} is too wide");
        let unlabelled = "return [...document.querySelectorAll('input:not([type=hidden]),select,\
             textarea')].filter(field => !field.labels.length).length";
        assert_eq!(browser.run(unlabelled).await, json!(0), "{page} has a field without a label");
    }
    browser.open(&format!("{own}/orders/{order}")).await;
    browser.shows("What happened").await;
    browser.click("a[href$='/cancel']").await;
    browser.shows("100").await;
    browser.enter("textarea[name=reason]", "the buyer asked for it").await;
    browser.click("main form button").await;
    browser.shows("Done: Cancel.").await;
    browser.shows("the buyer asked for it").await;
    let seen = edge.admin(Method::GET, &format!("/admin/v1/orders/{order}"), Value::Null).await;
    assert_eq!(seen.json()["status"], "cancelled");
    browser.click("header form button").await;
    browser.shows("Operator token").await;
    assert_eq!(browser.complaints().await, [""; 0]);
    let asked = browser.requested().await;
    let elsewhere = asked.iter().filter(|url| !url.starts_with(&own));
    assert_eq!(elsewhere.collect::<Vec<_>>(), [""; 0]);
}
