//! A shopper's second factors, from the account's page to the sign-in with them, on a telephone: a
//! passkey and an authenticator app.

use rampart_core::platform::clock::Clock;
use rampart_tests::browser::Browser;
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::totp::{code, shown_key};
use rampart_tests::user::registration;
use serde_json::json;

use super::Visitor;
use crate::buyer::RETURN_URL;

const MADE: &str = "De passkey is toegevoegd.";
const EMAIL: &str = "ada@mail.example.com";

/// Shows pages as on a telephone from now on.
async fn on_a_telephone(browser: &Browser) {
    let size = json!({"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true});
    browser.command("Emulation.setDeviceMetricsOverride", size).await;
}

async fn password(browser: &Browser) {
    browser.enter("input[name=email]", EMAIL).await;
    browser.enter("input[name=password]", "password-of-ada").await;
    browser.click("button[value=log-in]").await;
}

#[tokio::test]
async fn a_shopper_makes_a_passkey_and_signs_in_with_it() {
    let edge = Edge::with(|setup: &mut Setup| {
        setup.set("edge.public_url", "https://localhost");
    })
    .await;
    let partner = edge.partner("browsed").await.authenticated().await;
    let user = registration("ada");
    partner.post("/api/v2/user", user.clone()).await.assert_status(200);
    let body = json!({"identifier": user["identifier"], "returnUrl": RETURN_URL});
    let made = partner.post("/api/v1/user/register-identifier", body).await;
    let urls = made.assert_status(200).json()["redirectUrl"].take();
    let url = urls["nl-nl"].as_str().unwrap();
    let mut visitor = Visitor::on(Browser::at_localhost(edge.address).await);
    visitor.browser.add_authenticator().await;
    visitor.visit("account-sign-in", url).await;
    on_a_telephone(&visitor.browser).await;
    password(&visitor.browser).await;
    visitor.browser.shows(EMAIL).await;
    visitor.look_whole("account").await;
    on_a_telephone(&visitor.browser).await;
    visitor.browser.enter("input[name=name]", "Telefoon van Ada").await;
    visitor.browser.click("form[data-ceremony=create] button").await;
    visitor.browser.shows(MADE).await;
    visitor.look_whole("account-passkey").await;
    // The same authenticator makes no second one; the page says that it failed, and nothing is lost.
    visitor.browser.enter("input[name=name]", "Nog een").await;
    visitor.browser.click("form[data-ceremony=create] button").await;
    visitor.browser.shows("De passkey kon niet worden gecontroleerd.").await;

    // Beside the password.
    visitor.browser.open(url).await;
    on_a_telephone(&visitor.browser).await;
    password(&visitor.browser).await;
    visitor.browser.shows("Bevestig dat jij het bent").await;
    visitor.look("account-passkey-step").await;
    on_a_telephone(&visitor.browser).await;
    visitor.browser.click("form[data-ceremony=get] button").await;
    visitor.browser.shows("Telefoon van Ada").await;

    // Alone.
    visitor.browser.open(url).await;
    visitor.browser.click("button[value=passkey]").await;
    visitor.browser.shows("Bevestig dat jij het bent").await;
    visitor.browser.click("form[data-ceremony=get] button").await;
    visitor.browser.shows("Telefoon van Ada").await;
    let wider = "return document.documentElement.scrollWidth > innerWidth";
    assert_eq!(visitor.browser.run(wider).await, json!(false));
    visitor.browser.click("button[value=passkey-remove]").await;
    visitor.browser.shows("De passkey is verwijderd.").await;

    // An authenticator app; the picture has another key than the page.
    visitor.browser.click("button[value=app-begin]").await;
    visitor.browser.shows("Typ deze sleutel in je app").await;
    let shown = "const shown = document.querySelector('code'), key = shown.textContent;
        shown.textContent = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';
        return key;";
    let key = visitor.browser.run(shown).await;
    visitor.look("account-app").await;
    on_a_telephone(&visitor.browser).await;
    let key = shown_key(&format!("<code>{}<", key.as_str().unwrap()));
    visitor.browser.enter("input[name=code]", &code(&Clock::system(), &key)).await;
    visitor.browser.click("button[value=app-confirm]").await;
    visitor.browser.shows("De app wordt voortaan gebruikt.").await;
    visitor.browser.open(url).await;
    password(&visitor.browser).await;
    visitor.browser.shows("Vul de code van je app in").await;
    visitor.look("account-app-step").await;
    assert_eq!(visitor.browser.complaints().await, [""; 0]);
    visitor.end();
}
