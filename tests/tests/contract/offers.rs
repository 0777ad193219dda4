//! Offers: terms that a partner stores and signs.

mod login;
mod policy;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::buyer::WALLET as ADDRESS;
use rampart_tests::going_live::CONNECTOR;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use sqlx::Row;
use uuid::Uuid;

const OFFER: &str = "/api/v2/buy/offer";

/// The least that an offer must say, changed by these members.
fn offer(members: Value) -> Value {
    let mut offer =
        json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard"});
    let object = offer.as_object_mut().unwrap();
    object.extend(members.as_object().unwrap().clone());
    offer
}

/// Hex of HMAC-SHA256 over a canonical text that the test writes by hand.
fn signature(partner: &Partner, canonical: &str) -> String {
    partner.sign(canonical)
}

async fn post(partner: &Partner, body: &'static str) -> Answer {
    partner.request(Method::POST, OFFER).body(Bytes::from_static(body.as_bytes())).send().await
}

#[tokio::test]
async fn an_offer_is_stored_as_signed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let canonical = format!(
        "callbackUrl=https%3A%2F%2Fshop.example%2Fhook%3Fa%3D1&fee=1.50\
         &returnUrl=yourapp%3A%2F%2Fdone&walletAddress={ADDRESS}"
    );
    // Not through `json!`: the fee's digits are signed as they are sent.
    let body = format!(
        r#"{{"baseCurrency":"BTC","quoteCurrency":"EUR","paymentMethod":"creditCard",
            "quoteCurrencyAmount":100.50,"baseCurrencyAmount":null,"returnUrl":"yourapp://done",
            "callbackUrl":"https://shop.example/hook?a=1","partnerOrderIdentifier":"order 7",
            "walletAddress":"{ADDRESS}","walletAddressTag":null,"expireTime":7200,"fee":1.50,
            "fixedAmount":1,"fixedCurrency":true,"fixedPaymentMethod":0,"showWalletAddress":false,
            "unknown":"ignored","signature":"{}"}}"#,
        signature(&acme, &canonical)
    );
    let before = context.clock().now();
    let answer = acme.request(Method::POST, OFFER).body(body).send().await;
    answer.assert_status(200);
    let made = answer.json();
    let mut names: Vec<_> = made.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(names, ["expiresAt", "offerUuid", "returnUrl"]);
    assert_eq!(made["returnUrl"], "yourapp://done");
    let expires: DateTime<Utc> = made["expiresAt"].as_str().unwrap().parse().unwrap();
    assert!(made["expiresAt"].as_str().unwrap().ends_with('Z'));
    let lifetime = expires - before;
    assert!(
        lifetime >= TimeDelta::hours(2) && lifetime < TimeDelta::hours(2) + TimeDelta::minutes(1)
    );

    let statement = "select *, base_amount::text as base, quote_amount::text as quote, \
                     fee_percentage::text as fee \
                     from offer where client_id = $1 and offer_id = $2";
    let row = sqlx::query(statement)
        .bind(acme.id.parse::<Uuid>().unwrap())
        .bind(made["offerUuid"].as_str().unwrap().parse::<Uuid>().unwrap())
        .fetch_one(context.db())
        .await
        .unwrap();
    for (column, text) in [
        ("base_currency", Some("BTC")),
        ("quote_currency", Some("EUR")),
        ("payment_method", Some("creditCard")),
        ("return_url", Some("yourapp://done")),
        ("callback_url", Some("https://shop.example/hook?a=1")),
        ("partner_reference", Some("order 7")),
        ("wallet_address", Some(ADDRESS)),
        ("wallet_address_tag", None),
    ] {
        assert_eq!(row.get::<Option<&str>, _>(column), text, "{column}");
    }
    for (column, text) in [("quote", Some("100.5")), ("base", None), ("fee", Some("1.5"))] {
        assert_eq!(row.get::<Option<&str>, _>(column), text, "{column}");
    }
    let flags = ["fixed_amount", "fixed_currency", "fixed_payment_method", "show_wallet_address"];
    assert_eq!(flags.map(|flag| row.get::<bool, _>(flag)), [true, true, false, false]);
}

#[tokio::test]
async fn an_offer_needs_no_more_than_currencies_and_a_method() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let before = context.clock().now();
    let made = acme.post(OFFER, offer(json!({}))).await.assert_status(200).json();
    assert_eq!(made["returnUrl"], Value::Null);
    let expires: DateTime<Utc> = made["expiresAt"].as_str().unwrap().parse().unwrap();
    assert!(expires - before >= TimeDelta::hours(1) && expires - before < TimeDelta::minutes(61));
    let shown: bool = sqlx::query_scalar("select show_wallet_address from offer")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert!(shown, "the wallet address is shown unless the partner hides it");
}

