//! Checks of wallets, which agree with the confirm's.

use http::Method;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{BTC, Shop, XRP, confirm_of, with_dollars};

const PATH: &str = "/api/v2/wallets/check";
const ETH: &str = "0x52908400098527886E0F7030069857D2E4169EE7";
const STELLAR: &str = "GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7";

#[tokio::test]
async fn a_wallet_is_valid_if_a_confirm_takes_it() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let truncated = &BTC[..BTC.len() - 1];
    for (pair, network, address, tag, valid) in [
        ("BTC-EUR", "bitcoin", BTC, Value::Null, true),
        ("BTC-EUR", "bitcoin", truncated, Value::Null, false),
        ("BTC-EUR", "bitcoin", "", Value::Null, false),
        ("BTC-EUR", "bitcoin", ETH, Value::Null, false),
        ("BTC-EUR", "bitcoin", "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", Value::Null, false),
        ("BTC-EUR", "bitcoin", BTC, json!("7"), false),
        ("BTC-EUR", "bitcoin", BTC, json!(7), false),
        ("ETH-EUR", "ethereum", ETH, Value::Null, true),
        ("USDC-EUR", "ethereum", ETH, Value::Null, true),
        ("ETH-EUR", "ethereum", "0x52908400098527886E0F7030069857D2E4169Ee7", Value::Null, false),
        ("XRP-EUR", "xrp", XRP, Value::Null, true),
        ("XRP-EUR", "xrp", XRP, json!(7), true),
        ("XRP-EUR", "xrp", XRP, json!("7"), true),
        ("XRP-EUR", "xrp", XRP, json!("seven"), false),
        ("XRP-EUR", "xrp", XRP, json!(-1), false),
        ("XLM-EUR", "stellar", STELLAR, json!("memo"), true),
        ("XLM-EUR", "stellar", STELLAR, json!("m".repeat(29)), false),
    ] {
        let mut body = json!({"currencyPair": pair, "walletAddress": address});
        if !tag.is_null() {
            body["destinationTag"] = tag.clone();
        }
        let checked = shop.partner().post(PATH, body).await.assert_status(200).json();
        let expected = json!({"valid": valid, "network": network, "ownershipProofRequired": valid});
        assert_eq!(checked, expected, "{pair} {address} {tag}");
        let quote = shop.quote(&context, |quote| quote.pair = pair.parse().unwrap());
        let mut confirm = confirm_of(&quote);
        confirm["walletAddress"] = address.into();
        confirm["destinationTag"] = tag.clone();
        let confirmed = shop.v1(&confirm).await;
        assert_eq!(
            confirmed.status() == 200,
            valid,
            "{pair} {address} {tag}: {}",
            confirmed.text()
        );
    }
}

#[tokio::test]
async fn a_proof_is_wanted_where_an_order_would_wait_for_one() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    for (kind, fiat, required) in [
        (None, "1000", false),
        (None, "1000.01", true),
        (Some("unhosted"), "1000.01", true),
        (Some("vasp"), "1000.01", false),
    ] {
        let mut body = json!({"currencyPair": "BTC-EUR", "walletAddress": BTC, "fiatAmount": fiat});
        let quote = shop.quote(&context, |quote| quote.fiat = fiat.parse().unwrap());
        let mut confirm = confirm_of(&quote);
        if let Some(kind) = kind {
            body["walletType"] = kind.into();
            confirm["walletType"] = kind.into();
        }
        let checked = shop.partner().post(PATH, body).await.assert_status(200).json();
        assert_eq!(checked["ownershipProofRequired"], required, "{kind:?} {fiat}");
        let order = shop.v1(&confirm).await.assert_status(200).json()["orderId"].clone();
        let order = shop.get(&format!("/api/v1/user/buy/orders/{order}")).await.json();
        let reasons = order["orderNotCompletedReasons"].as_array().unwrap();
        let waits = reasons.iter().any(|reason| reason["code"] == "021");
        assert_eq!(waits, required, "{kind:?} {fiat}: {order}");
    }
    let wrong = json!({"currencyPair": "BTC-EUR", "walletAddress": "nonsense", "fiatAmount": 5000});
    let checked = shop.partner().post(PATH, wrong).await.assert_status(200).json();
    assert_eq!(checked["ownershipProofRequired"], false, "there is no such wallet");
}

#[tokio::test]
async fn a_proof_is_wanted_by_the_worth_in_euros() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let price = json!({"price": 50_000});
    context.admin(Method::PUT, "/admin/v1/prices/BTC-EUR", price).await.assert_status(200);
    with_dollars(&[&context]).await;
    for (fiat, required) in [("1500", false), ("2000", false), ("2000.02", true)] {
        let body = json!({"currencyPair": "BTC-USD", "walletAddress": BTC, "fiatAmount": fiat});
        let checked = shop.partner().post(PATH, body).await.assert_status(200).json();
        assert_eq!(checked["ownershipProofRequired"], required, "{fiat}");
        let quote = shop.quote(&context, |quote| {
            quote.pair = "BTC-USD".parse().unwrap();
            quote.fiat = fiat.parse().unwrap();
        });
        let order = shop.v1(&confirm_of(&quote)).await.assert_status(200).json()["orderId"].clone();
        let order = shop.get(&format!("/api/v1/user/buy/orders/{order}")).await.json();
        let reasons = order["orderNotCompletedReasons"].as_array().unwrap();
        let waits = reasons.iter().any(|reason| reason["code"] == "021");
        assert_eq!(waits, required, "{fiat}: {order}");
    }
}

#[tokio::test]
async fn a_wrong_request_is_refused() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    for (body, codes) in [
        (json!({}), &["ER010", "ER014"][..]),
        (json!({"currencyPair": "BTC-EUR"}), &["ER014"]),
        (json!({"currencyPair": "BTC-EUR", "walletAddress": 7}), &["ER014"]),
        (json!({"currencyPair": "BTC-XYZ", "walletAddress": BTC}), &["ER010"]),
        (json!({"currencyPair": true, "walletAddress": BTC}), &["ER010"]),
        (
            json!({"currencyPair": "BTC-EUR", "walletAddress": BTC, "destinationTag": [1]}),
            &["ER015"],
        ),
        (json!({"currencyPair": "BTC-EUR", "walletAddress": BTC, "walletType": "x"}), &["ER048"]),
        (json!({"currencyPair": "BTC-EUR", "walletAddress": BTC, "fiatAmount": 0}), &["ER011"]),
    ] {
        shop.partner().post(PATH, body).await.assert_status(400).assert_codes(codes);
    }
    let disabled = json!({"buy": {"status": "disabled"}});
    context.admin(Method::PATCH, "/admin/v1/pairs/BTC-EUR", disabled).await.assert_status(200);
    let body = json!({"currencyPair": "BTC-EUR", "walletAddress": BTC});
    shop.partner().post(PATH, body).await.assert_codes(&["ER010"]);
}
