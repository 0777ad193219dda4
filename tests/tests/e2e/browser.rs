//! The pages for people, in a browser: they work without script, load nothing from elsewhere, and
//! break no policy of their own.

use http::Method;
use rampart_api::ENDPOINTS;
use rampart_core::platform::clock::Clock;
use rampart_tests::browser::Browser;
use rampart_tests::caller::Caller;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::outbox;
use rampart_tests::receiver::Receiver;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::registration;
use serde_json::json;

use crate::buyer::{RETURN_URL, WALLET, order, order_of, quote};

#[tokio::test]
async fn the_pages_work_in_a_browser_and_load_nothing_from_elsewhere() {
    let edge = Edge::start().await;
    let partner = edge.partner("browsed").await.authenticated().await;
    let shop = Receiver::start().await;
    let browser = Browser::start().await;
    docs(&browser, &edge).await;
    for (button, status) in [("pay", "completed"), ("deny", "cancelled"), ("cancel", "cancelled")] {
        pays(&browser, &partner, &shop, button, status).await;
    }
    checks_out(&browser, &partner, &shop).await;
    registers(&browser, &partner, &shop).await;
    resets_password(&browser, &edge, &partner).await;
    assert_eq!(browser.complaints().await, [""; 0]);
    let (ours, shops) = (edge.url("/"), shop.url("/"));
    let asked = browser.requested().await;
    let elsewhere = asked.iter().filter(|url| !url.starts_with(&ours) && !url.starts_with(&shops));
    assert_eq!(elsewhere.collect::<Vec<_>>(), [""; 0]);
    assert!(asked.contains(&edge.url("/docs")), "{asked:?}");
}

#[tokio::test]
async fn a_consent_is_to_the_price_that_is_seen() {
    const PRICES: &str = "return document.querySelectorAll('[data-quote] [data-amount]').length";
    const STATE: &str = "return [document.querySelector('input[name=consent]').checked,
        document.querySelector('[data-changed]').hidden]";
    // At once: an empty field between two amounts is a state of its own.
    const TYPE: &str = "const amount = document.querySelector('input[name=amount]');
        amount.value = arguments[0];
        amount.dispatchEvent(new Event('input', {bubbles: true}))";
    let edge = Edge::start().await;
    let partner = edge.partner("browsed").await.authenticated().await;
    let user = registration("ada");
    partner.register(&user).await;
    let login = partner.request(Method::GET, "/api/v1/user/login-token");
    let login = login.header("user-identifier", user["identifier"].as_str().unwrap()).send().await;
    let token = login.assert_status(200).json()["token"].take();
    let body = json!({
        "baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard",
        "quoteCurrencyAmount": 100, "walletAddress": WALLET, "returnUrl": RETURN_URL,
        "loginToken": token, "attemptDirectConfirm": true,
    });
    let made = partner.post("/api/v2/buy/checkout", body).await.assert_status(200).json();
    let browser = Browser::start().await;
    browser.open(made["checkoutUrl"].as_str().unwrap()).await;
    browser.has("[data-quote] [data-amount]").await;
    browser.click("input[name=consent]").await;
    assert_eq!(browser.run(STATE).await, json!([true, true]));
    // On the way to another amount there is no price: none has changed.
    browser.run_with(TYPE, json!(["x"])).await;
    until("no price is shown", SOON, async || (browser.run(PRICES).await == 0).then_some(())).await;
    assert_eq!(browser.run(STATE).await, json!([false, true]));
    browser.click("input[name=consent]").await;
    browser.run_with(TYPE, json!(["120"])).await;
    browser.has("[data-quote] [data-amount]").await;
    assert_eq!(browser.run(STATE).await, json!([false, true]), "nobody has seen this price");
    browser.click("input[name=consent]").await;
    browser.run_with(TYPE, json!(["130"])).await;
    browser.has("[data-changed]:not([hidden])").await;
    assert_eq!(browser.run(STATE).await, json!([false, false]));
}

#[tokio::test]
async fn times_are_written_as_in_the_readers_region() {
    // The first time of the page, and the same as a region writes it.
    const TIMES: &str = "const time = document.querySelector('time[datetime]');
        return [time.textContent, new Date(time.dateTime).toLocaleString(arguments[0],
            {dateStyle: 'medium', timeStyle: 'short'})]";
    let edge = Edge::start().await;
    let partner = edge.partner("browsed").await.authenticated().await;
    let confirmed = order(&partner).await.json();
    let browser = Browser::start().await;
    for region in ["en-GB", "en-US", "de-AT"] {
        browser.prefer_language(region).await;
        browser.open(confirmed["paymentUrl"].as_str().unwrap()).await;
        let times = browser.run_with(TIMES, json!([region])).await;
        assert_eq!(times[0], times[1], "{region}");
    }
}

#[tokio::test]
async fn a_double_click_sends_a_form_once() {
    // Two clicks on the page's first form, none of which leaves the page; those that would have.
    const SENT: &str = "let sent = 0;
        addEventListener('submit', (event) => {
            if (!event.defaultPrevented) sent += 1;
            event.preventDefault();
        });
        for (let click = 0; click < 2; click += 1) document.querySelector('form').requestSubmit();
        return sent";
    let edge = Edge::start().await;
    let partner = edge.partner("browsed").await.authenticated().await;
    let confirmed = order(&partner).await.json();
    let browser = Browser::start().await;
    browser.open(confirmed["paymentUrl"].as_str().unwrap()).await;
    browser.has("button[value=pay]").await;
    assert_eq!(browser.run(SENT).await, 1);
}

