//! The portal in a browser: a partner's developer makes a key, registers a webhook, sends a test event
//! and sends one again; its owner sets the branding of the pages for shoppers. Nothing comes from
//! elsewhere.

use http::Method;
use rampart_core::platform::clock::Clock;
use rampart_tests::browser::Browser;
use rampart_tests::caller::Caller;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::outbox;
use rampart_tests::receiver::{Reaction, Receiver};
use rampart_tests::staff::PASSWORD;
use rampart_tests::test_context::TestContext;
use serde_json::json;
use standardwebhooks::Webhook;

use crate::buyer::{WALLET, quote};

const EMAIL: &str = "ada@portal.example";
/// One red pixel.
const LOGO: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

#[tokio::test]
async fn a_developer_makes_a_key_registers_a_webhook_tests_it_and_sends_again() {
    let edge = Edge::start().await;
    let partner = edge.partner("portal").await;
    let host = Receiver::start().await;
    let browser = Browser::start().await;
    joins(&browser, &edge, "developer").await;
    makes_a_key(&browser, &edge, &partner).await;
    let secret = registers_a_webhook(&browser, &host).await;
    host.react(Reaction::status(500));
    browser.click("form[action$='/test'] button").await;
    browser.shows("The test event is on its way.").await;
    let heard = host.heard_at_least(1).await;
    let webhook = Webhook::new(&secret).unwrap();
    webhook.verify(&heard[0].body, &heard[0].headers).unwrap();
    until("the attempt is on record", SOON, async || {
        browser.run("location.reload()").await;
        let text = browser.run("return document.querySelector('table')?.innerText ?? ''").await;
        text.as_str().unwrap().contains("500").then_some(())
    })
    .await;
    browser.click("a[href^='/portal/deliveries/']").await;
    browser.shows("webhook.test").await;
    browser.click("form[action$='/resend'] button").await;
    browser.shows("It is on its way again.").await;
    let heard = host.heard_at_least(2).await;
    assert_eq!(heard[1].header("webhook-id"), heard[0].header("webhook-id"));
    browser.click("form[action='/portal/sign-out'] button").await;
    browser.reaches(&edge.url("/portal/sign-in")).await;
    browser.open(&edge.url("/portal/keys")).await;
    browser.reaches(&edge.url("/portal/sign-in")).await;
    stayed_at_home(&browser, &edge).await;
}

#[tokio::test]
async fn shoppers_see_what_an_owner_sets() {
    let edge = Edge::start().await;
    let partner = edge.partner("portal").await.authenticated().await;
    let logo = json!({"name": "Acme", "branding": {"logo": LOGO}});
    edge.admin(Method::PATCH, "/admin/v1/partners/portal", logo).await.assert_status(200);
    let browser = Browser::start().await;
    joins(&browser, &edge, "owner").await;
    browser.click("a[href='/portal/branding']").await;
    browser.shows("Accent colour").await;
    shows_the_logo(&browser).await;
    browser.enter("input[name=accentColor]", "#8a1538").await;
    browser.enter("input[name=supportUrl]", "https://portal.example/help").await;
    browser.click("button.main").await;
    browser.shows("The branding is saved.").await;
    let quote = quote(&partner).await["quote"].take();
    let body = json!({"quote": quote, "walletAddress": WALLET,
        "returnUrl": "https://shop.example/back"});
    let confirmed = partner.post("/api/v1/buy/confirm", body).await;
    browser.open(confirmed.json()["paymentUrl"].as_str().unwrap()).await;
    browser.shows("Help from Acme").await;
    shows_the_logo(&browser).await;
    let colour = "return getComputedStyle(document.querySelector('button.main')).backgroundColor";
    assert_eq!(browser.run(colour).await, "rgb(138, 21, 56)");
    stayed_at_home(&browser, &edge).await;
}

/// The picture came: the policy of the page lets it in.
async fn shows_the_logo(browser: &Browser) {
    let width = "return document.querySelector('p.brand img').naturalWidth";
    until("the logo is there", SOON, async || (browser.run(width).await == 1).then_some(())).await;
}

/// No page broke its policy, or asked for anything from elsewhere.
async fn stayed_at_home(browser: &Browser, edge: &Edge) {
    assert_eq!(browser.complaints().await, [""; 0]);
    let ours = edge.url("/");
    let asked = browser.requested().await;
    let elsewhere = asked.iter().filter(|url| !url.starts_with(&ours));
    assert_eq!(elsewhere.collect::<Vec<_>>(), [""; 0]);
}

/// From the operator's invitation to the overview.
pub(crate) async fn joins(browser: &Browser, edge: &Edge, role: &str) {
    let body = json!({"email": EMAIL, "role": role});
    let invited = edge.admin(Method::POST, "/admin/v1/partners/portal/staff", body).await;
    invited.assert_status(201);
    let context = TestContext::beside(edge, Clock::system()).await;
    let text = outbox::newest(&context, EMAIL).await.text;
    browser.open(text.lines().find(|line| line.starts_with("https://")).unwrap()).await;
    browser.enter("input[name=password]", PASSWORD).await;
    browser.click("button.main").await;
    browser.shows("Your password is set").await;
    browser.click("a.button").await;
    browser.reaches(&edge.url("/portal/sign-in")).await;
    browser.enter("input[name=email]", EMAIL).await;
    browser.enter("input[name=password]", PASSWORD).await;
    browser.click("button.main").await;
    browser.shows("Rate limits").await;
}

async fn makes_a_key(browser: &Browser, edge: &Edge, partner: &Caller) {
    browser.click("a[href='/portal/keys']").await;
    browser.shows("Create a key").await;
    browser.enter("input[name=name]", "Till").await;
    browser.click("button.main").await;
    browser.shows("Store the key now").await;
    let key = browser.run("return document.querySelector('#new-key').innerText").await;
    let prices = partner.anonymous(Method::GET, "/api/v2/prices");
    prices.header("x-api-key", key.as_str().unwrap()).send().await.assert_status(200);
    browser.open(&edge.url("/portal/keys")).await;
    browser.shows("Till").await;
}

/// Registers an endpoint and opens its page; the secret.
async fn registers_a_webhook(browser: &Browser, host: &Receiver) -> String {
    browser.click("a[href='/portal/webhooks']").await;
    browser.shows("Register an endpoint").await;
    browser.enter("input[name=url]", &host.url("/hook")).await;
    browser.click("button.main").await;
    browser.shows("Store the secret now").await;
    let secret = browser.run("return document.querySelector('#new-secret').innerText").await;
    browser.click("a.button").await;
    browser.shows("Send a test event").await;
    secret.as_str().unwrap().to_owned()
}