#[tokio::test]
async fn currencies_are_derived_from_both_caip19_ids() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ids = json!({
        "sourceCurrency": "swift:0/iso4217:EUR", "targetCurrency": "eip155:1/slip44:60",
        "paymentMethod": "creditCard",
    });
    acme.post(OFFER, ids).await.assert_status(200);
    let base: String = sqlx::query_scalar("select base_currency from offer")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(base, "ETH");
    // One of them alone derives nothing.
    let one = json!({"targetCurrency": "eip155:1/slip44:60", "paymentMethod": "creditCard"});
    acme.post(OFFER, one).await.assert_codes(&["ER302", "ER337"]);
}

/// Members beside the least that an offer must say, and the codes that they are refused with.
type Case = (Value, &'static [&'static str]);

fn texts(acme: &Partner) -> Vec<Case> {
    let long = "x".repeat(256);
    let signed = |canonical: &str| signature(acme, canonical);
    vec![
        (json!({"baseCurrency": "", "fixedCurrency": true}), &["ER300"]),
        (json!({"baseCurrency": null, "fixedCurrency": 1}), &["ER300"]),
        (json!({"baseCurrency": 1}), &["ER301"]),
        (json!({"quoteCurrency": " "}), &["ER302"]),
        (json!({"quoteCurrency": null}), &["ER302"]),
        (json!({"quoteCurrency": []}), &["ER303"]),
        (json!({"baseCurrencyAmount": "1"}), &["ER304"]),
        (json!({"baseCurrencyAmount": 0}), &["ER304"]),
        (json!({"baseCurrencyAmount": -1}), &["ER304"]),
        (json!({"baseCurrencyAmount": 0.000_000_001}), &["ER304"]),
        (json!({"quoteCurrencyAmount": "100"}), &["ER305"]),
        (json!({"quoteCurrencyAmount": 10.005}), &["ER305"]),
        (json!({"quoteCurrencyAmount": 1_000_000_000_000_001_i64}), &["ER305"]),
        (json!({"paymentMethod": "", "fixedPaymentMethod": true}), &["ER306"]),
        (json!({"paymentMethod": null, "fixedPaymentMethod": 1}), &["ER306", "ER332"]),
        (json!({"paymentMethod": {}}), &["ER307"]),
        (json!({"returnUrl": ""}), &["ER308"]),
        (json!({"returnUrl": 7}), &["ER309"]),
        (json!({"returnUrl": "shop", "signature": signed("returnUrl=shop")}), &["ER047"]),
        (json!({"callbackUrl": 7}), &["ER310"]),
        (json!({"callbackUrl": "http://a.b", "signature": "x"}), &["ER310"]),
        (json!({"callbackUrl": ""}), &["ER321"]),
        (json!({"partnerOrderIdentifier": 7}), &["ER311"]),
        (json!({"partnerOrderIdentifier": long}), &["ER311"]),
        (json!({"walletAddress": 7}), &["ER312"]),
        (json!({"walletAddress": "bc1q", "signature": "x"}), &["ER312"]),
        (
            json!({"baseCurrency": 1, "walletAddress": "bc1q", "signature": "x"}),
            &["ER301", "ER312"],
        ),
        (json!({"baseCurrency": 1, "walletAddress": ADDRESS, "signature": "x"}), &["ER301"]),
        (json!({"walletAddressTag": 7}), &["ER313"]),
        (json!({"walletAddressTag": "7"}), &["ER313"]),
        (json!({"baseCurrency": "XRP", "walletAddressTag": "x"}), &["ER313"]),
    ]
}

fn numbers_and_flags() -> Vec<Case> {
    vec![
        (json!({"expireTime": "3600"}), &["ER314"]),
        (json!({"expireTime": 3600.5}), &["ER314"]),
        (json!({"expireTime": true}), &["ER314"]),
        (json!({"expireTime": ""}), &["ER322"]),
        (json!({"expireTime": 3599}), &["ER329"]),
        (json!({"expireTime": 86401}), &["ER329"]),
        (json!({"expireTime": -3600}), &["ER329"]),
        (json!({"fee": "1"}), &["ER315"]),
        (json!({"fee": 5.01, "signature": "x"}), &["ER315"]),
        (json!({"fee": -1, "signature": "x"}), &["ER315"]),
        (json!({"fee": ""}), &["ER323"]),
        (json!({"fixedAmount": "true"}), &["ER316"]),
        (json!({"fixedCurrency": 2}), &["ER317"]),
        (json!({"fixedPaymentMethod": "1"}), &["ER318"]),
        (json!({"showWalletAddress": 1.5}), &["ER319"]),
        (json!({"baseCurrencyAmount": 1, "quoteCurrencyAmount": 1}), &["ER320"]),
    ]
}

