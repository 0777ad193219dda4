//! A sell quote becomes one sale.

use chrono::TimeDelta;
use futures::future::join_all;
use http::Method;
use rampart_tests::test_context::TestContext;
use rampart_types::{Chain, WalletAddress};
use serde_json::{Value, json};

use super::{CONFIRM, ORDERS, Seller};
use crate::orders::count;
use crate::verification::{admin_path, changed, disabled_beside, opened};

const IBAN: &str = "NL91ABNA0417164300";

fn account(verified: bool) -> Value {
    json!({"type": "bankTransfer", "identifier": IBAN, "name": "Ann", "verified": verified})
}

#[tokio::test]
async fn a_quote_becomes_a_sale_with_a_place_to_send_coins_to() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = acme.user("ann").await;
    opened(&context, &ann, account(true)).await;
    let ann = Seller { partner: acme, identifier: ann.identifier };
    let quote = ann.quote("BTC", "0.01").await;
    let body = json!({"quote": quote["quote"], "partnerOrderIdentifier": "sale-7",
        "accountIdentifier": IBAN});
    let answer = ann.confirm(&body).await;
    let sale = answer.assert_status(200).json();
    let order = sale["orderId"].as_i64().unwrap();
    assert!((1_000_000_000_000_000..1 << 53).contains(&order));
    assert_eq!(sale["destinationTag"], Value::Null);
    assert_eq!(sale["transactionFee"], quote["networkFeeCost"]);
    let shown = ann.read(&sale).await;
    for (name, value) in [
        ("id", &sale["orderId"]),
        ("walletAddress", &sale["walletAddress"]),
        ("orderExpireTime", &sale["orderExpireTime"]),
        ("status", &json!("pending")),
        ("currencyPair", &json!("BTC-EUR")),
        ("partnerOrderIdentifier", &body["partnerOrderIdentifier"]),
        ("accountIdentifier", &body["accountIdentifier"]),
        ("paymentMethod", &json!("bankTransfer")),
        ("receivedAmount", &Value::Null),
        ("feePercentage", &quote["partnerFeePercentage"]),
    ] {
        assert_eq!(&shown[name], value, "{name}");
    }
    for (amount, quoted) in [
        ("price", "fiatAmount"),
        ("value", "cryptoAmount"),
        ("partnerFee", "partnerFee"),
        ("providerFee", "providerFee"),
        ("paymentMethodFee", "paymentMethodCost"),
        ("networkFee", "networkFeeCost"),
        ("spreadFee", "spreadFee"),
    ] {
        assert_eq!(shown[amount]["amount"], quote[quoted], "{amount}");
    }
    let reasons = shown["orderNotCompletedReasons"].as_array().unwrap();
    let codes: Vec<_> = reasons.iter().map(|reason| &reason["code"]).collect();
    assert_eq!(codes, ["011", "012"], "what the user has not shown yet");
    assert_eq!(shown["sourceCurrency"]["code"], "BTC");
    assert_eq!(shown["targetCurrency"]["code"], "EUR");
    let told = "select count(*) from event where type = 'order.created'";
    assert_eq!(count(&context, told).await, 1);
    let listed = ann.get(ORDERS).await.json();
    assert_eq!(listed[0], shown);
    let moved = ann.happen(&sale, "deposit-received").await.assert_status(200).json();
    assert_eq!(moved["accountIdentifier"], IBAN);
}

#[tokio::test]
async fn a_sale_is_paid_out_to_an_account_that_its_user_may_use() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (ann, bob) = (acme.user("ann").await, acme.user("bob").await);
    let eve = rival.user("eve").await;
    let confirm = async |change: &str| {
        let seller = Seller { partner: acme.clone(), identifier: ann.identifier.clone() };
        let quote = seller.quote("BTC", "0.001").await["quote"].clone();
        seller.confirm(&json!({"quote": quote, "accountIdentifier": change})).await
    };
    for other in [&bob, &eve] {
        opened(&context, other, account(true)).await;
        confirm(IBAN).await.assert_status(400).assert_codes(&["ER396"]);
    }
    opened(&context, &ann, account(false)).await;
    let card = json!({"type": "creditCard", "identifier": "555555******4444", "name": "Ann",
        "verified": true});
    opened(&context, &ann, card).await;
    confirm(IBAN).await.assert_codes(&["ER139"]);
    confirm("555555******4444").await.assert_codes(&["ER138"]);
    changed(&context, &ann, IBAN, json!({"disabled": true})).await;
    confirm(IBAN).await.assert_codes(&["ER139", "ER397"]);
    confirm("").await.assert_codes(&["ER380"]);
    confirm(&"7".repeat(256)).await.assert_codes(&["ER380"]);
    changed(&context, &ann, IBAN, json!({"disabled": false, "verified": true})).await;
    // In the form in which people write it, too.
    confirm("nl91 abna 0417 1643 00").await.assert_status(200);
    assert_eq!(count(&context, "select count(*) from sell_order").await, 1);
}

