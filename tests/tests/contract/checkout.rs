//! Checkouts: terms like an offer's, a page, and an identifier that travels sealed.

mod amounts;
mod fees;
mod purchase;
mod resume;

use chrono::TimeDelta;
use http::Method;
use rampart_core::users::identifiers;
use rampart_tests::answer::Answer;
use rampart_tests::buyer::WALLET as ADDRESS;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rampart_types::ClientId;
use serde_json::{Value, json};
use sqlx::Row;
use uuid::Uuid;

const CHECKOUT: &str = "/api/v2/buy/checkout";
const BASE: &str = "https://pay.example.com";
const IDENTIFIER: &str = "0123456789abcdefABCDEF0123456789wxyz";

/// The least that a checkout must say, changed by these members.
fn checkout(members: Value) -> Value {
    let mut checkout =
        json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard"});
    let object = checkout.as_object_mut().unwrap();
    object.extend(members.as_object().unwrap().clone());
    checkout
}

async fn made(partner: &Partner, members: Value) -> Value {
    partner.post(CHECKOUT, checkout(members)).await.assert_status(200).json()
}

/// Path and query of the page.
fn link(made: &Value) -> &str {
    made["checkoutUrl"].as_str().unwrap().strip_prefix(BASE).unwrap()
}

async fn page(partner: &Partner, link: &str) -> Answer {
    partner.anonymous(Method::GET, link).send().await
}

fn client(partner: &Partner) -> ClientId {
    partner.id.parse().unwrap()
}

#[tokio::test]
async fn a_checkout_answers_with_its_page_and_its_currencies() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let made = made(&acme, json!({"quoteCurrencyAmount": 100, "identifier": IDENTIFIER})).await;
    let mut members: Vec<_> = made.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["checkoutUrl", "identifier", "sourceCurrency", "targetCurrency"]);
    assert_eq!(made["identifier"], IDENTIFIER);
    let euro =
        json!({"code": "EUR", "ticker": "EUR", "name": "Euro", "caip19": "swift:0/iso4217:EUR"});
    assert_eq!(made["sourceCurrency"], euro);
    assert_eq!(made["targetCurrency"]["code"], "BTC");
    assert!(link(&made).starts_with("/checkout/"));
    assert!(!link(&made).contains(IDENTIFIER));
    page(&acme, link(&made)).await.assert_status(200);
}

#[tokio::test]
async fn all_of_a_checkout_is_stored_and_its_secrets_are_sealed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let before = context.clock().now();
    made(
        &acme,
        json!({
            "baseCurrencyAmount": 0.5, "returnUrl": "yourapp://done",
            "callbackUrl": "https://shop.example/hook", "partnerOrderIdentifier": "order 7",
            "identifier": IDENTIFIER, "walletAddress": ADDRESS, "walletAddressTag": null,
            "expireTime": 7200, "fixedAmount": 1, "fixedCurrency": true, "fixedPaymentMethod": 0,
            "showWalletAddress": false, "kycShareToken": "share-token-1",
            "attemptDirectConfirm": true, "fee": 1.5,
        }),
    )
    .await;
    let row = sqlx::query(
        "select *, base_amount::text as base, fee_percentage::text as fee \
         from checkout join offer using (client_id, offer_id) where client_id = $1",
    )
    .bind(acme.id.parse::<Uuid>().unwrap())
    .fetch_one(context.db())
    .await
    .unwrap();
    for (column, text) in [
        ("base", "0.5"),
        ("fee", "1.5"),
        ("return_url", "yourapp://done"),
        ("callback_url", "https://shop.example/hook"),
        ("partner_reference", "order 7"),
        ("wallet_address", ADDRESS),
    ] {
        assert_eq!(row.get::<&str, _>(column), text, "{column}");
    }
    assert!(row.get::<bool, _>("attempt_direct_confirm"));
    let expires: chrono::DateTime<chrono::Utc> = row.get("expires_at");
    assert!(expires >= before + TimeDelta::hours(2));
    for column in ["identifier_digest", "sealed_share_token"] {
        let kept: Vec<u8> = row.get(column);
        let text = String::from_utf8_lossy(&kept);
        assert!(!text.contains(IDENTIFIER) && !text.contains("share-token-1"), "{column}");
    }
}

#[tokio::test]
async fn a_sealed_identifier_opens_for_its_own_client_alone() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let made = made(&acme, json!({"identifier": IDENTIFIER})).await;
    let sealed = link(&made).split_once("?identifier=").unwrap().1;
    let opened = |partner: &Partner, text: &str| {
        identifiers::open(context.core(), client(partner), text).map(|id| id.as_str().to_owned())
    };
    assert_eq!(opened(&acme, sealed).as_deref(), Some(IDENTIFIER));
    assert_eq!(opened(&rival, sealed), None);
    for at in 0..sealed.len() {
        let other = if &sealed[at..=at] == "A" { "B" } else { "A" };
        let altered = [&sealed[..at], other, &sealed[at + 1..]].concat();
        assert_eq!(opened(&acme, &altered), None, "{at}");
    }
    for text in ["", "s1.", IDENTIFIER, &sealed[3..], &format!("{sealed}A"), &"A".repeat(5_000)] {
        assert_eq!(opened(&acme, text), None, "{text}");
    }
}

