//! Quotes of both sides: their members, their sums, and what they are refused with.

mod confirmed;
mod counted;
mod market;
mod matrix;

use rampart_tests::answer::Answer;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rust_decimal::Decimal;
use serde_json::{Value, json};

const BUY: &str = "/api/v1/buy/quote";
const SELL: &str = "/api/v1/sell/quote";

/// A request that is granted, with these members changed; null takes one away.
fn request(changes: &Value) -> Value {
    let mut body =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        } else {
            body[name] = value.clone();
        }
    }
    body
}

async fn buy(partner: &Partner, changes: Value) -> Answer {
    partner.post(BUY, request(&changes)).await
}

async fn bought(partner: &Partner, changes: Value) -> Value {
    let answer = buy(partner, changes).await;
    answer.assert_status(200);
    answer.json()
}

/// A member as the exact number that was sent.
fn number(quote: &Value, member: &str) -> Decimal {
    let number = quote[member].as_number().unwrap_or_else(|| panic!("{member}: {quote}"));
    number.as_str().parse().unwrap_or_else(|_| panic!("{member}: {number}"))
}

fn fees(quote: &Value) -> Decimal {
    let members = ["partnerFee", "providerFee", "paymentMethodCost", "networkFeeCost", "spreadFee"];
    members.iter().map(|member| number(quote, member)).sum()
}

fn worth(quote: &Value) -> Decimal {
    let exact = number(quote, "cryptoAmount") * number(quote, "price");
    exact.round_dp_with_strategy(2, rust_decimal::RoundingStrategy::MidpointAwayFromZero)
}

fn names(value: &Value) -> Vec<&str> {
    let mut names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_buy_quote_has_these_members() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let answer = buy(&acme, json!({"fee": 1})).await;
    answer.assert_status(200);
    assert!(answer.header("x-catalog-version").is_some());
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let mut quote = answer.json();
    let token = quote["quote"].take();
    let expiry = quote["expiryDate"].take();
    assert_eq!(
        quote,
        json!({
            "quote": null,
            "currencyPair": "BTC-EUR",
            "fiatAmount": 100,
            "cryptoAmount": serde_json::from_str::<Value>("0.00103644").unwrap(),
            "price": 90000,
            "paymentMethod": "creditCard",
            "paymentMethodCost": serde_json::from_str::<Value>("2.75").unwrap(),
            "networkFeeCost": serde_json::from_str::<Value>("1.5").unwrap(),
            "providerFee": 1,
            "providerFeePercentage": 1,
            "partnerFee": 1,
            "partnerFeePercentage": 1,
            "spreadFee": serde_json::from_str::<Value>("0.47").unwrap(),
            "singleCoinEstimate": serde_json::from_str::<Value>("96484.12").unwrap(),
            "isEstimatedQuote": false,
            "expiryDate": null,
            "quoteUnconfirmableReasons": [],
            "sourceCurrency":
                {"code": "EUR", "ticker": "EUR", "name": "Euro", "caip19": "swift:0/iso4217:EUR"},
            "targetCurrency": {
                "code": "BTC",
                "ticker": "BTC",
                "name": "Bitcoin",
                "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0",
            },
        })
    );
    let token = token.as_str().unwrap();
    assert_eq!(token.split('.').count(), 5);
    assert!(
        token.starts_with(
            "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIiwidHlwIjoicXVvdGUrandlIiwia2lkIjoi"
        )
    );
    assert!(expiry.as_str().unwrap().ends_with('Z'), "{expiry}");
}

