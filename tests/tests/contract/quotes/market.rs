//! Operators' settings that quotes follow: fees, statuses, limits, lifetimes, rates.

use http::Method;
use rampart_tests::guests::component;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{BUY, SELL, bought, buy, fees, number, worth};

async fn patch(context: &TestContext, path: &str, body: Value) {
    context.admin(Method::PATCH, path, body).await.assert_status(200);
}

#[tokio::test]
async fn the_fee_is_the_requests_or_the_clients() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let path = "/admin/v1/partners/acme";
    patch(&context, path, json!({"defaultFeePercentage": 2, "feeCapPercentage": 3})).await;
    let percentage = |quote: Value| number(&quote, "partnerFeePercentage").to_string();
    assert_eq!(percentage(bought(&acme, json!({})).await), "2");
    assert_eq!(percentage(bought(&acme, json!({"fee": 0})).await), "0");
    assert_eq!(percentage(bought(&acme, json!({"fee": "1.25"})).await), "1.25");
    assert_eq!(percentage(bought(&acme, json!({"fee": ""})).await), "2");
    let with_null = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100, "fee": null});
    assert_eq!(percentage(acme.post(BUY, with_null).await.json()), "2");
    for fee in [json!(3.1), json!(5.01), json!(-1), json!("x"), json!(true), json!("0.00001")] {
        buy(&acme, json!({"fee": fee})).await.assert_codes(&["ER050"]);
    }
}

#[tokio::test]
async fn a_closed_market_is_not_quoted() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let sale = json!({"currencyPair": "BTC-EUR", "cryptoAmount": 1});
    let pair = "/admin/v1/pairs/BTC-EUR";
    patch(
        &context,
        pair,
        json!({"buy": {"status": "maintenance"}, "sell": {"status": "maintenance"}}),
    )
    .await;
    buy(&acme, json!({})).await.assert_status(400).assert_codes(&["ER008"]);
    acme.post(SELL, sale.clone()).await.assert_codes(&["ER016"]);
    patch(&context, pair, json!({"buy": {"status": "disabled"}, "sell": {"status": "disabled"}}))
        .await;
    buy(&acme, json!({})).await.assert_codes(&["ER010"]);
    acme.post(SELL, sale.clone()).await.assert_codes(&["ER010"]);
    let enabled = json!({
        "buy": {"status": "enabled"}, "sell": {"status": "enabled"}, "priceMaxAgeSeconds": 60,
    });
    patch(&context, pair, enabled).await;
    context.clock().advance(chrono::TimeDelta::seconds(61));
    buy(&acme, json!({})).await.assert_codes(&["ER008"]);
    acme.post(SELL, sale).await.assert_codes(&["ER008"]);
    patch(&context, "/admin/v1/payment-methods/creditCard", json!({"enabled": false})).await;
    buy(&acme, json!({})).await.assert_codes(&["ER008", "ER055"]);
    buy(&acme, json!({"currencyPair": "ETH-EUR"})).await.assert_codes(&["ER055"]);
}

#[tokio::test]
async fn limits_are_told_and_fail_no_quote() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let reasons = |quote: Value| quote["quoteUnconfirmableReasons"].clone();
    let of = |amount| json!({"fiatAmount": amount});
    assert_eq!(reasons(bought(&acme, of(30)).await), json!([]));
    assert_eq!(reasons(bought(&acme, of(29)).await), json!(["currencyLimitExceeded"]));
    assert_eq!(reasons(bought(&acme, of(5001)).await), json!(["paymentMethodLimitExceeded"]));
    assert_eq!(
        reasons(bought(&acme, of(101_001)).await),
        json!(["currencyLimitExceeded", "paymentMethodLimitExceeded"])
    );
    let sale = json!({"currencyPair": "BTC-EUR", "cryptoAmount": 3});
    let sale = acme.post(SELL, sale).await.json();
    assert_eq!(reasons(sale), json!(["currencyLimitExceeded", "paymentMethodLimitExceeded"]));
}

#[tokio::test]
async fn a_quote_lives_as_long_as_its_pair_says() {
    let context = TestContext::with(|settings| settings.lifetimes.quote_seconds = 120).await;
    let acme = context.partner("acme").await;
    let life = |quote: &Value| {
        let text = quote["expiryDate"].as_str().unwrap();
        let expiry = chrono::DateTime::parse_from_rfc3339(text).unwrap();
        (expiry.to_utc() - context.clock().now()).num_seconds()
    };
    let default = bought(&acme, json!({})).await;
    assert!((110..=120).contains(&life(&default)), "{default}");
    patch(&context, "/admin/v1/pairs/BTC-EUR", json!({"quoteLifetimeSeconds": 1000})).await;
    let own = bought(&acme, json!({})).await;
    assert!((990..=1000).contains(&life(&own)), "{own}");
    patch(&context, "/admin/v1/pairs/BTC-EUR", json!({"spreadPercentage": 0.5})).await;
    let kept = bought(&acme, json!({})).await;
    assert!((990..=1000).contains(&life(&kept)), "{kept}");
    patch(&context, "/admin/v1/pairs/BTC-EUR", json!({"quoteLifetimeSeconds": null})).await;
    let default = bought(&acme, json!({})).await;
    assert!((110..=120).contains(&life(&default)), "{default}");
}

#[tokio::test]
async fn an_estimated_method_makes_an_estimated_quote() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let quote = bought(&acme, json!({"paymentMethod": "bankTransfer"})).await;
    assert_eq!(quote["isEstimatedQuote"], true);
}

#[tokio::test]
async fn quotes_have_a_rate_of_their_own() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let rates = json!({"rateLimits": {"quotes": "2/h burst 2"}});
    patch(&context, "/admin/v1/partners/acme", rates).await;
    for _ in 0..2 {
        bought(&acme, json!({})).await;
    }
    let refused = buy(&acme, json!({})).await;
    refused.assert_status(429).assert_codes(&["920"]);
    assert!(refused.header("retry-after").is_some());
    acme.get("/api/v1/prices").await.assert_status(200);
}

#[tokio::test]
async fn a_fee_policy_states_the_partners_fee_of_both_sides() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let path = "/admin/v1/partners/acme/policies/fee";
    let pushed = context.admin_bytes(Method::PUT, path, component("tiered-fee")).await;
    pushed.assert_status(200);
    let cases = [
        (json!({"fiatAmount": 100, "fee": 4}), "1.5", "1.5"),
        (json!({"fiatAmount": 600}), "6", "1"),
        // At the mid price it is below 500, where the rate is 1.5 %.
        (json!({"fiatAmount": null, "cryptoAmount": "0.00554"}), "7.9", "1.5"),
    ];
    for (changes, fee, percentage) in cases {
        let quote = bought(&acme, changes).await;
        assert_eq!(number(&quote, "partnerFee").to_string(), fee, "{quote}");
        assert_eq!(number(&quote, "partnerFeePercentage").to_string(), percentage, "{quote}");
        assert_eq!(number(&quote, "fiatAmount"), worth(&quote) + fees(&quote), "{quote}");
        assert!(number(&quote, "paymentMethodCost") > number(&quote, "partnerFee"), "{quote}");
    }
    let sale = acme.post(SELL, json!({"currencyPair": "BTC-EUR", "cryptoAmount": "0.01"})).await;
    sale.assert_status(200);
    assert_eq!(number(&sale.json(), "partnerFee").to_string(), "9");
}
