//! Quotes of both sides.

use http::Method;
use rampart_tests::guests::component;
use serde_json::{Value, json};

use super::Row;
use super::fixtures::{Fixtures, with};

const BUY: &str = "/api/v1/buy/quote";
const SELL: &str = "/api/v1/sell/quote";
const EUR: &str = "swift:0/iso4217:EUR";
const BTC: &str = "bip122:000000000019d6689c085ae165831e93/slip44:0";

/// A purchase that can be quoted, changed.
fn purchase(changes: Value) -> Value {
    let valid =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer", "fiatAmount": 100});
    with(valid, changes)
}

pub(super) async fn rows(fixtures: &Fixtures) -> Vec<Row> {
    let mut rows = members(fixtures);
    rows.extend(market(fixtures).await);
    rows.extend(policy(fixtures).await);
    rows
}

fn members(fixtures: &Fixtures) -> Vec<Row> {
    let by_id = |source: &str, target: &str| json!({"currencyPair": null, "sourceCurrency": source, "targetCurrency": target});
    let precise = json!({"fiatAmount": null, "cryptoAmount": "0.123456789"});
    let wrong = [
        ("ER010", "a pair that there is not", json!({"currencyPair": "BTC-JPY"})),
        ("ER011", "less than nothing", json!({"fiatAmount": -1})),
        ("ER012", "nine decimals", precise),
        ("ER013", "a method that there is not", json!({"paymentMethod": "cash"})),
        ("ER014", "an address of nowhere", json!({"walletAddress": "nowhere"})),
        ("ER015", "a tag in words", json!({"currencyPair": "XRP-EUR", "destinationTag": "seven"})),
        ("ER042", "no amount", json!({"fiatAmount": null})),
        ("ER043", "two amounts", json!({"cryptoAmount": 1})),
        ("ER044", "a tag on Bitcoin", json!({"destinationTag": "7"})),
        ("ER050", "more than a partner may ask", json!({"fee": 6})),
        ("ER061", "a country of three letters", json!({"countryCode": "NLD"})),
        ("ER062", "an empty country", json!({"countryCode": ""})),
        ("ER063", "a country that there is not", json!({"countryCode": "XX"})),
        ("ER402", "an unknown target", by_id(EUR, "bip122:0/slip44:0")),
        ("ER403", "an unknown source", by_id("swift:0/iso4217:XXX", BTC)),
    ];
    let row =
        |(code, wrong, changes)| Row::new(code, wrong, fixtures.post(BUY, &purchase(changes)));
    wrong.into_iter().map(row).collect()
}

async fn market(fixtures: &Fixtures) -> Vec<Row> {
    for (path, change) in [
        ("pairs/DOGE-EUR", json!({"buy": {"status": "maintenance"}})),
        ("pairs/ADA-EUR", json!({"sell": {"status": "maintenance"}})),
        ("payment-methods/bankredirect3", json!({"enabled": false})),
    ] {
        fixtures.operator(Method::PATCH, &format!("/admin/v1/{path}"), change).await;
    }
    let sale = json!({"currencyPair": "ADA-EUR", "cryptoAmount": 100});
    let maintained = purchase(json!({"currencyPair": "DOGE-EUR"}));
    let off = purchase(json!({"paymentMethod": "bankredirect3"}));
    vec![
        Row::new("ER008", "a pair in maintenance", fixtures.post(BUY, &maintained)),
        Row::new("ER016", "a pair that is not sold now", fixtures.post(SELL, &sale)),
        Row::new("ER055", "a method that is switched off", fixtures.post(BUY, &off)),
    ]
}

/// A fee policy that fails, and is set to refuse then.
async fn policy(fixtures: &Fixtures) -> Vec<Row> {
    let partner = fixtures.partner("tariff").await;
    let path = "/admin/v1/partners/tariff/policies/fee\
                ?failClosed=true&config=%7B%22mode%22:%22panic@FR%22%7D";
    let pushed = fixtures.edge.admin_bytes(Method::PUT, path, component("hostile")).await;
    pushed.assert_status(200);
    let quote = purchase(json!({"countryCode": "FR"}));
    let quote = partner.request(Method::POST, BUY).json(&quote);
    vec![Row::new("ER328", "a policy that breaks", quote)]
}