#[tokio::test]
async fn a_sell_quote_has_these_members() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let answer = acme.post(SELL, json!({"currencyPair": "BTC-EUR", "cryptoAmount": "0.01"})).await;
    answer.assert_status(200);
    let quote = answer.json();
    let mut expected = vec![
        "bankAccountDisabled",
        "cryptoAmount",
        "currencyPair",
        "expiryDate",
        "fiatAmount",
        "fiatNetworkFee",
        "isEstimatedQuote",
        "networkFeeCost",
        "partnerFee",
        "partnerFeePercentage",
        "paymentMethod",
        "paymentMethodCost",
        "price",
        "providerFee",
        "providerFeePercentage",
        "quote",
        "quoteUnconfirmableReasons",
        "singleCoinEstimate",
        "sourceCurrency",
        "spreadFee",
        "targetCurrency",
    ];
    expected.sort_unstable();
    assert_eq!(names(&quote), expected);
    assert_eq!(quote["paymentMethod"], "bankTransfer");
    assert_eq!(quote["bankAccountDisabled"], false);
    assert_eq!(quote["sourceCurrency"]["code"], "BTC");
    assert_eq!(quote["targetCurrency"]["code"], "EUR");
    assert_eq!(number(&quote, "fiatAmount"), worth(&quote) - fees(&quote));
}

#[tokio::test]
async fn the_fee_identity_is_exact_to_the_cent() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let pairs =
        ["BTC-EUR", "ETH-EUR", "LTC-EUR", "XRP-EUR", "ADA-EUR", "SOL-EUR", "DOGE-EUR", "USDC-EUR"];
    let methods = ["creditCard", "bankTransfer", "walletpay"];
    let amounts = ["3.99", "33.33", "100", "999.99", "12345.67", "1000000000"];
    for (at, amount) in pairs.iter().cycle().zip(amounts.iter().cycle()).take(24).enumerate() {
        let (pair, amount) = amount;
        let method = methods[at % methods.len()];
        for (given, other) in [("fiatAmount", "cryptoAmount"), ("cryptoAmount", "fiatAmount")] {
            let changes = json!({
                "currencyPair": pair, "paymentMethod": method, "fee": "0.75",
                "fiatAmount": null, given: amount, other: "",
            });
            let quote = bought(&acme, changes).await;
            assert_eq!(number(&quote, "fiatAmount"), worth(&quote) + fees(&quote), "{quote}");
            assert_eq!(number(&quote, given), amount.parse::<Decimal>().unwrap());
            assert!(number(&quote, "spreadFee") >= Decimal::ZERO, "{quote}");
        }
    }
}

#[tokio::test]
async fn currencies_may_be_named_by_caip19() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (eur, btc) = ("swift:0/iso4217:EUR", "bip122:000000000019d6689c085ae165831e93/slip44:0");
    let named = |source: &str, target: &str| json!({"currencyPair": null, "sourceCurrency": source, "targetCurrency": target});
    assert_eq!(bought(&acme, named(eur, btc)).await["currencyPair"], "BTC-EUR");
    let both = json!({"sourceCurrency": eur, "targetCurrency": btc});
    assert_eq!(bought(&acme, both).await["currencyPair"], "BTC-EUR");
    let ether = json!({"sourceCurrency": eur, "targetCurrency": "eip155:1/slip44:60"});
    buy(&acme, ether).await.assert_codes(&["ER010"]);
    // Each id counts beside the pair: sent alone, and where there is no pair of both.
    assert_eq!(bought(&acme, json!({"targetCurrency": btc})).await["currencyPair"], "BTC-EUR");
    for other in [
        json!({"targetCurrency": "eip155:1/slip44:60"}),
        json!({"sourceCurrency": "swift:0/iso4217:USD"}),
        json!({"sourceCurrency": "swift:0/iso4217:USD", "targetCurrency": btc}),
    ] {
        buy(&acme, other).await.assert_codes(&["ER010"]);
    }
    buy(&acme, named(eur, "eip155:1/slip44:1")).await.assert_codes(&["ER402"]);
    buy(&acme, named("nonsense", btc)).await.assert_codes(&["ER403"]);
    buy(&acme, named(btc, eur)).await.assert_codes(&["ER402", "ER403"]);
    buy(&acme, named("swift:0/iso4217:USD", btc)).await.assert_codes(&["ER010"]);
    buy(&acme, json!({"currencyPair": null, "sourceCurrency": eur})).await.assert_codes(&["ER010"]);
    let sell = json!({"sourceCurrency": btc, "targetCurrency": eur, "fiatAmount": "100"});
    let answer = acme.post(SELL, sell).await;
    answer.assert_status(200);
    assert_eq!(answer.json()["currencyPair"], "BTC-EUR");
}

