//! The page that an onboarding URL opens.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::cluster::commit_once_awaited;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use crate::verification::admin_path;

const ONBOARDING: &str = "/api/v2/sell/onboarding";
const IDENTIFIER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const RETURN_URL: &str = "https://shop.example/back";
const LOGIN: &str = "action=log-in&email=ada%40mail.example.com&password=password-of-ada";

/// Path and query of a new URL.
async fn link(partner: &Partner, members: Value) -> String {
    let mut body = json!({"returnUrl": RETURN_URL});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let made = partner.post(ONBOARDING, body).await.assert_status(200).json();
    let url = made["onboardingUrl"].as_str().unwrap();
    url.strip_prefix("https://pay.example.com").unwrap().to_owned()
}

async fn show(partner: &Partner, link: &str) -> Answer {
    partner.anonymous(Method::GET, link).send().await
}

async fn submit(partner: &Partner, link: &str, form: &str) -> Answer {
    partner.anonymous(Method::POST, link).body(form.to_owned()).send().await
}

/// The token in the page's form.
fn token(page: &Answer) -> String {
    let (_, rest) = page.text().split_once("name=\"token\" value=\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[tokio::test]
async fn a_user_registers_adds_a_bank_account_and_goes_back() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let link = link(&acme, json!({"identifier": IDENTIFIER, "locale": "nl-NL"})).await;
    let asked = show(&acme, &link).await;
    assert!(asked.assert_status(200).text().contains("acme"), "{}", asked.text());
    let policy = asked.header("content-security-policy").unwrap();
    assert!(policy.contains("form-action 'self' https://shop.example"), "{policy}");
    let form = "action=register&email=ada%40mail.example.com&password=password-of-ada&country=NL\
                &privacy=yes";
    let entered = submit(&acme, &link, form).await;
    assert!(entered.assert_status(200).text().contains("Je hebt er nog geen"));
    let add = |token: &str, iban: &str| {
        format!("action=account&token={token}&iban={iban}&holder=Ada+Lovelace")
    };
    let wrong = submit(&acme, &link, &add(&token(&entered), "NL91ABNA0417164301")).await;
    let text = wrong.assert_status(400).text();
    assert!(text.contains("<a href=\"#field-iban\">Dit is geen IBAN."), "{text}");
    assert!(text.contains("value=\"NL91ABNA0417164301\""), "it is kept: {text}");
    assert!(text.contains("value=\"Ada Lovelace\""), "it is kept: {text}");
    let added = submit(&acme, &link, &add(&token(&wrong), "NL91+ABNA+0417+1643+00")).await;
    assert!(added.assert_status(200).text().contains("4300, wacht op onze controle"));
    assert!(added.text().contains(&format!("href=\"{RETURN_URL}\"")));
    let profile = acme.request(Method::GET, "/api/v1/user/info");
    let profile = profile.header("user-identifier", IDENTIFIER).send().await.json();
    let account = json!([{"number": "NL91ABNA0417164300", "holder": "Ada Lovelace",
        "verified": false}]);
    assert_eq!(profile["enabledIbanAccounts"], account);
    let region: String =
        sqlx::query_scalar("select region from end_user").fetch_one(context.db()).await.unwrap();
    assert_eq!(region, "nl-nl", "mail is in the language of the page");
    // A token works once.
    let again = submit(&acme, &link, &add(&token(&wrong), "NL20INGB0001234567")).await;
    again.assert_status(400);
}

#[tokio::test]
async fn a_form_that_was_open_too_long_is_kept_through_the_sign_in() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    acme.user("ada").await;
    let link = link(&acme, json!({"locale": "en-GB"})).await;
    let entered = submit(&acme, &link, LOGIN).await;
    let typed = "iban=NL91ABNA0417164300&holder=Ada+Lovelace";
    let form = format!("action=account&token={}&{typed}", token(entered.assert_status(200)));
    context.clock().advance(TimeDelta::seconds(301));
    let late = submit(&acme, &link, &form).await;
    let text = late.assert_status(400).text();
    assert!(text.contains("was open too long") && text.contains("sign in again"), "{text}");
    let kept = "name=\"iban\" value=\"NL91ABNA0417164300\"";
    assert_eq!(text.matches(kept).count(), 3, "each way to sign in carries it: {text}");
    let wrong = format!("action=log-in&email=ada%40mail.example.com&password=wrong&{typed}");
    let wrong = submit(&acme, &link, &wrong).await;
    assert_eq!(wrong.assert_status(400).text().matches(kept).count(), 3, "{}", wrong.text());
    let again = submit(&acme, &link, &format!("{LOGIN}&{typed}")).await;
    let text = again.assert_status(200).text();
    assert!(text.contains(kept) && text.contains("value=\"Ada Lovelace\""), "{text}");
    let form = format!("action=account&token={}&{typed}", token(&again));
    let added = submit(&acme, &link, &form).await;
    assert!(added.assert_status(200).text().contains("4300, "), "{}", added.text());
}