#[tokio::test]
async fn a_checkout_needs_no_signature_but_one_that_is_sent_must_fit() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let covered = json!({"returnUrl": "app:x", "fee": 1, "walletAddress": ADDRESS});
    made(&acme, covered).await;
    let good = json!({"returnUrl": "app:x", "signature": acme.sign("returnUrl=app%3Ax")});
    made(&acme, good).await;
    let wrong = json!({"returnUrl": "app:y", "signature": acme.sign("returnUrl=app%3Ax")});
    acme.post(CHECKOUT, checkout(wrong)).await.assert_status(400).assert_codes(&["ER336"]);
}

#[tokio::test]
async fn the_codes_of_a_checkout_have_their_cases() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let long = "x".repeat(4_097);
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({"baseCurrency": "", "fixedCurrency": true}), &["ER300"]),
        (json!({"baseCurrency": null}), &["ER337"]),
        (json!({"quoteCurrency": ""}), &["ER326"]),
        (json!({"quoteCurrency": null}), &["ER326"]),
        (json!({"quoteCurrency": 7}), &["ER303"]),
        (json!({"baseCurrencyAmount": "1"}), &["ER304"]),
        (json!({"quoteCurrencyAmount": "1"}), &["ER305"]),
        (json!({"paymentMethod": "", "fixedPaymentMethod": true}), &["ER306"]),
        (json!({"paymentMethod": null}), &["ER332"]),
        (json!({"returnUrl": " "}), &["ER308"]),
        (json!({"returnUrl": "shop"}), &["ER047"]),
        (json!({"callbackUrl": "http://a.b"}), &["ER310"]),
        (json!({"walletAddress": 7}), &["ER312"]),
        (json!({"walletAddress": "bc1q"}), &["ER359"]),
        (json!({"walletAddress": "0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe"}), &["ER359"]),
        (json!({"expireTime": 60}), &["ER329"]),
        (json!({"fixedAmount": true}), &["ER330"]),
        (json!({"baseCurrencyAmount": 1, "quoteCurrencyAmount": 1}), &["ER320"]),
        (json!({"signature": 7}), &["ER338"]),
        (json!({"signature": "x"}), &["ER336"]),
        (json!({"identifier": "short"}), &["ER102"]),
        (json!({"identifier": ""}), &["ER102"]),
        (json!({"identifier": 7}), &["ER102"]),
        (json!({"identifier": "0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c"}), &["ER102"]),
        (json!({"kycShareToken": 7}), &["ER366"]),
        (json!({"kycShareToken": long}), &["ER366"]),
        (json!({"kycShareToken": " "}), &["ER367"]),
        (json!({"attemptDirectConfirm": "yes"}), &["ER048"]),
        (json!({"targetCurrency": "eip155:1/slip44:1"}), &["ER402"]),
        (json!({"sourceCurrency": "swift:0/iso4217:XXX"}), &["ER403"]),
        (json!({"fee": "1", "kycShareToken": ""}), &["ER315", "ER367"]),
    ];
    for (members, codes) in cases {
        let answer = acme.post(CHECKOUT, checkout(members.clone())).await;
        assert_eq!(
            (answer.status(), answer.codes()),
            (400, codes.iter().map(|c| (*c).to_owned()).collect()),
            "{members}"
        );
    }
}

#[tokio::test]
async fn a_repeated_key_gets_the_same_checkout() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let send = async || {
        let request = acme.request(Method::POST, CHECKOUT).header("idempotency-key", "k1");
        request.json(&checkout(json!({"identifier": IDENTIFIER}))).send().await
    };
    let (first, again) = (send().await, send().await);
    assert_eq!(first.assert_status(200).text(), again.assert_status(200).text());
    let count: i64 =
        sqlx::query_scalar("select count(*) from checkout").fetch_one(context.db()).await.unwrap();
    assert_eq!(count, 1);
}

#[tokio::test]
async fn the_page_shows_the_terms_and_runs_nothing_but_our_script() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let made = made(
        &acme,
        json!({"quoteCurrencyAmount": 100, "walletAddress": ADDRESS, "returnUrl": "https://shop.example/back"}),
    )
    .await;
    let shown = page(&acme, link(&made)).await;
    shown.assert_status(200);
    for text in [
        "100.00 EUR",
        "BTC",
        "Credit card",
        ADDRESS,
        "This is a test.",
        "https://shop.example/back",
    ] {
        assert!(shown.text().contains(text), "{text}: {}", shown.text());
    }
    let policy = shown.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(policy.contains("script-src 'sha256-") && !shown.text().contains("<script src"));
    assert_eq!(shown.header("referrer-policy"), Some("no-referrer"));
}