#[tokio::test]
async fn an_account_that_is_disabled_beside_a_confirm_is_refused_as_disabled() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = acme.user("ann").await;
    opened(&context, &ann, account(true)).await;
    let ann = Seller { partner: acme, identifier: ann.identifier };
    let quote = ann.quote("BTC", "0.001").await["quote"].clone();
    let body = json!({"quote": quote, "accountIdentifier": IBAN});
    let refused = disabled_beside(&context, ann.confirm(&body)).await;
    refused.assert_status(400).assert_codes(&["ER397"]);
}

#[tokio::test]
async fn a_sell_quote_says_what_stands_in_the_users_way() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = acme.user("ann").await;
    let seller = Seller { partner: acme, identifier: ann.identifier.clone() };
    let small = seller.quote("BTC", "0.001").await;
    assert_eq!(small["quoteUnconfirmableReasons"], json!(["userRegistrationNotCompleted"]));
    assert_eq!(small["bankAccountDisabled"], json!(false));
    let verified = json!({"verification": {"email": "verified", "identity": "verified",
        "amld5": "verified", "privacyAgreement": "verified"}});
    let user = admin_path(&ann).await;
    context.admin(Method::PATCH, &user, verified).await.assert_status(200);
    opened(&context, &ann, account(true)).await;
    changed(&context, &ann, IBAN, json!({"disabled": true})).await;
    let large = seller.quote("BTC", "0.5").await;
    assert_eq!(large["quoteUnconfirmableReasons"], json!(["userLimitExceeded"]));
    assert_eq!(large["bankAccountDisabled"], json!(true));
    seller.confirm(&json!({"quote": large["quote"]})).await.assert_codes(&["ER011"]);
}

#[tokio::test]
async fn every_currency_has_an_address_of_its_chain() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    for (currency, amount, chain) in [
        ("BTC", "0.01", Chain::Bitcoin),
        ("ETH", "0.1", Chain::Ethereum),
        ("USDC", "100", Chain::Ethereum),
        ("LTC", "1", Chain::Litecoin),
        ("DOGE", "1000", Chain::Dogecoin),
        ("XRP", "100", Chain::Xrp),
        ("XLM", "1000", Chain::Stellar),
        ("ADA", "100", Chain::Cardano),
        ("SOL", "1", Chain::Solana),
    ] {
        let mut addresses = Vec::new();
        for _ in 0..2 {
            let quote = ann.quote(currency, amount).await;
            let sale = ann.confirm(&json!({"quote": quote["quote"]})).await;
            let sale = sale.assert_status(200).json();
            let address = sale["walletAddress"].as_str().unwrap();
            assert!(WalletAddress::parse(chain, address).is_ok(), "{currency} {address}");
            let tag = &sale["destinationTag"];
            match chain {
                Chain::Xrp => assert!(tag.is_u64(), "{tag}"),
                Chain::Stellar => assert_eq!(tag, &json!(sale["orderId"].to_string())),
                _ => assert_eq!(tag, &Value::Null),
            }
            addresses.push((sale["walletAddress"].clone(), tag.clone()));
        }
        assert_ne!(addresses[0], addresses[1], "{currency}: two sales must be told apart");
    }
}

