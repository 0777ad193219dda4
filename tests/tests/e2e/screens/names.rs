//! Long names on narrow screens: a word that is wider than the page is broken, and makes it no wider.

use rampart_tests::browser::Browser;
use serde_json::json;

use super::edge;
use crate::buyer::{RETURN_URL, order};

/// A partner's name with a word that is wider than a telephone.
const NAME: &str = "Donau-Kryptowährungshandelsgesellschaftsbeteiligungsverwaltung Münster";
/// Widths of screens in CSS pixels: the narrowest, and a telephone.
const WIDTHS: [u32; 2] = [320, 390];
/// Names every button of a form, as the one that removes a passkey has that passkey's name.
const NAME_BUTTONS: &str = "
    const buttons = document.querySelectorAll('main form button');
    for (const button of buttons) button.textContent = 'W'.repeat(60);
    return buttons.length;";
const WIDER: &str =
    "const page = document.documentElement; return page.scrollWidth > page.clientWidth";

#[tokio::test]
async fn no_name_makes_a_page_wider() {
    let edge = edge().await;
    let body = json!({"slug": "browsed", "name": NAME, "mode": "test"});
    let partner = edge.partner_of(body).await.authenticated().await;
    let body = json!({
        "baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard",
        "quoteCurrencyAmount": 100, "returnUrl": RETURN_URL,
    });
    let checkout = partner.post("/api/v2/buy/checkout", body).await.assert_status(200).json();
    let body = json!({"identifier": "z".repeat(40), "returnUrl": RETURN_URL});
    let made = partner.post("/api/v1/user/register-identifier", body).await;
    let register = made.assert_status(200).json()["redirectUrl"]["nl-nl"].take();
    let confirmed = order(&partner).await.json();
    let browser = Browser::start().await;
    let mut wider = Vec::new();
    for url in [&checkout["checkoutUrl"], &register, &confirmed["paymentUrl"]] {
        browser.open(url.as_str().unwrap()).await;
        assert_ne!(browser.run(NAME_BUTTONS).await, 0, "{url}");
        for width in WIDTHS {
            let size =
                json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
            browser.command("Emulation.setDeviceMetricsOverride", size).await;
            if browser.run(WIDER).await == json!(true) {
                wider.push(format!("{url}, {width} pixels"));
            }
        }
    }
    assert_eq!(wider, [""; 0]);
}
