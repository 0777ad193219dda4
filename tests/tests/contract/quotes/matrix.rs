//! The comparison of an amount by payment method and pair.

use std::future::poll_fn;
use std::pin::pin;

use http::Method;
use rampart_tests::guests::component;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::buy;
use crate::orders::{Shop, confirm_of};

/// Members of a quote that a row has too.
const COMPARED: [&str; 17] = [
    "currencyPair",
    "paymentMethod",
    "fiatAmount",
    "cryptoAmount",
    "price",
    "paymentMethodCost",
    "networkFeeCost",
    "providerFee",
    "providerFeePercentage",
    "partnerFee",
    "partnerFeePercentage",
    "spreadFee",
    "singleCoinEstimate",
    "isEstimatedQuote",
    "quoteUnconfirmableReasons",
    "sourceCurrency",
    "targetCurrency",
];
/// Members of a row that are null without a price.
const PRICED: [&str; 9] = [
    "cryptoAmount",
    "price",
    "paymentMethodCost",
    "networkFeeCost",
    "providerFee",
    "partnerFee",
    "partnerFeePercentage",
    "spreadFee",
    "singleCoinEstimate",
];

fn path(query: &str) -> String {
    format!("/api/v2/quotes/matrix?{query}")
}

async fn rows(partner: &Partner, query: &str) -> Vec<Value> {
    let answer = partner.get(&path(query)).await.assert_status(200).json();
    answer.as_array().unwrap().clone()
}

fn row<'a>(rows: &'a [Value], pair: &str, method: &str) -> &'a Value {
    let found = rows.iter().find(|r| r["currencyPair"] == pair && r["paymentMethod"] == method);
    found.unwrap_or_else(|| panic!("no row of {pair} by {method}"))
}

async fn patch(context: &TestContext, path: &str, body: Value) {
    context.admin(Method::PATCH, path, body).await.assert_status(200);
}

/// Asks for the quote of every row that is available, and compares.
async fn quotes_agree(partner: &Partner, rows: &[Value], more: &Value) -> usize {
    let mut available = 0;
    for row in rows.iter().filter(|row| row["reasons"] == json!([])) {
        let mut changes = json!({"currencyPair": row["currencyPair"],
            "paymentMethod": row["paymentMethod"], "fiatAmount": row["fiatAmount"]});
        changes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let quote = buy(partner, changes).await.assert_status(200).json();
        for member in COMPARED {
            assert_eq!(row[member], quote[member], "{member} of {row}");
        }
        available += 1;
    }
    available
}

#[tokio::test]
async fn a_row_says_what_a_quote_would() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let rates = json!({"rateLimits": {"quotes": "100000/s burst 100000",
        "client": "100000/s burst 100000"}});
    patch(&context, "/admin/v1/partners/acme", rates).await;
    let answer = acme.get(&path("fiatAmount=250&currency=EUR")).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(answer.header("x-catalog-version").is_some());
    let all = rows(&acme, "fiatAmount=250&currency=EUR").await;
    let names: Vec<_> = all[0].as_object().unwrap().keys().cloned().collect();
    assert!(COMPARED.iter().all(|name| names.iter().any(|own| own == name)), "{names:?}");
    for own in ["quote", "expiryDate", "reasons"] {
        assert!(names.iter().any(|name| name == own), "{names:?}");
    }
    assert_eq!(names.len(), COMPARED.len() + 3, "{names:?}");
    let (pairs, methods) = (9, 11);
    assert_eq!(all.len(), pairs * methods);
    assert!(quotes_agree(&acme, &all, &json!({})).await > pairs, "most rows are available");
    let stated = "fiatAmount=99.99&currency=EUR&fee=1.25&countryCode=DE&promoCode=X&channel=web";
    let stated = rows(&acme, stated).await;
    assert_eq!(row(&stated, "BTC-EUR", "creditCard")["partnerFeePercentage"].to_string(), "1.25");
    let more = json!({"fee": 1.25, "countryCode": "DE", "promoCode": "X", "channel": "web"});
    assert!(quotes_agree(&acme, &stated[..methods], &more).await > 1);
}

#[tokio::test]
async fn other_requests_go_on_between_the_rows() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut comparing = pin!(rows(&acme, "fiatAmount=250&currency=EUR"));
    let mut turns = 0;
    let all = poll_fn(|cx| {
        let polled = comparing.as_mut().poll(cx);
        turns += usize::from(polled.is_pending());
        polled
    })
    .await;
    assert!(turns >= all.len(), "{turns} turns");
}

