//! The ways to a new password: from each sign-in, and from a link that does not work any more.

use http::Method;
use rampart_tests::outbox;
use serde_json::{Value, json};

use super::{Visit, page_path, submit};

/// The page in the language of a browser that names none.
const ENGLISH: &str = "href=\"/en-gb/forgot-password?client=acme\"";

fn path(url: &Value) -> String {
    url.as_str().unwrap().strip_prefix("https://pay.example.com").unwrap().to_owned()
}

#[tokio::test]
async fn every_sign_in_leads_to_a_new_password() {
    let visit = Visit::start().await;
    let partner = &visit.partner;
    let guests = json!({"guestOrders": {"allowed": false}});
    let patched = visit.context.admin(Method::PATCH, "/admin/v1/partners/acme", guests).await;
    patched.assert_status(200);
    let checkout =
        json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard"});
    let checkout = partner.post("/api/v2/buy/checkout", checkout).await.assert_status(200).json();
    let sale = json!({"returnUrl": "https://shop.example/back"});
    let sale = partner.post("/api/v2/sell/onboarding", sale).await.assert_status(200).json();
    let dutch = "href=\"/nl-nl/forgot-password?client=acme\"";
    let form = "action=log-in&email=ada%40mail.example.com&password=wrong-one";
    for (path, expected) in [
        (path(&checkout["checkoutUrl"]), ENGLISH),
        (path(&sale["onboardingUrl"]), ENGLISH),
        (page_path(partner, &"x".repeat(36)).await, dutch),
        (visit.path.clone(), dutch),
    ] {
        let shown = partner.anonymous(Method::GET, &path).send().await;
        assert!(shown.assert_status(200).text().contains(expected), "{}", shown.text());
        let refused = submit(partner, &path, form).await;
        assert!(refused.text().contains(expected), "{path}: {}", refused.text());
    }
    for page in ["/en-gb/forgot-password?client=acme", "/nl-nl/forgot-password?client=acme"] {
        partner.anonymous(Method::GET, page).send().await.assert_status(200);
    }
}

#[tokio::test]
async fn a_link_that_does_not_work_any_more_leads_to_another() {
    let visit = Visit::start().await;
    let email = &*visit.user.email;
    let asked = json!({ "emailAddress": email });
    visit.partner.post("/api/v1/user/reset-password", asked).await.assert_status(200);
    let mail = outbox::newest(&visit.context, email).await.text;
    let link = mail.lines().find_map(|line| line.split_once("/reset-password/")).unwrap().1;
    let path = format!("/reset-password/{link}");
    // A browser would cut off what is pasted, and a login with all of it would be refused.
    let form = visit.partner.anonymous(Method::GET, &path).send().await;
    let text = form.assert_status(200).text();
    assert!(text.contains("minlength=\"8\"") && !text.contains("maxlength"), "{text}");
    let long = submit(&visit.partner, &path, &format!("password={}", "x".repeat(65))).await;
    assert!(long.assert_status(400).text().contains("aria-invalid=\"true\""), "{}", long.text());
    submit(&visit.partner, &path, "password=password-of-eve").await.assert_status(200);
    let again = submit(&visit.partner, &path, "password=password-of-bob").await;
    assert!(again.assert_status(404).text().contains(ENGLISH), "{}", again.text());
    let show = async |path: &str| visit.partner.anonymous(Method::GET, path).send().await;
    let shown = show(&path).await;
    assert!(shown.assert_status(404).text().contains(ENGLISH), "{}", shown.text());
    let foreign = show("/reset-password/AAAA").await;
    assert!(!foreign.assert_status(404).text().contains("forgot-password"), "{}", foreign.text());
}