#[tokio::test]
async fn amounts_are_read_leniently_and_judged_strictly() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for amount in [json!("100"), json!(100), json!("100.00"), json!("1e2")] {
        let quote = bought(&acme, json!({"fiatAmount": amount, "cryptoAmount": ""})).await;
        assert_eq!(number(&quote, "fiatAmount"), Decimal::ONE_HUNDRED);
    }
    for (amount, code) in [
        (json!(0), "ER011"),
        (json!(-5), "ER011"),
        (json!("12.345"), "ER011"),
        (json!("ten"), "ER011"),
        (json!("1,5"), "ER011"),
        (json!(" 1"), "ER011"),
        (json!("NaN"), "ER011"),
        (json!(true), "ER011"),
        (json!([]), "ER011"),
        (json!(1.75), "ER011"),
        (json!("1e400"), "ER011"),
        (json!("9".repeat(60)), "ER011"),
        (json!(1_000_000_000_000_001_u64), "ER011"),
    ] {
        let answer = buy(&acme, json!({"fiatAmount": amount})).await;
        answer.assert_status(400).assert_codes(&[code]);
    }
    for amount in [json!("0.000000001"), json!(0), json!("x"), json!(-1)] {
        let answer = buy(&acme, json!({"fiatAmount": null, "cryptoAmount": amount})).await;
        answer.assert_status(400).assert_codes(&["ER012"]);
    }
    let ada = json!({"currencyPair": "ADA-EUR", "fiatAmount": null, "cryptoAmount": "10.1234567"});
    buy(&acme, ada).await.assert_codes(&["ER012"]);
    buy(&acme, json!({"fiatAmount": null})).await.assert_codes(&["ER042"]);
    buy(&acme, json!({"fiatAmount": "", "cryptoAmount": ""})).await.assert_codes(&["ER042"]);
    buy(&acme, json!({"cryptoAmount": 1})).await.assert_codes(&["ER043"]);
    buy(&acme, json!({"cryptoAmount": "x"})).await.assert_codes(&["ER012", "ER043"]);
    let tiny = bought(&acme, json!({"fiatAmount": null, "cryptoAmount": "0.00000001"})).await;
    assert_eq!(number(&tiny, "fiatAmount"), worth(&tiny) + fees(&tiny));
}

#[tokio::test]
async fn everything_wrong_with_a_request_is_said_at_once() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let body = json!({
        "currencyPair": "BTC-JPY", "paymentMethod": "barter", "fee": 6, "countryCode": "XX",
        "walletAddress": "nowhere",
    });
    let answer = acme.post(BUY, body).await;
    let codes = ["ER010", "ER013", "ER014", "ER042", "ER050", "ER063"];
    answer.assert_status(400).assert_codes(&codes);
    let somewhere = "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh";
    let unpaired = json!({"currencyPair": "BTC-JPY", "walletAddress": somewhere});
    buy(&acme, unpaired).await.assert_codes(&["ER010"]);
    acme.post(BUY, json!({})).await.assert_codes(&["ER010", "ER013", "ER042"]);
    acme.post(BUY, json!([])).await.assert_codes(&["ER048"]);
    for pair in [json!("BTCEUR"), json!("EUR-BTC"), json!(7), json!("")] {
        buy(&acme, json!({"currencyPair": pair})).await.assert_codes(&["ER010"]);
    }
}