#[tokio::test]
async fn the_quote_of_a_row_is_confirmed() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let methods = "/admin/v1/payment-methods";
    patch(&context, &format!("{methods}/walletpay"), json!({"limit": 50})).await;
    let all = shop.get(&path("fiatAmount=100&currency=EUR&currencyPair=BTC-EUR")).await;
    let all = all.assert_status(200).json();
    let all = all.as_array().unwrap();
    let closed = row(all, "BTC-EUR", "walletpay");
    assert!(closed["quote"].is_null() && closed["expiryDate"].is_null(), "{closed}");
    let open = row(all, "BTC-EUR", "creditCard");
    assert!(open["expiryDate"].is_string(), "{open}");
    let confirmed = shop.v1(&confirm_of(open["quote"].as_str().unwrap())).await;
    let order = confirmed.assert_status(200).json()["orderId"].clone();
    let order = shop.get(&format!("/api/v2/buy/orders/{order}")).await.assert_status(200).json();
    assert_eq!(order["fiatAmount"]["amount"], open["fiatAmount"]);
    assert_eq!(order["cryptoAmount"]["amount"], open["cryptoAmount"]);
}

#[tokio::test]
async fn a_fee_policy_prices_rows_as_it_prices_quotes() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let policy = "/admin/v1/partners/acme/policies/fee";
    context.admin_bytes(Method::PUT, policy, component("tiered-fee")).await.assert_status(200);
    let ada = acme.user("ada").await;
    let path = path("fiatAmount=600&currency=EUR");
    let all = ada.get(&path).await.assert_status(200).json();
    let all = all.as_array().unwrap();
    let card = row(all, "BTC-EUR", "creditCard");
    assert_eq!(
        (card["partnerFee"].to_string(), card["reasons"].to_string()),
        ("6".into(), "[]".into())
    );
    let body = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 600});
    let quote = ada.post("/api/v1/buy/quote", &body).await.assert_status(200).json();
    for member in COMPARED {
        assert_eq!(card[member], quote[member], "{member}");
    }
}

#[tokio::test]
async fn reasons_say_why_not() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let query = "fiatAmount=100&currency=EUR";
    for (pair, change) in [
        ("BTC-EUR", json!({"buy": {"status": "maintenance"}})),
        ("ETH-EUR", json!({"buy": {"status": "disabled"}})),
        ("LTC-EUR", json!({"buy": {"min": 200}})),
        ("XRP-EUR", json!({"priceMaxAgeSeconds": 1})),
        ("ADA-EUR", json!({"networkFee": 100})),
    ] {
        patch(&context, &format!("/admin/v1/pairs/{pair}"), change).await;
    }
    let methods = "/admin/v1/payment-methods";
    patch(&context, &format!("{methods}/bankTransfer"), json!({"enabled": false})).await;
    patch(&context, &format!("{methods}/creditCard"), json!({"limit": 50})).await;
    context.clock().advance(chrono::TimeDelta::seconds(2));
    let all = rows(&acme, query).await;
    let limit = "paymentMethodLimitExceeded";
    for (pair, method, expected) in [
        ("BTC-EUR", "walletpay", json!(["buyingInMaintenance"])),
        ("ETH-EUR", "walletpay", json!(["buyingDisabled"])),
        ("LTC-EUR", "walletpay", json!(["currencyLimitExceeded"])),
        ("XRP-EUR", "walletpay", json!(["noPrice"])),
        ("ADA-EUR", "walletpay", json!(["amountUnpriceable"])),
        ("SOL-EUR", "walletpay", json!([])),
        ("SOL-EUR", "bankTransfer", json!(["paymentMethodUnavailable"])),
        ("SOL-EUR", "creditCard", json!([limit])),
        ("XRP-EUR", "creditCard", json!(["noPrice", limit])),
    ] {
        assert_eq!(row(&all, pair, method)["reasons"], expected, "{pair} {method}");
    }
    // What is closed for another reason has a price all the same.
    assert_eq!(row(&all, "BTC-EUR", "walletpay")["price"], 90000);
    for pair in ["XRP-EUR", "ADA-EUR"] {
        let row = row(&all, pair, "walletpay");
        assert!(PRICED.iter().all(|member| row[member].is_null()), "{row}");
    }
    let served = json!({"allowedCountries": ["NL"]});
    patch(&context, "/admin/v1/partners/acme", served).await;
    for (country, expected) in [("NL", json!([])), ("DE", json!(["countryNotServed"]))] {
        let all = rows(&acme, &format!("{query}&countryCode={country}")).await;
        assert_eq!(row(&all, "SOL-EUR", "walletpay")["reasons"], expected, "{country}");
    }
}

