//! Signed receipts of completed orders, and the keys that sign them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use futures::future::join_all;
use http::Method;
use rampart_tests::test_context::TestContext;
use ring::signature::{ED25519, UnparsedPublicKey};
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::{BTC, Shop, count, happen};

const KEYS: &str = "/.well-known/jwks.json";
const ROTATE: &str = "/admin/v1/receipt-keys/rotate";
const TRANSACTION: &str = "f4184fc596403b9d638783cf57adfe4c75c605f6356fbc91338530e9831e9e16";

fn path(order: impl std::fmt::Display) -> String {
    format!("/api/v2/buy/orders/{order}/receipt")
}

/// An order of the shop that is completed.
async fn completed(context: &TestContext, shop: &Shop) -> i64 {
    let order = shop.order(context, |body| body["partnerOrderIdentifier"] = json!("ref-1")).await;
    for event in [
        json!({"event": "payment-received"}),
        json!({"event": "coins-sent", "transactionId": TRANSACTION}),
        json!({"event": "confirmed-on-chain"}),
    ] {
        happen(context, order, event).await.assert_status(200);
    }
    order
}

async fn receipt(shop: &Shop, order: i64) -> Value {
    shop.get(&path(order)).await.assert_status(200).json()
}

/// The published keys, as anybody reads them.
async fn keys(shop: &Shop) -> Vec<Value> {
    let answer = shop.partner().anonymous(Method::GET, KEYS).send().await;
    assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
    answer.assert_status(200).json()["keys"].as_array().unwrap().clone()
}

fn decoded(part: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(part).unwrap()
}

/// The payload of a JWS, if one of these keys has signed it.
fn verified(jws: &str, keys: &[Value]) -> Option<Value> {
    let (signed, signature) = jws.rsplit_once('.')?;
    let (header, payload) = signed.split_once('.')?;
    let header: Value = serde_json::from_slice(&decoded(header)).ok()?;
    assert_eq!((&header["alg"], &header["typ"]), (&json!("EdDSA"), &json!("receipt+jwt")));
    let key = keys.iter().find(|key| key["kid"] == header["kid"])?;
    assert_eq!((&key["kty"], &key["crv"]), (&json!("OKP"), &json!("Ed25519")));
    let key = UnparsedPublicKey::new(&ED25519, decoded(key["x"].as_str().unwrap()));
    key.verify(signed.as_bytes(), &decoded(signature)).ok()?;
    serde_json::from_slice(&decoded(payload)).ok()
}

#[tokio::test]
async fn a_receipt_has_the_facts_and_anybody_can_verify_it() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = completed(&context, &shop).await;
    let signed = receipt(&shop, order).await;
    let receipt = &signed["receipt"];
    let payload = verified(signed["jws"].as_str().unwrap(), &keys(&shop).await);
    assert_eq!(payload.as_ref(), Some(receipt));
    let read = shop.get(&format!("/api/v2/buy/orders/{order}")).await.json();
    for member in ["currencyPair", "paymentMethod", "fiatAmount", "cryptoAmount", "fees"] {
        assert_eq!(receipt[member], read[member], "{member}");
    }
    for (member, expected) in [
        ("iss", json!("https://pay.example.com")),
        ("orderId", json!(order)),
        ("partner", json!("acme")),
        ("partnerOrderIdentifier", json!("ref-1")),
        ("price", json!({"amount": 90000, "currencyCode": "EUR"})),
        ("walletAddress", json!(BTC)),
        ("destinationTag", json!(null)),
        ("transactionId", json!(TRANSACTION)),
        ("orderedAt", read["date"].clone()),
    ] {
        assert_eq!(receipt[member], expected, "{member}");
    }
    let time =
        |name: &str| chrono::DateTime::parse_from_rfc3339(receipt[name].as_str().unwrap()).unwrap();
    assert!(time("orderedAt") <= time("paidAt") && time("paidAt") <= time("completedAt"));
    assert_eq!(receipt["iat"], time("completedAt").timestamp());
    let amount = |value: &Value| -> Decimal {
        value["amount"].as_number().unwrap().as_str().parse().unwrap()
    };
    let fees = receipt["fees"].as_object().unwrap();
    let fees: Decimal = fees.values().filter(|fee| fee.is_object()).map(amount).sum();
    let worth = amount(&receipt["cryptoAmount"]) * amount(&receipt["price"]);
    assert_eq!(amount(&receipt["fiatAmount"]), worth.round_dp(2) + fees);
    // The same facts, signed by the same key.
    assert_eq!(shop.get(&path("ref-1")).await.json(), signed);
}

