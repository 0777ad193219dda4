//! The choice of a language on the page of an account.

use http::Method;
use rampart_tests::passkey::challenge;
use serde_json::{Value, json};

use super::{Visit, submit};

#[tokio::test]
async fn a_language_is_kept_with_the_account() {
    let visit = Visit::start().await;
    let order = visit.user.buy(30).await.assert_status(200).json();
    let page = visit.sign_in().await;
    let (_, session) = visit.path.rsplit_once('/').unwrap();
    let german = format!("/de-at/dashboard/{session}");
    assert!(page.contains(&format!("formaction=\"{german}\"")), "{page}");
    let form = format!("action=language&challenge={}", challenge(&page));
    let shown = submit(&visit.partner, &german, &form).await;
    let text = shown.assert_status(200).text();
    assert!(text.contains("lang=\"de\"") && text.contains("Ihre Daten"), "{text}");
    let profile = visit.user.get("/api/v1/user/info").await.json();
    assert_eq!(profile["region"], "de-at");
    // The payment page has no language in its path: the account counts before the browser.
    let pay =
        order["paymentUrl"].as_str().unwrap().strip_prefix("https://pay.example.com").unwrap();
    let pay = visit.partner.anonymous(Method::GET, pay).header("accept-language", "fr");
    assert!(pay.send().await.assert_status(200).text().contains("<html lang=\"de\">"));
}

#[tokio::test]
async fn every_language_is_offered_and_partners_see_supported_regions_alone() {
    let visit = Visit::start().await;
    let order = visit.user.buy(30).await.assert_status(200).json();
    let page = visit.sign_in().await;
    assert_eq!(page.matches("value=\"language\"").count(), 8, "{page}");
    let (_, session) = visit.path.rsplit_once('/').unwrap();
    let polish = format!("/pl-pl/dashboard/{session}");
    assert!(page.contains(&format!("formaction=\"{polish}\"")), "{page}");
    let form = format!("action=language&challenge={}", challenge(&page));
    let shown = submit(&visit.partner, &polish, &form).await;
    let text = shown.assert_status(200).text().to_owned();
    assert!(text.contains("<html lang=\"pl\""), "{text}");
    let pay =
        order["paymentUrl"].as_str().unwrap().strip_prefix("https://pay.example.com").unwrap();
    let pay = visit.partner.anonymous(Method::GET, pay).header("accept-language", "fr");
    assert!(pay.send().await.assert_status(200).text().contains("<html lang=\"pl\""));
    let profile = visit.user.get("/api/v1/user/info").await.assert_status(200).json();
    assert_eq!(profile["region"], Value::Null);
    let form = format!("action=download&challenge={}", challenge(&text));
    let file = submit(&visit.partner, &polish, &form).await.assert_status(200).json();
    assert_eq!(file["region"], "pl-pl");
    let sent = json!({"websiteLanguage": "pl", "websiteCountry": "PL"});
    let refused = visit.user.patch("/api/v2/user", &sent).await;
    refused.assert_status(400).assert_codes(&["ER081", "ER083"]);
}
