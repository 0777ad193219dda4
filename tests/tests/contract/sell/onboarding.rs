//! Sell onboarding URLs: what they say, who can make one, and what is told from one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rampart_core::users::identifiers;
use rampart_tests::answer::Answer;
use rampart_tests::keys::ed25519;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use reqwest::Url;
use ring::hmac;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::policies::{SIGNATURE, push, set_key, with_acme};

const ONBOARDING: &str = "/api/v2/sell/onboarding";
const VERIFY: &str = "/api/v2/sell/onboarding/verify";
const IDENTIFIER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";

async fn create(partner: &Partner, body: Value) -> Value {
    let answer = partner.post(ONBOARDING, body).await;
    answer.assert_status(200);
    answer.json()
}

/// The parameters of a URL as a body of the verification.
fn parameters(url: &str) -> Value {
    let url = Url::parse(url).unwrap();
    url.query_pairs().map(|(name, value)| (name.into_owned(), json!(value))).collect()
}

async fn verify(partner: &Partner, body: &Value) -> Answer {
    partner.post(VERIFY, body.clone()).await
}

/// Changes the client behind the edge's back, and lets the edge see it.
async fn change(context: &TestContext, partner: &Partner, statement: &str) {
    let bump = "update client set revision = (select max(revision) + 1 from client)";
    let bump = format!("{bump} where client_id = '{}'", partner.id);
    let told = "update change_counter set revision = revision + 1 where scope = 'clients'";
    for statement in [statement, &bump, told] {
        sqlx::query(AssertSqlSafe(statement)).execute(context.db()).await.unwrap();
    }
    context.core().refresh().await.unwrap();
}

#[tokio::test]
async fn the_url_has_what_is_set_in_order_and_signed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let body = json!({"returnUrl": "app:back?a=b%7Ec", "locale": "NL-be",
        "payoutMethods": ["walletpay", "bankTransfer", "walletpay"], "kycShareToken": "t/1",
        "identifier": null});
    let made = create(&acme, body).await;
    let signed = "kycShareToken=t%2F1&locale=NL-be&payoutMethod=walletpay%2CbankTransfer\
                  &returnUrl=app%3Aback%3Fa%3Db%257Ec";
    let key = hmac::Key::new(hmac::HMAC_SHA256, acme.signing_secret.as_bytes());
    let tag = hmac::sign(&key, signed.as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let url = format!("https://pay.example.com/sell/onboarding?{signed}&signature={hex}");
    let expected = json!({"onboardingUrl": url, "returnUrl": "app:back?a=b%7Ec", "partner": "acme",
        "identifier": null, "locale": "NL-be", "payoutMethods": ["walletpay", "bankTransfer"]});
    assert_eq!(made, expected);

    let least = create(&acme, json!({"returnUrl": "app:x"})).await;
    assert_eq!(least["payoutMethods"], Value::Null);
    let url = least["onboardingUrl"].as_str().unwrap();
    assert!(url.contains("?returnUrl=app%3Ax&signature="), "{url}");
}

#[tokio::test]
async fn the_identifier_is_sealed_for_its_client() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let made = create(&acme, json!({"returnUrl": "app:x", "identifier": IDENTIFIER})).await;
    assert_eq!(made["identifier"], IDENTIFIER);
    let url = made["onboardingUrl"].as_str().unwrap();
    assert!(!url.contains(IDENTIFIER), "{url}");
    let sealed = parameters(url)["identifier"].as_str().unwrap().to_owned();
    let open = |client: &Partner, text: &str| {
        let opened = identifiers::open(context.core(), client.id.parse().unwrap(), text);
        opened.map(|identifier| identifier.as_str().to_owned())
    };
    assert_eq!(open(&acme, &sealed).as_deref(), Some(IDENTIFIER));
    assert_eq!(open(&rival, &sealed), None);
    for at in 0..sealed.len() {
        let mut altered = sealed.clone().into_bytes();
        altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
        assert_eq!(open(&acme, str::from_utf8(&altered).unwrap()), None);
    }
    assert_eq!(open(&acme, IDENTIFIER), None);
}

#[tokio::test]
async fn a_url_is_genuine_as_it_was_made_and_no_other_way() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let body = json!({"returnUrl": "https://shop.example/?a=b&c=%C3%BC", "identifier": IDENTIFIER,
        "locale": "fr", "payoutMethods": ["creditCard"]});
    let made = create(&acme, body).await;
    let genuine = parameters(made["onboardingUrl"].as_str().unwrap());
    let answer = verify(&acme, &genuine).await;
    answer.assert_status(204);
    assert_eq!(answer.text(), "");
    let mut spelled = genuine.clone();
    spelled["kycShareToken"] = Value::Null;
    verify(&acme, &spelled).await.assert_status(204);

    verify(&rival, &genuine).await.assert_status(400).assert_codes(&["ER336"]);
    for name in ["identifier", "locale", "payoutMethod", "returnUrl", "signature"] {
        for value in [json!(null), json!(""), json!(7), json!("other")] {
            let mut altered = genuine.clone();
            altered[name] = value;
            verify(&acme, &altered).await.assert_status(400).assert_codes(&["ER336"]);
        }
    }
    for value in ["", "t"] {
        let mut more = genuine.clone();
        more["kycShareToken"] = json!(value);
        verify(&acme, &more).await.assert_codes(&["ER336"]);
    }
    verify(&acme, &json!({})).await.assert_codes(&["ER336"]);
}