fn meanings(acme: &Partner) -> Vec<Case> {
    let signed = |canonical: &str| signature(acme, canonical);
    vec![
        (json!({"baseCurrency": "btc"}), &["ER326"]),
        (json!({"baseCurrency": "EUR", "quoteCurrency": "BTC"}), &["ER326"]),
        (json!({"baseCurrency": "ADA"}), &["ER326"]),
        (json!({"targetCurrency": "eip155:1/slip44:60"}), &["ER326"]),
        (json!({"paymentMethod": "cash"}), &["ER327"]),
        (json!({"paymentMethod": "walletpay"}), &["ER327"]),
        (json!({"fixedAmount": true}), &["ER330"]),
        (
            json!({"fixedAmount": 1, "baseCurrencyAmount": 1, "quoteCurrencyAmount": 1}),
            &["ER320", "ER330"],
        ),
        (json!({"paymentMethod": null}), &["ER332"]),
        (json!({"returnUrl": "app:x", "signature": "x"}), &["ER336"]),
        (json!({"returnUrl": "app:x", "signature": signed("returnUrl=app:x")}), &["ER336"]),
        (json!({"signature": "x"}), &["ER336"]),
        (json!({"baseCurrency": null}), &["ER337"]),
        (json!({"returnUrl": "app:x", "signature": 7}), &["ER338"]),
        (json!({"returnUrl": "app:x"}), &["ER339"]),
        (json!({"callbackUrl": "https://a.b", "signature": null}), &["ER339"]),
        (json!({"fee": 0}), &["ER339"]),
        (json!({"walletAddress": ADDRESS, "signature": ""}), &["ER339"]),
        (json!({"targetCurrency": "swift:0/iso4217:EUR"}), &["ER402"]),
        (json!({"targetCurrency": "BTC"}), &["ER402"]),
        (json!({"sourceCurrency": "eip155:1/slip44:60"}), &["ER403"]),
        (json!({"sourceCurrency": "swift:0/iso4217:JPY"}), &["ER403"]),
    ]
}

#[tokio::test]
async fn every_code_of_an_offer_has_its_case() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let off = json!({"enabled": false});
    context
        .admin(Method::PATCH, "/admin/v1/payment-methods/walletpay", off)
        .await
        .assert_status(200);
    let off = json!({"buy": {"status": "disabled"}});
    context.admin(Method::PATCH, "/admin/v1/pairs/ADA-EUR", off).await.assert_status(200);
    let cases = texts(&acme).into_iter().chain(numbers_and_flags()).chain(meanings(&acme));
    for (members, codes) in cases {
        let answer = acme.post(OFFER, offer(members.clone())).await;
        answer.assert_status(400);
        assert_eq!(answer.codes(), codes, "{members}");
    }
    let stored: i64 =
        sqlx::query_scalar("select count(*) from offer").fetch_one(context.db()).await.unwrap();
    assert_eq!(stored, 0);
}

#[tokio::test]
async fn what_json_cannot_tell_apart_is_told_apart() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let whole = r#"{"baseCurrency":"BTC","quoteCurrency":"EUR","paymentMethod":"creditCard","expireTime":3600.0}"#;
    post(&acme, whole).await.assert_codes(&["ER314"]);
    let huge = r#"{"baseCurrency":"BTC","quoteCurrency":"EUR","paymentMethod":"creditCard","expireTime":99999999999999999999}"#;
    post(&acme, huge).await.assert_codes(&["ER329"]);
    post(&acme, "[]").await.assert_codes(&["ER048"]);
    post(&acme, "").await.assert_codes(&["ER048"]);
    post(&acme, r#"{"fee":1,"fee":2}"#).await.assert_codes(&["ER048"]);
}

#[tokio::test]
async fn all_violations_come_together() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let wrong = json!({
        "baseCurrency": 1, "paymentMethod": null, "baseCurrencyAmount": "1", "returnUrl": "",
        "walletAddress": [], "expireTime": "", "fixedAmount": "x", "signature": 1, "fee": 1,
    });
    let codes = ["ER301", "ER302", "ER304", "ER308", "ER312", "ER316", "ER322", "ER332", "ER338"];
    acme.post(OFFER, wrong).await.assert_codes(&codes);
}

#[tokio::test]
async fn a_method_that_the_partner_is_not_offered_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let live = context.partner_of(json!({"slug": "live", "name": "L", "mode": "live"})).await;
    for (method, codes) in [("creditCard", &[][..]), ("payByBank", &["ER327"][..])] {
        let wanted = offer(json!({ "paymentMethod": method }));
        acme.post(OFFER, wanted.clone()).await.assert_status(200);
        live.post(OFFER, wanted).await.assert_codes(codes);
    }
}