/// Records a payment by hand that is the partner's.
async fn record(context: &TestContext, mut payment: Value) -> Value {
    for (name, value) in [("partner", "acme"), ("connector", "manual"), ("reason", "seen")] {
        payment[name] = json!(value);
    }
    let recorded = context.admin(Method::POST, "/admin/v1/payments", payment).await;
    recorded.assert_status(201).json()
}

#[tokio::test]
async fn reports_after_its_completion_change_no_receipt() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = completed(&context, &shop).await;
    let before = receipt(&shop, order).await;
    let told = [("received", json!(100), "EUR"), ("payout-confirmed", json!(0.001), "BTC")];
    for (kind, amount, currency) in told {
        let payment = json!({"kind": kind, "amount": amount, "currency": currency, "orderId": order,
            "providerReference": TRANSACTION, "occurredAt": "2020-01-01T00:00:00Z"});
        record(&context, payment).await;
    }
    assert_eq!(receipt(&shop, order).await, before);
}

#[tokio::test]
async fn a_receipt_tells_the_time_of_a_payment_that_was_matched() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = shop.order(&context, |_| ()).await;
    let payment = json!({"kind": "received", "amount": 90, "currency": "EUR",
        "providerReference": "transfer-1"});
    let payment = record(&context, payment).await;
    let path = format!("/admin/v1/payments/{}/match", payment["id"].as_str().unwrap());
    context.admin(Method::POST, &path, json!({ "orderId": order })).await.assert_status(200);
    // It is too little: the order waits for its release.
    for event in [
        json!({"event": "release"}),
        json!({"event": "coins-sent", "transactionId": TRANSACTION}),
        json!({"event": "confirmed-on-chain"}),
    ] {
        happen(&context, order, event).await.assert_status(200);
    }
    let signed = receipt(&shop, order).await;
    let receipt = &signed["receipt"];
    assert_eq!(receipt["fiatAmount"]["amount"], json!(90));
    assert!(receipt["paidAt"].is_string(), "{receipt}");
}

#[tokio::test]
async fn an_altered_receipt_is_nobodys() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = completed(&context, &shop).await;
    let signed = receipt(&shop, order).await;
    let keys = keys(&shop).await;
    let jws = signed["jws"].as_str().unwrap();
    let mut altered = signed["receipt"].clone();
    altered["cryptoAmount"]["amount"] = json!(1);
    let [header, _, signature] = jws.split('.').collect::<Vec<_>>().try_into().unwrap();
    let payload = URL_SAFE_NO_PAD.encode(altered.to_string());
    assert_eq!(verified(&format!("{header}.{payload}.{signature}"), &keys), None);
    assert!(verified(jws, &keys).is_some());
}

#[tokio::test]
async fn an_order_that_is_not_completed_has_none() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = shop.order(&context, |_| ()).await;
    for event in ["payment-received", "hold", "refund"] {
        shop.get(&path(order)).await.assert_status(409).assert_codes(&["ER999"]);
        happen(&context, order, json!({"event": event})).await.assert_status(200);
    }
    let answer = shop.get(&path(order)).await;
    answer.assert_status(409).assert_codes(&["ER999"]);
    assert!(answer.text().contains("refunded"), "{}", answer.text());
    shop.get(&path("")).await.assert_codes(&["ER033"]);
    shop.get(&path("%00")).await.assert_codes(&["ER034"]);
    shop.get(&path(7)).await.assert_status(404).assert_codes(&["ER035"]);
    shop.partner().get(&path(order)).await.assert_codes(&["ER700"]);
    assert_eq!(count(&context, "select count(*) from receipt_key").await, 0);
}