#[tokio::test]
async fn no_form_is_shown_to_a_user_who_is_logged_out_meanwhile() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    acme.user("ada").await;
    let link = link(&acme, json!({"locale": "en-GB"})).await;
    let mut log_out = context.db().begin().await.unwrap();
    sqlx::query("update end_user set tokens_valid_from = $1")
        .bind(context.clock().now() + TimeDelta::minutes(1))
        .execute(&mut *log_out)
        .await
        .unwrap();
    let end = commit_once_awaited(context.db(), log_out);
    let (refused, ()) = futures::join!(submit(&acme, &link, LOGIN), end);
    let text = refused.assert_status(400).text();
    assert!(text.contains("password is wrong") && !text.contains("name=\"token\""), "{text}");
}

#[tokio::test]
async fn no_share_token_is_kept_of_a_sign_in_that_has_ended_meanwhile() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let user = admin_path(&acme.user("ada").await).await;
    let link = link(&acme, json!({"kycShareToken": "share-token-1"})).await;
    let kept = async || {
        let user = context.admin(Method::GET, &user, Value::Null).await.assert_status(200).json();
        user["personal"]["shareToken"].clone()
    };
    let mut log_out = context.db().begin().await.unwrap();
    sqlx::query("update end_user set tokens_valid_from = $1")
        .bind(context.clock().now() + TimeDelta::minutes(1))
        .execute(&mut *log_out)
        .await
        .unwrap();
    let end = commit_once_awaited(context.db(), log_out);
    let (refused, ()) = futures::join!(submit(&acme, &link, LOGIN), end);
    refused.assert_status(400);
    assert_eq!(kept().await, Value::Null);
    context.clock().advance(TimeDelta::minutes(2));
    submit(&acme, &link, LOGIN).await.assert_status(200);
    assert_eq!(kept().await, "share-token-1");
}

#[tokio::test]
async fn what_is_offered_is_what_the_partner_named() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    ada.post("/api/v1/user/verify/payprovider", &json!({"access_token": "A21AAF"})).await;
    let offered = |method: &str| json!({"payoutMethods": [method], "locale": "nl-NL"});
    let wallet = link(&acme, offered("walletpay")).await;
    let shown = submit(&acme, &wallet, LOGIN).await;
    let text = shown.assert_status(200).text();
    assert!(text.contains("Walletaccount …") && !text.contains("name=\"iban\""), "{text}");
    let bank = link(&acme, offered("bankTransfer")).await;
    let shown = submit(&acme, &bank, LOGIN).await;
    assert!(shown.text().contains("name=\"iban\"") && !shown.text().contains("Walletaccount"));
    let form = format!("action=account&token={}&iban=NL91ABNA0417164300&holder=A", token(&shown));
    submit(&acme, &wallet, &form).await.assert_status(400);
}

#[tokio::test]
async fn a_method_that_is_switched_off_is_not_offered() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    acme.user("ada").await;
    let named = json!({"payoutMethods": ["bankTransfer", "walletpay"]});
    let [open, named] = [link(&acme, json!({})).await, link(&acme, named).await];
    let shown = submit(&acme, &open, LOGIN).await;
    let form = format!("action=account&token={}&iban=NL91ABNA0417164300&holder=A", token(&shown));
    let method = "/admin/v1/payment-methods/bankTransfer";
    let switch = async |enabled: bool| {
        context.admin(Method::PATCH, method, json!({"enabled": enabled})).await.assert_status(200);
    };
    switch(false).await;
    for url in [&open, &named] {
        let closed = submit(&acme, url, LOGIN).await;
        let text = closed.assert_status(200).text();
        assert!(!text.contains("name=\"iban\""), "{text}");
    }
    submit(&acme, &open, &form).await.assert_status(400);
    switch(true).await;
    submit(&acme, &open, &form).await.assert_status(200);
}

#[tokio::test]
async fn a_card_of_the_user_is_verified_where_cards_are_offered() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let card = json!({"sessionIdentifier": "session-1", "cardHolderName": "Ada Lovelace",
        "currencyCode": "EUR"});
    let added = ada.post("/api/v2/user/accounts/cards/processor", &card).await;
    let card = added.assert_status(200).json()["accountIdentifier"].clone();
    let card = card.as_str().unwrap().replace('*', "%2A");
    let offered = json!({"payoutMethods": ["creditCard"], "locale": "nl-NL"});
    let cards = link(&acme, offered).await;
    let [shown, beside] = [submit(&acme, &cards, LOGIN).await, submit(&acme, &cards, LOGIN).await];
    assert!(shown.assert_status(200).text().contains("nog niet geverifieerd"), "{}", shown.text());
    let unknown = format!("action=card&token={}&card=nobody", token(&shown));
    let refused = submit(&acme, &cards, &unknown).await;
    refused.assert_status(400);
    let verify = format!("action=card&token={}&card={card}", token(&refused));
    let bank = link(&acme, json!({"payoutMethods": ["bankTransfer"]})).await;
    submit(&acme, &bank, &verify).await.assert_status(400);
    let verified = submit(&acme, &cards, &verify).await;
    let text = verified.assert_status(200).text();
    assert!(text.contains("De kaart is geverifieerd."), "{text}");
    assert!(text.contains("Kaart … ") && text.contains(", klaar voor gebruik"), "{text}");
    let again = format!("action=card&token={}&card={card}", token(&beside));
    let again = submit(&acme, &cards, &again).await;
    assert!(again.assert_status(400).text().contains("is al geverifieerd."), "{}", again.text());
}