#[tokio::test]
async fn a_quote_is_used_once_however_often_it_is_confirmed() {
    let context = TestContext::start().await;
    let second = context.second_edge().await;
    let acme = context.partner("acme").await;
    second.core().refresh().await.unwrap();
    let ann = Seller::of(&context, &acme, "ann").await;
    let elsewhere = ann.at(&second);
    let body = json!({"quote": ann.quote("XRP", "100").await["quote"]});
    let tries = (0..16).map(|n| if n % 2 == 0 { &ann } else { &elsewhere }.confirm(&body));
    let answers = join_all(tries).await;
    for answer in &answers {
        assert_eq!(answer.assert_status(200).text(), answers[0].text());
    }
    assert_eq!(count(&context, "select count(*) from sell_order").await, 1);
    assert_eq!(count(&context, "select count(*) from sell_order_transition").await, 1);
    assert_eq!(count(&context, "select count(*) from event").await, 1);
    let mut other = body.clone();
    other["partnerOrderIdentifier"] = json!("mine");
    ann.confirm(&other).await.assert_status(400).assert_codes(&["ER007"]);
    context.clock().advance(TimeDelta::seconds(301));
    assert_eq!(ann.confirm(&body).await.assert_status(200).text(), answers[0].text());
}

#[tokio::test]
async fn every_wrong_confirm_has_its_code() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (ann, eve) =
        (Seller::of(&context, &acme, "ann").await, Seller::of(&context, &rival, "eve").await);
    let bob = Seller::of(&context, &acme, "bob").await;
    let all = json!({"accountIdentifier": 7, "callbackUrl": "http://shop.example",
        "partnerOrderIdentifier": 7});
    let codes = ["ER045", "ER046", "ER048", "ER380"];
    ann.confirm(&all).await.assert_status(400).assert_codes(&codes);

    let quote = ann.quote("BTC", "0.01").await["quote"].clone();
    let body = json!({"quote": quote});
    ann.partner.post(CONFIRM, body.clone()).await.assert_codes(&["ER700"]);
    ann.confirm(&json!({"quote": "a.b.c.d.e"})).await.assert_codes(&["ER007"]);
    eve.confirm(&body).await.assert_codes(&["ER007"]);
    bob.confirm(&body).await.assert_codes(&["ER007"]);
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer", "fiatAmount": 100});
    let bought = acme.post("/api/v1/buy/quote", asked).await.json()["quote"].clone();
    ann.confirm(&json!({"quote": bought})).await.assert_codes(&["ER017"]);
    let little = ann.quote("BTC", "0.0004").await;
    assert_eq!(little["quoteUnconfirmableReasons"], json!(["currencyLimitExceeded"]));
    ann.confirm(&json!({"quote": little["quote"]})).await.assert_codes(&["ER011"]);

    sqlx::query("update end_user set disabled_at = now()").execute(context.db()).await.unwrap();
    ann.confirm(&body).await.assert_codes(&["ER124"]);
    sqlx::query("update end_user set disabled_at = null").execute(context.db()).await.unwrap();
    context.clock().advance(TimeDelta::seconds(301));
    ann.confirm(&body).await.assert_codes(&["ER006"]);
    assert_eq!(count(&context, "select count(*) from sell_order").await, 0);
}

#[tokio::test]
async fn a_market_that_closed_since_the_quote_is_said() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let body = json!({"quote": ann.quote("BTC", "0.01").await["quote"]});
    // From then on the price is older than a second.
    context.clock().advance(TimeDelta::seconds(2));
    let (pair, method) = ("/admin/v1/pairs/BTC-EUR", "/admin/v1/payment-methods/bankTransfer");
    for (path, change, back, code) in [
        (
            pair,
            json!({"sell": {"status": "maintenance"}}),
            json!({"sell": {"status": "enabled"}}),
            "ER016",
        ),
        (method, json!({"enabled": false}), json!({"enabled": true}), "ER055"),
        (method, json!({"limit": 10}), json!({"limit": 100_000}), "ER011"),
        (pair, json!({"priceMaxAgeSeconds": 1}), json!({"priceMaxAgeSeconds": 3600}), "ER008"),
    ] {
        context.admin(Method::PATCH, path, change).await.assert_status(200);
        ann.confirm(&body).await.assert_status(400).assert_codes(&[code]);
        context.admin(Method::PATCH, path, back).await.assert_status(200);
    }
    ann.confirm(&body).await.assert_status(200);
}

#[tokio::test]
async fn a_live_client_has_no_wallet_to_sell_to() {
    let context = TestContext::start().await;
    let live = context.partner_of(json!({"slug": "live", "name": "L", "mode": "live"})).await;
    let lou = Seller::of(&context, &live, "lou").await;
    let body = json!({"quote": lou.quote("BTC", "0.01").await["quote"]});
    lou.confirm(&body).await.assert_status(400).assert_codes(&["ER016"]);
    lou.happen(&json!({"orderId": 7}), "expire").await.assert_status(404).assert_codes(&["ER998"]);
}