#[tokio::test]
async fn a_pair_that_the_partner_is_not_offered_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let live = context.partner_of(json!({"slug": "live", "name": "L", "mode": "live"})).await;
    let route = |leg: &str, of: &str, direction: &str| json!({"partner": null, leg: of, "direction": direction, "connector": CONNECTOR});
    let routes =
        json!({"routes": [route("method", "creditCard", "in"), route("asset", "ETH", "out")]});
    context.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(200);
    for path in [OFFER, "/api/v2/buy/checkout"] {
        for (asset, codes) in [("ETH", &[][..]), ("BTC", &["ER326"][..])] {
            let wanted = offer(json!({ "baseCurrency": asset }));
            acme.post(path, wanted.clone()).await.assert_status(200);
            live.post(path, wanted).await.assert_codes(codes);
        }
    }
}

#[tokio::test]
async fn a_partner_may_be_made_to_name_the_wallet() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let required = json!({"walletAddressRequired": true, "feeCapPercentage": 1});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", required).await.assert_status(200);
    acme.post(OFFER, offer(json!({}))).await.assert_codes(&["ER325"]);
    acme.post(OFFER, offer(json!({"walletAddress": ""}))).await.assert_codes(&["ER325"]);
    let canonical = format!("walletAddress={ADDRESS}");
    let named = json!({"walletAddress": ADDRESS, "signature": signature(&acme, &canonical)});
    acme.post(OFFER, offer(named)).await.assert_status(200);
    let above = json!({"walletAddress": ADDRESS, "fee": 1.01, "signature": "x"});
    acme.post(OFFER, offer(above)).await.assert_codes(&["ER315"]);
}

#[tokio::test]
async fn a_tag_needs_no_signature_but_is_covered_by_one() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let tag = json!({"baseCurrency": "XRP", "walletAddressTag": "12345"});
    acme.post(OFFER, offer(tag.clone())).await.assert_status(200);
    let mut signed = offer(tag);
    signed["signature"] = signature(&acme, "walletAddressTag=12345").into();
    acme.post(OFFER, signed.clone()).await.assert_status(200);
    signed["walletAddressTag"] = "12346".into();
    let answer = acme.post(OFFER, signed).await;
    answer.assert_codes(&["ER336"]);
    assert_eq!(answer.json()["errors"]["ER336"]["field"], "signature");
}

#[tokio::test]
async fn both_secrets_sign_during_a_rotation_and_none_is_er331() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let rotate = json!({"kind": "signing", "overlapSeconds": 60});
    let path = "/admin/v1/partners/acme/secrets/rotate";
    let rotated = context.admin(Method::POST, path, rotate).await;
    let secret = rotated.assert_status(200).json()["secret"].as_str().unwrap().to_owned();
    let mut renewed = acme.clone();
    renewed.signing_secret = secret;
    let signed_by = async |partner: &Partner| {
        let members = json!({"fee": 1, "signature": signature(partner, "fee=1")});
        acme.post(OFFER, offer(members)).await
    };
    signed_by(&acme).await.assert_status(200);
    signed_by(&renewed).await.assert_status(200);
    context.clock().advance(TimeDelta::seconds(61));
    signed_by(&acme).await.assert_codes(&["ER336"]);
    signed_by(&renewed).await.assert_status(200);

    let client: Uuid = acme.id.parse().unwrap();
    for statement in [
        "delete from client_secret where client_id = $1 and kind = 'signing'",
        "update client set revision = (select max(revision) + 1 from client) where client_id = $1",
    ] {
        sqlx::query(statement).bind(client).execute(context.db()).await.unwrap();
    }
    sqlx::query("update change_counter set revision = revision + 1 where scope = 'clients'")
        .execute(context.db())
        .await
        .unwrap();
    context.core().refresh().await.unwrap();
    signed_by(&renewed).await.assert_codes(&["ER331"]);
    acme.post(OFFER, offer(json!({}))).await.assert_status(200);
}

#[tokio::test]
async fn another_partners_signature_is_wrong() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let members =
        json!({"returnUrl": "app:x", "signature": signature(&rival, "returnUrl=app%3Ax")});
    acme.post(OFFER, offer(members.clone())).await.assert_codes(&["ER336"]);
    rival.post(OFFER, offer(members)).await.assert_status(200);
}

#[tokio::test]
async fn a_repeated_key_gets_the_same_offer() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let send = async |members: Value| {
        let request = acme.request(Method::POST, OFFER).header("idempotency-key", "k1");
        request.json(&offer(members)).send().await
    };
    let first = send(json!({})).await;
    let again = send(json!({})).await;
    assert_eq!(first.assert_status(200).text(), again.assert_status(200).text());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    send(json!({"fixedCurrency": true})).await.assert_status(422);
}