#[tokio::test]
async fn the_locale_of_the_url_counts_before_the_account_and_that_before_the_browser() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    acme.user("ada").await;
    let german = async |method, link: &str, form: String| {
        let request = acme.anonymous(method, link).header("accept-language", "de");
        request.body(form).send().await
    };
    let speaks = |page: &Answer, language: &str| {
        let lang = format!("<html lang=\"{language}\">");
        assert!(page.text().contains(&lang), "{lang}: {}", page.text());
    };
    let open = link(&acme, json!({})).await;
    let asked = german(Method::GET, &open, String::new()).await;
    speaks(asked.assert_status(200), "de");
    let entered = german(Method::POST, &open, LOGIN.to_owned()).await;
    speaks(entered.assert_status(200), "nl");
    let account = format!("action=account&token={}&iban=NL1&holder=Ada", token(&entered));
    let refused = german(Method::POST, &open, account).await;
    speaks(refused.assert_status(400), "nl");
    let named = link(&acme, json!({"locale": "fr-FR"})).await;
    let entered = german(Method::POST, &named, LOGIN.to_owned()).await;
    speaks(entered.assert_status(200), "fr");
}

#[tokio::test]
async fn an_altered_url_shows_nothing_and_does_nothing() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    acme.user("ada").await;
    let genuine = link(&acme, json!({"identifier": IDENTIFIER})).await;
    let (signed, signature) = genuine.rsplit_once("&signature=").unwrap();
    let forged_back = signed.replace("shop.example", "evil.example");
    let (_, alone) = signed.split_once('&').unwrap();
    for altered in [
        signed.to_owned(),
        format!("{forged_back}&signature={signature}"),
        format!("/sell/onboarding?{alone}&signature={signature}"),
        format!("{signed}&locale=nl&signature={signature}"),
        format!("{genuine}&returnUrl=https%3A%2F%2Fevil.example"),
        format!("{signed}&signature={}", signature.replace(['1', '2', '3', '4', '5'], "0")),
        format!("{signed}&signature="),
        "/sell/onboarding".to_owned(),
    ] {
        let page = show(&acme, &altered).await;
        page.assert_status(404);
        assert!(!page.text().contains("example"), "{altered}: {}", page.text());
        submit(&acme, &altered, LOGIN).await.assert_status(404);
    }
    let request = acme.request(Method::GET, "/api/v1/user/info");
    let request = request.header("user-identifier", IDENTIFIER);
    request.send().await.assert_codes(&["ER705"]);
    submit(&acme, &genuine, LOGIN).await.assert_status(200);
    let suspended = json!({"status": "suspended"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", suspended).await.assert_status(200);
    show(&acme, &genuine).await.assert_status(404);
}

#[tokio::test]
async fn a_url_speaks_for_the_partner_that_signed_it() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    acme.user("ada").await;
    let link = link(&rival, json!({})).await;
    assert!(show(&acme, &link).await.assert_status(200).text().contains("Back to rival"));
    // Its users are its own.
    submit(&acme, &link, LOGIN).await.assert_status(400);
}

#[tokio::test]
async fn a_made_up_signature_is_tried_within_a_budget_and_partners_that_are_known_beyond_it() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let [named, other] = [link(&acme, json!({})).await, link(&acme, json!({"locale": "nl"})).await];
    let elsewhere = link(&rival, json!({"returnUrl": "https://rival.example/"})).await;
    let (signed, signature) = named.rsplit_once("&signature=").unwrap();
    let made_up = format!("{signed}&signature={}", "0".repeat(signature.len()));
    show(&acme, &made_up).await.assert_status(404);
    // Another edge has seen none of them: it tries every partner.
    let edge = context.edge_with(|_| {}).await;
    let there = acme.at(&edge);
    show(&there, &named).await.assert_status(200);

    let hour = context.clock().monotonic_ns() + 3_600_000_000_000;
    for core in [context.core(), edge.core()] {
        core.onboarding_signers.take(u32::MAX, "192.0.2.1".parse().unwrap(), hour).unwrap();
    }
    let refused = show(&acme, &made_up).await;
    assert!(refused.assert_status(503).header("retry-after").is_some());
    submit(&acme, &made_up, LOGIN).await.assert_status(503);
    for link in [&named, &other, &elsewhere] {
        show(&acme, link).await.assert_status(200);
    }
    show(&there, &other).await.assert_status(200);
    show(&there, &elsewhere).await.assert_status(503);
}