#[tokio::test]
async fn a_quote_is_for_a_country_that_the_partner_serves() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let served = json!({"allowedCountries": ["NL", "be"]});
    context.admin(http::Method::PATCH, "/admin/v1/partners/acme", served).await.assert_status(200);
    let sale = json!({"currencyPair": "BTC-EUR", "cryptoAmount": "0.01", "countryCode": "DE"});
    acme.post(SELL, sale).await.assert_codes(&["ER063"]);
    let refused = buy(&acme, json!({"countryCode": "DE"})).await;
    assert!(refused.assert_codes(&["ER063"]).text().contains("not served"), "{}", refused.text());
    for country in [json!("NL"), json!("nl"), json!("BE"), json!(null)] {
        bought(&acme, json!({"countryCode": country})).await;
    }
}

#[tokio::test]
async fn a_quote_may_be_bound_to_a_wallet_of_its_chain() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let btc = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
    bought(&acme, json!({"walletAddress": btc})).await;
    for address in [json!("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5"), json!(""), json!(7)] {
        buy(&acme, json!({"walletAddress": address})).await.assert_codes(&["ER014"]);
    }
    buy(&acme, json!({"walletAddress": btc, "destinationTag": 1})).await.assert_codes(&["ER044"]);
    let xrp = |tag: Value| {
        let address = "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh";
        json!({"currencyPair": "XRP-EUR", "walletAddress": address, "destinationTag": tag})
    };
    bought(&acme, xrp(json!(12))).await;
    bought(&acme, xrp(json!("12"))).await;
    buy(&acme, xrp(json!("memo"))).await.assert_codes(&["ER015"]);
    buy(&acme, json!({"currencyPair": "XRP-EUR", "walletAddress": btc}))
        .await
        .assert_codes(&["ER014"]);
}

#[tokio::test]
async fn a_sale_is_paid_out_by_a_payout_method() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let sale = |method: &str| json!({"currencyPair": "BTC-EUR", "fiatAmount": 500, "paymentMethod": method});
    for method in ["bankTransfer", "creditCard", "walletpay"] {
        let answer = acme.post(SELL, sale(method)).await;
        answer.assert_status(200);
        let quote = answer.json();
        assert_eq!(quote["paymentMethod"], method);
        assert_eq!(number(&quote, "fiatAmount"), worth(&quote) - fees(&quote), "{quote}");
    }
    for method in ["localcard", "payByBank", "barter"] {
        acme.post(SELL, sale(method)).await.assert_codes(&["ER013"]);
    }
}

#[tokio::test]
async fn every_quote_is_another_token() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (one, two) = (bought(&acme, json!({})).await, bought(&acme, json!({})).await);
    assert_ne!(one["quote"], two["quote"]);
}

#[tokio::test]
async fn amounts_are_strings_for_whoever_prefers_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let prices = acme.get("/api/v2/prices").await;
    let asked = acme.request(http::Method::GET, "/api/v2/prices").header("prefer", "money=string");
    let spelt = asked.send().await;
    assert_eq!(spelt.assert_status(200).header("preference-applied"), Some("money=string"));
    assert_eq!(spelt.header("vary"), Some("Prefer"));
    assert_ne!(spelt.header("etag"), prices.header("etag"));
    assert!(prices.header("preference-applied").is_none());
    // Every answer of the operation depends on the preference, whatever this request prefers.
    let tag = prices.header("etag").unwrap();
    let known = acme.request(http::Method::GET, "/api/v2/prices").header("if-none-match", tag);
    let (known, refused) = (known.send().await, acme.post(BUY, json!({})).await);
    for answer in [&prices, known.assert_status(304), refused.assert_status(400)] {
        assert_eq!(answer.header("vary"), Some("Prefer"), "{}", answer.text());
    }
    assert_eq!(acme.get("/api/v2/system/errors").await.header("vary"), None);
    let (plain, spelt) = (prices.json(), spelt.json());
    let mut amounts = 0;
    for (pair, sides) in plain.as_object().unwrap() {
        for (name, amount) in sides.as_object().unwrap().iter().filter(|(_, it)| it.is_number()) {
            let text = spelt[pair][name].as_str().unwrap_or_else(|| panic!("{pair} {name}"));
            assert_eq!(text, amount.to_string(), "{pair} {name}");
            amounts += 1;
        }
    }
    assert!(amounts > 0);
}