#[tokio::test]
async fn the_page_hides_what_the_partner_hides_and_says_when_it_is_over() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let terms = json!({"walletAddress": ADDRESS, "showWalletAddress": 0,
        "quoteCurrencyAmount": 100});
    let made = made(&acme, terms).await;
    assert!(!page(&acme, link(&made)).await.text().contains(ADDRESS));
    let typed = [("amount", "100"), ("action", "quote")];
    let quoted = purchase::post(&acme, link(&made), &typed).await;
    let text = quoted.assert_status(200).text();
    assert!(text.contains("I agree to buy") && !text.contains("checked the wallet"), "{text}");
    assert!(!text.contains(ADDRESS), "{text}");
    context.clock().advance(TimeDelta::hours(2));
    let ended = page(&acme, link(&made)).await;
    assert!(ended.assert_status(200).text().contains("This checkout has ended"));
}

#[tokio::test]
async fn a_link_that_is_none_of_ours_shows_nothing() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let of_acme = made(&acme, json!({"identifier": IDENTIFIER})).await;
    let of_rival = made(&rival, json!({"identifier": IDENTIFIER})).await;
    let (path, sealed) = link(&of_acme).split_once("?identifier=").unwrap();
    let foreign = link(&of_rival).split_once("?identifier=").unwrap().1;
    let of_another = made(&acme, json!({"identifier": "z".repeat(36)})).await;
    let another = link(&of_another).split_once("?identifier=").unwrap().1;
    let of_nobody = made(&acme, json!({})).await;
    page(&acme, path).await.assert_status(200);
    let order =
        rampart_tests::order_fixture::OrderFixture::order(&context, &acme, None, None).await;
    let of_pay_page = order.pay_path.replace("/pay/", "/checkout/");
    for altered in [
        format!("{path}?identifier={foreign}"),
        format!("{path}?identifier={another}"),
        format!("{}?identifier={sealed}", link(&of_nobody)),
        format!("{path}?identifier={}", &sealed[1..]),
        format!("{path}A"),
        format!("{}?identifier={sealed}", &path[..path.len() - 2]),
        of_pay_page,
        "/checkout/".to_owned(),
    ] {
        let shown = page(&acme, &altered).await;
        assert!(shown.assert_status(404).text().contains("no such checkout"), "{altered}");
    }
}

#[tokio::test]
async fn the_tag_of_a_wallet_is_shown_beside_it() {
    let wallet = "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh";
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ripple = json!({"baseCurrency": "XRP", "quoteCurrencyAmount": 100});
    let open = made(&acme, ripple.clone()).await;
    let typed = [("amount", "100"), ("wallet", wallet), ("tag", "4711"), ("action", "quote")];
    let quoted = purchase::post(&acme, link(&open), &typed).await;
    let mut named = ripple;
    named["walletAddress"] = json!(wallet);
    named["walletAddressTag"] = json!("4711");
    let details = page(&acme, link(&made(&acme, named).await)).await;
    for shown in [&quoted, &details] {
        let text = shown.assert_status(200).text();
        assert!(text.contains("<dt>Tag or memo</dt><dd><code>4711</code></dd>"), "{text}");
    }
}

#[tokio::test]
async fn a_telephone_offers_digits_for_an_amount_and_changes_no_letter_of_a_wallet() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let open = made(&acme, json!({"baseCurrency": "XRP", "quoteCurrencyAmount": 100})).await;
    let shown = page(&acme, link(&open)).await;
    let text = shown.assert_status(200).text();
    for (name, attributes) in [
        ("amount", "inputmode=\"decimal\""),
        ("wallet", "autocapitalize=\"none\" spellcheck=\"false\""),
        ("tag", "autocapitalize=\"none\" spellcheck=\"false\""),
    ] {
        let mut inputs = text.split("<input ").filter_map(|rest| rest.split('>').next());
        let input = inputs.find(|input| input.contains(&format!("name=\"{name}\"")));
        let input = input.unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(input.contains(attributes), "{input}");
    }
}

#[tokio::test]
async fn who_must_be_checked_before_the_payment_is_told_so() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let gate = json!({"complianceGate": "before-payment"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", gate).await.assert_status(200);
    let token = acme.user("ada").await.get("/api/v1/user/login-token").await;
    let token = token.assert_status(200).json()["token"].clone();
    let made = made(&acme, json!({"quoteCurrencyAmount": 100, "loginToken": token})).await;
    let inputs = [("amount", "100"), ("wallet", ADDRESS)];
    let refused = purchase::buy(&acme, link(&made), &inputs).await;
    let text = refused.assert_status(400).text();
    // Ada's account is Dutch.
    assert!(text.contains("zodra je verificatie is voltooid"), "{text}");
    assert!(!text.contains("Dit bedrag kan niet worden gekocht"), "{text}");
}