#[tokio::test]
async fn every_wrong_member_has_its_code() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (member, value, code) in [
        ("returnUrl", json!(null), "ER308"),
        ("returnUrl", json!(" "), "ER308"),
        ("returnUrl", json!("back"), "ER047"),
        ("returnUrl", json!(7), "ER047"),
        ("returnUrl", json!("javascript:alert(1)"), "ER047"),
        ("identifier", json!(""), "ER053"),
        ("identifier", json!("short"), "ER102"),
        ("identifier", json!("a".repeat(256)), "ER102"),
        ("identifier", json!("123e4567-e89b-12d3-a456-426614174000"), "ER102"),
        ("identifier", json!(7), "ER102"),
        ("locale", json!("it"), "ER099"),
        ("locale", json!(""), "ER099"),
        ("locale", json!(7), "ER099"),
        ("payoutMethods", json!([]), "ER417"),
        ("payoutMethods", json!(["cash"]), "ER417"),
        ("payoutMethods", json!(["creditCard", null]), "ER417"),
        ("payoutMethods", json!("creditCard"), "ER417"),
        ("kycShareToken", json!(""), "ER367"),
        ("kycShareToken", json!(7), "ER367"),
    ] {
        let mut body = json!({"returnUrl": "app:x"});
        body[member] = value;
        acme.post(ONBOARDING, body).await.assert_status(400).assert_codes(&[code]);
    }
    let all = json!({"identifier": "", "locale": "it", "payoutMethods": [], "kycShareToken": ""});
    let codes = ["ER053", "ER099", "ER308", "ER367", "ER417"];
    acme.post(ONBOARDING, all).await.assert_codes(&codes);
}

#[tokio::test]
async fn a_share_token_makes_no_url_that_is_too_long_to_open() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let with = |return_url: &str, token: &str| {
        let token = token.repeat(2_048);
        json!({"returnUrl": return_url, "kycShareToken": token})
    };
    let long = format!("https://shop.example/?{}", "=".repeat(1_900));
    for body in [with("app:x", "t"), with("app:x", "%"), with(&long, "t")] {
        let made = create(&acme, body).await;
        let url = made["onboardingUrl"].as_str().unwrap();
        let target = url.strip_prefix("https://pay.example.com").unwrap();
        assert!(target.len() <= 8_192, "{}", target.len());
        acme.anonymous(Method::GET, target).send().await.assert_status(200);
    }
    for body in [with("app:x", "ü"), with(&long, "%")] {
        acme.post(ONBOARDING, body).await.assert_status(400).assert_codes(&["ER367"]);
    }
}

#[tokio::test]
async fn without_a_key_or_a_secret_there_is_no_url() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let bearer = format!("Bearer {}", acme.token().await);
    let post = async |path: &str, body: Value| {
        let request = acme.anonymous(Method::POST, path).header("authorization", &bearer);
        request.json(&body).send().await
    };
    let body = json!({"returnUrl": "app:x"});
    let url = post(ONBOARDING, body.clone()).await;
    let url = parameters(url.assert_status(200).json()["onboardingUrl"].as_str().unwrap());
    change(&context, &acme, "update api_key set revoked_at = now()").await;
    post(ONBOARDING, body.clone()).await.assert_status(400).assert_codes(&["ER340"]);
    post(VERIFY, url.clone()).await.assert_status(204);
    change(&context, &acme, "delete from client_secret where kind = 'signing'").await;
    post(ONBOARDING, body).await.assert_codes(&["ER331", "ER340"]);
    post(VERIFY, url).await.assert_status(400).assert_codes(&["ER331"]);
}

#[tokio::test]
async fn a_signature_policy_decides_what_is_genuine() {
    let (context, acme) = with_acme().await;
    set_key(&context).await;
    push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let (pair, _) = ed25519(7);
    let now = context.clock().unix_seconds();
    let text = format!("locale=nl&returnUrl=app%3Ax&t={now}&n=nonce-0001");
    let signature = STANDARD.encode(pair.sign(text.as_bytes()));
    let signature = format!("t={now},n=nonce-0001,s={signature}");
    let genuine = json!({"locale": "nl", "returnUrl": "app:x", "signature": signature});
    let mut altered = genuine.clone();
    altered["locale"] = json!("de");
    verify(&acme, &altered).await.assert_codes(&["ER336"]);
    verify(&acme, &genuine).await.assert_status(204);
    verify(&acme, &genuine).await.assert_codes(&["ER336"]);
    verify(&acme, &json!({"returnUrl": "app:x"})).await.assert_codes(&["ER339"]);
    verify(&acme, &json!({"signature": "x"})).await.assert_codes(&["ER338"]);
    // What was made here is genuine as before.
    let made = create(&acme, json!({"returnUrl": "app:x", "locale": "de"})).await;
    let made = parameters(made["onboardingUrl"].as_str().unwrap());
    verify(&acme, &made).await.assert_status(204);
    let mut altered = made.clone();
    altered["locale"] = json!("nl");
    verify(&acme, &altered).await.assert_status(400);
    let rival = context.partner("rival").await;
    verify(&rival, &made).await.assert_codes(&["ER336"]);
}