#[tokio::test]
async fn a_users_limit_is_a_reason_and_what_is_still_to_be_shown_a_hint() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let uuid = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let limit = json!({"limitOverrides": {"user_day_limit": 100}});
    patch(&context, &format!("/admin/v1/users/{uuid}"), limit).await;
    let of = async |amount: u32| {
        let all = ada.get(&path(&format!("fiatAmount={amount}&currency=EUR"))).await;
        let all = all.assert_status(200).json();
        row(all.as_array().unwrap(), "BTC-EUR", "walletpay").clone()
    };
    let (within, above) = (of(100).await, of(101).await);
    assert_eq!(within["reasons"], json!([]));
    assert_eq!(within["quoteUnconfirmableReasons"], json!(["userRegistrationNotCompleted"]));
    assert_eq!(above["reasons"], json!(["userLimitExceeded"]));
}

#[tokio::test]
async fn a_client_without_routes_is_offered_nothing() {
    let context = TestContext::start().await;
    let live = context.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    let query = "fiatAmount=100&currency=EUR&currencyPair=BTC-EUR";
    assert_eq!(row(&rows(&live, query).await, "BTC-EUR", "creditCard")["reasons"], json!([]));
    let none = json!({"routes": []});
    context.admin(Method::PUT, "/admin/v1/routes", none).await.assert_status(200);
    let all = rows(&live, query).await;
    let expected = json!(["buyingDisabled", "paymentMethodUnavailable"]);
    assert!(all.len() == 11 && all.iter().all(|row| row["reasons"] == expected), "{all:?}");
}

#[tokio::test]
async fn a_wrong_query_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (query, codes) in [
        ("", &["ER042", "ER109"][..]),
        ("fiatAmount=&currency=", &["ER042", "ER109"]),
        ("fiatAmount=100", &["ER109"]),
        ("currency=EUR", &["ER042"]),
        ("fiatAmount=100&currency=BTC", &["ER114"]),
        ("fiatAmount=100&currency=CHF", &["ER114"]),
        ("fiatAmount=100&currency=euro", &["ER114"]),
        ("fiatAmount=0&currency=EUR", &["ER011"]),
        ("fiatAmount=-1&currency=EUR", &["ER011"]),
        ("fiatAmount=x&currency=EUR", &["ER011"]),
        ("fiatAmount=1.001&currency=EUR", &["ER011"]),
        ("fiatAmount=1e30&currency=EUR", &["ER011"]),
        ("fiatAmount=100&currency=EUR&currencyPair=BTC-XYZ", &["ER010"]),
        ("fiatAmount=100&currency=GBP&currencyPair=BTC-EUR", &["ER010"]),
        ("fiatAmount=100&currency=EUR&fee=6", &["ER050"]),
        ("fiatAmount=100&currency=EUR&countryCode=Germany", &["ER061"]),
        ("fiatAmount=100&currency=EUR&channel=fax", &["ER048"]),
        ("fiatAmount=100&currency=EUR&promoCode=%00", &["ER048"]),
    ] {
        acme.get(&path(query)).await.assert_status(400).assert_codes(codes);
    }
    let one = rows(&acme, "fiatAmount=100&currency=EUR&currencyPair=LTC-EUR").await;
    assert!(one.len() == 11 && one.iter().all(|row| row["currencyPair"] == "LTC-EUR"));
    // A currency that is known, and that nothing is sold for.
    assert_eq!(rows(&acme, "fiatAmount=100&currency=GBP").await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_comparison_counts_by_its_rows() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let rates = json!({"rateLimits": {"quotes": "1/h burst 8"}});
    patch(&context, "/admin/v1/partners/acme", rates).await;
    let asks = async |query: &str, status: u16, left: u32| {
        let answer = acme.get(&path(query)).await;
        let limits = answer.assert_status(status).header("ratelimit").unwrap();
        assert!(limits.contains(&format!("\"quotes\";r={left};")), "{limits}");
    };
    // 11 rows are one quote, and 99 are five.
    asks("fiatAmount=100&currency=EUR&currencyPair=BTC-EUR", 200, 7).await;
    asks("fiatAmount=100&currency=EUR", 200, 2).await;
    // All or nothing: a refused one takes none.
    asks("fiatAmount=100&currency=EUR", 429, 2).await;
    asks("fiatAmount=100&currency=EUR&currencyPair=BTC-EUR", 200, 1).await;
    asks("", 400, 0).await;
    // One that would count as more than a full burst counts as that.
    let rates = json!({"rateLimits": {"quotes": "1/h burst 3"}});
    patch(&context, "/admin/v1/partners/acme", rates).await;
    context.clock().advance(chrono::TimeDelta::hours(9));
    asks("fiatAmount=100&currency=EUR", 200, 0).await;
    asks("fiatAmount=100&currency=EUR", 429, 0).await;
    context.clock().advance(chrono::TimeDelta::hours(3));
    asks("fiatAmount=100&currency=EUR", 200, 0).await;
}