async fn docs(browser: &Browser, edge: &Edge) {
    browser.open(&edge.url("/docs")).await;
    let rows = browser.run("return document.querySelectorAll('#index li').length").await;
    assert!(rows.as_u64().unwrap() > ENDPOINTS.len() as u64, "{rows}");
    // The policy lets the one style in.
    let display = browser.run("return getComputedStyle(document.body).display").await;
    assert_eq!(display, "grid");
    // And the one script: the index is searched where it stands.
    browser.enter("#search", "ER006").await;
    browser.shows("1 found").await;
    browser.click("nav a[href='/docs/quoteBuy']").await;
    browser.reaches(&edge.url("/docs/quoteBuy")).await;
    browser.shows("Quote a purchase").await;
}

async fn pays(browser: &Browser, partner: &Caller, shop: &Receiver, button: &str, status: &str) {
    let back = shop.url(&format!("/back-from-{button}"));
    let quote = quote(partner).await["quote"].take();
    let body = json!({"quote": quote, "walletAddress": WALLET, "returnUrl": back});
    let confirmed = partner.post("/api/v1/buy/confirm", body).await;
    let page = confirmed.json()["paymentUrl"].as_str().unwrap().to_owned();
    browser.open(&page).await;
    browser.shows("100.00 EUR").await;
    browser.click(&format!("button[value={button}]")).await;
    browser.reaches(&back).await;
    let path = format!("/api/v2/buy/orders/{}", order_of(&confirmed));
    until(&format!("the order is {status}"), SOON, async || {
        let order = partner.get(&path).await.assert_status(200).json();
        (order["status"] == status).then_some(())
    })
    .await;
    browser.open(&page).await;
    let buttons = browser.run("return document.querySelectorAll('button').length").await;
    assert_eq!(buttons, 0, "an order is paid once");
}

async fn checks_out(browser: &Browser, partner: &Caller, shop: &Receiver) {
    let back = shop.url("/back-from-checkout");
    let body = json!({
        "baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard",
        "quoteCurrencyAmount": 100, "returnUrl": back,
    });
    let made = partner.post("/api/v2/buy/checkout", body).await.assert_status(200).json();
    browser.open(made["checkoutUrl"].as_str().unwrap()).await;
    browser.shows("100.00 EUR").await;
    browser.click("a.button").await;
    browser.reaches(&back).await;
    // The shopper may come again by the same link, and buys.
    browser.open(made["checkoutUrl"].as_str().unwrap()).await;
    browser.enter("input[name=wallet]", WALLET).await;
    // The price follows the amount without another page.
    browser.enter("input[name=amount]", "120").await;
    browser.shows("120.00 EUR").await;
    browser.enter("input[name=amount]", "100").await;
    browser.shows("100.00 EUR").await;
    browser.click("button[value=quote]").await;
    browser.shows("Check and confirm").await;
    browser.click("input[name=consent]").await;
    browser.click("button[value=confirm]").await;
    browser.shows("Choose how this test payment ends.").await;
    browser.click("button[value=pay]").await;
    browser.reaches(&back).await;
}

/// On the page that a partner sends its users to.
async fn registers(browser: &Browser, partner: &Caller, shop: &Receiver) {
    let back = shop.url("/back-from-registration");
    let body = json!({"identifier": "z".repeat(40), "returnUrl": back});
    let made = partner.post("/api/v1/user/register-identifier", body).await;
    let page = made.assert_status(200).json()["redirectUrl"]["nl-nl"].take();
    browser.open(page.as_str().unwrap()).await;
    browser.enter("form:last-of-type input[name=email]", "page@mail.example.com").await;
    browser.enter("form:last-of-type input[name=password]", "password-of-page").await;
    browser.enter("form:last-of-type input[name=country]", "NL").await;
    browser.click("form:last-of-type input[name=privacy]").await;
    browser.click("button[value=register]").await;
    browser.reaches(&back).await;
    let info = partner.request(Method::GET, "/api/v1/user/info");
    let info = info.header("user-identifier", &"z".repeat(40)).send().await;
    assert_eq!(info.assert_status(200).json()["emailAddress"], "page@mail.example.com");
}

/// From the mail to the new password.
async fn resets_password(browser: &Browser, edge: &Edge, partner: &Caller) {
    let user = registration("eve");
    partner.post("/api/v2/user", user.clone()).await.assert_status(200);
    let email = user["email"].as_str().unwrap();
    let asked = json!({ "emailAddress": email });
    partner.post("/api/v1/user/reset-password", asked).await.assert_status(200);
    browser.open(&mailed_link(edge, email).await).await;
    browser.enter("input[name=password]", "short").await;
    browser.click("button").await;
    browser.shows("Kies een nieuw wachtwoord").await;
    browser.enter("input[name=password]", "a new password").await;
    browser.click("button").await;
    browser.shows("Je wachtwoord is ingesteld").await;
    let log_in = async |password: &str| {
        let body = json!({"emailAddress": email, "password": password});
        partner.post("/api/v1/user/login", body).await
    };
    log_in("a new password").await.assert_status(200);
    log_in(user["password"].as_str().unwrap()).await.assert_codes(&["ER005"]);
}

/// The link in the last mail about a new password.
async fn mailed_link(edge: &Edge, email: &str) -> String {
    let context = TestContext::beside(edge, Clock::system()).await;
    let text = outbox::newest(&context, email).await.text;
    text.lines().find(|line| line.starts_with("https://")).unwrap().to_owned()
}