#[tokio::test]
async fn a_key_is_published_before_it_signs_and_for_good() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = completed(&context, &shop).await;
    let before = receipt(&shop, order).await;
    let rotated = context.admin(Method::POST, ROTATE, Value::Null).await;
    let listed = rotated.assert_status(200).json();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!((&listed[0]["signs"], &listed[1]["signs"]), (&json!(false), &json!(true)));
    assert_eq!(keys(&shop).await.len(), 2);
    assert_eq!(receipt(&shop, order).await, before, "the new key is not known to all yet");
    context.clock().advance(TimeDelta::seconds(301));
    let after = receipt(&shop, order).await;
    assert_eq!((&after["keyId"], &after["receipt"]), (&listed[0]["keyId"], &before["receipt"]));
    let keys = keys(&shop).await;
    for signed in [&before, &after] {
        let payload = verified(signed["jws"].as_str().unwrap(), &keys);
        assert_eq!(payload.as_ref(), Some(&signed["receipt"]));
    }
    let path = "/admin/v1/receipt-keys";
    let listed = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    assert_eq!((&listed[0]["signs"], &listed[1]["signs"]), (&json!(true), &json!(false)));
    let audited = "select count(*) from audit where action = 'receipt-keys.rotate'";
    assert_eq!(count(&context, audited).await, 1);
    // A private key stands nowhere but sealed.
    let sealed: Vec<Vec<u8>> =
        sqlx::query_scalar("select sealed from receipt_key").fetch_all(context.db()).await.unwrap();
    assert!(sealed.iter().all(|sealed| sealed.starts_with(b"RK\x01") && sealed.len() > 60));
}

#[tokio::test]
async fn a_key_that_no_master_key_opens_is_listed_and_replaced() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = completed(&context, &shop).await;
    receipt(&shop, order).await;
    let altered = "update receipt_key set sealed = sealed || 'x'::bytea";
    sqlx::query(altered).execute(context.db()).await.unwrap();
    shop.get(&path(order)).await.assert_status(500);
    let list = context.admin(Method::GET, "/admin/v1/receipt-keys", Value::Null).await;
    assert_eq!(list.assert_status(200).json()[0]["signs"], true);
    context.admin(Method::POST, ROTATE, Value::Null).await.assert_status(200);
    context.clock().advance(TimeDelta::seconds(301));
    let signed = receipt(&shop, order).await;
    assert!(verified(signed["jws"].as_str().unwrap(), &keys(&shop).await).is_some());
}

#[tokio::test]
async fn of_many_edges_one_makes_the_first_key() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = completed(&context, &shop).await;
    let other = context.second_edge().await;
    let there = shop.at(&other);
    let path = path(order);
    let asked = (0..16).map(|at| if at % 2 == 0 { &shop } else { &there }.get(&path));
    let answers = join_all(asked).await;
    for answer in &answers {
        assert_eq!(answer.assert_status(200).json(), answers[0].json());
    }
    assert_eq!(count(&context, "select count(*) from receipt_key").await, 1);
    // Of rotations at the same time each that makes a key makes another one.
    let rotated = (0..8).map(|_| context.admin(Method::POST, ROTATE, Value::Null));
    for answer in join_all(rotated).await {
        answer.assert_status(200);
    }
    let made = count(&context, "select count(*) from receipt_key").await;
    assert!((2..=9).contains(&made), "{made}");
    assert_eq!(count(&context, "select max(generation)::bigint from receipt_key").await, made);
    assert_eq!(receipt(&there, order).await, answers[0].json());
}

#[tokio::test]
async fn a_first_look_at_the_keys_finds_one() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let published = keys(&shop).await;
    assert_eq!(published.len(), 1);
    let order = completed(&context, &shop).await;
    assert_eq!(receipt(&shop, order).await["keyId"], published[0]["kid"]);
}
