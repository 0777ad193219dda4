//! Confirms of both sides and both versions.

use http::Method;
use rampart_tests::buyer::WALLET as BTC;
use rampart_tests::caller::Caller;
use serde_json::{Value, json};

use super::Row;
use super::fixtures::{Fixtures, with};
use super::offers::{OFFER, offer};

const BUY: &str = "/api/v1/buy/confirm";
const UNDER_OFFER: &str = "/api/v2/buy/confirm";
const SELL: &str = "/api/v1/sell/confirm";
const ETH: &str = "0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe";

/// The body of a request for a quote of 100 EUR.
fn asked(changes: Value) -> Value {
    let body = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    with(body, changes)
}

/// A quote of this partner.
async fn quote(partner: &Caller, changes: Value) -> String {
    let answer = partner.post("/api/v1/buy/quote", asked(changes)).await;
    answer.assert_status(200).json()["quote"].as_str().unwrap().to_owned()
}

/// A sell quote of this partner.
async fn sell_quote(partner: &Caller) -> String {
    let body = json!({"currencyPair": "BTC-EUR", "cryptoAmount": 0.01});
    let answer = partner.post("/api/v1/sell/quote", body).await;
    answer.assert_status(200).json()["quote"].as_str().unwrap().to_owned()
}

/// A confirm of a quote on its own, changed.
fn confirm(quote: &str, changes: Value) -> Value {
    let body = json!({"quote": quote, "walletAddress": BTC, "returnUrl": "app:back"});
    with(body, changes)
}

pub(super) async fn rows(fixtures: &Fixtures) -> Vec<Row> {
    let mut rows = members(fixtures).await;
    rows.extend(quotes(fixtures).await);
    rows.extend(users(fixtures).await);
    rows.extend(accounts(fixtures).await);
    rows.extend(offers(fixtures).await);
    rows.extend(fixed(fixtures).await);
    rows
}

async fn members(fixtures: &Fixtures) -> Vec<Row> {
    let quote = quote(&fixtures.shop, json!({})).await;
    let wrong = [
        ("ER014", "an address of nowhere", json!({"walletAddress": "nowhere"})),
        ("ER014", "an address of another chain", json!({"walletAddress": ETH})),
        ("ER015", "a list for a tag", json!({"destinationTag": [7]})),
        ("ER044", "a tag on Bitcoin", json!({"destinationTag": 7})),
        ("ER045", "no quote", json!({"quote": null})),
        ("ER046", "a callback in clear", json!({"callbackUrl": "http://shop.example/hook"})),
        ("ER047", "a return URL that runs", json!({"returnUrl": "javascript:alert(1)"})),
        ("ER048", "a wallet of another kind", json!({"walletType": "purse"})),
    ];
    let row = |(code, wrong, changes)| {
        Row::new(code, wrong, fixtures.post(BUY, &confirm(&quote, changes)))
    };
    wrong.into_iter().map(row).collect()
}

async fn quotes(fixtures: &Fixtures) -> Vec<Row> {
    let earlier = fixtures.earlier().await;
    let expired = earlier.post("/api/v1/buy/quote", asked(json!({}))).await;
    let expired = expired.assert_status(200).json()["quote"].as_str().unwrap().to_owned();
    let altered = quote(&fixtures.shop, json!({})).await;
    // Not the last character: four values are all that it has, and A is one of them.
    let (start, tag) = altered.rsplit_once('.').unwrap();
    let first = if tag.starts_with('A') { 'B' } else { 'A' };
    let altered = format!("{start}.{first}{}", &tag[1..]);
    let (bought, sold) = (quote(&fixtures.shop, json!({})).await, sell_quote(&fixtures.shop).await);
    let large = quote(&fixtures.shop, json!({"fiatAmount": 6000})).await;
    let post = |quote: &str| fixtures.post(BUY, &confirm(quote, json!({})));
    vec![
        Row::new("ER006", "a quote of a time that is over", post(&expired)),
        Row::new("ER007", "a quote that was altered", post(&altered)),
        Row::new("ER009", "a sell quote", post(&sold)),
        Row::new("ER011", "more than the method takes", post(&large)),
        Row::new("ER017", "a buy quote", fixtures.post(SELL, &json!({"quote": bought}))),
    ]
}

async fn users(fixtures: &Fixtures) -> Vec<Row> {
    let dora = fixtures.person("dora").await;
    let path = format!("/admin/v1/users/{}", dora.uuid);
    fixtures.operator(Method::PATCH, &path, json!({"disabled": true})).await;
    let body = confirm(&quote(&fixtures.key, json!({})).await, json!({}));
    let hers = fixtures.key.request(Method::POST, BUY).json(&body);
    let hers = hers.header("user-identifier", &dora.identifier);
    vec![Row::new("ER124", "a user who is disabled", hers)]
}

async fn accounts(fixtures: &Fixtures) -> Vec<Row> {
    let finn = fixtures.person("finn").await;
    let (card, bank) = ("555555******0010", "NL91ABNA0417164300");
    for account in [
        json!({"type": "creditCard", "identifier": card, "name": "Finn"}),
        json!({"type": "bankTransfer", "identifier": bank, "name": "Finn", "verified": true}),
    ] {
        let path = format!("/admin/v1/users/{}/accounts", finn.uuid);
        fixtures.operator(Method::POST, &path, account).await;
    }
    let quote = quote(&fixtures.key, json!({})).await;
    let pay = |account: &str| {
        let body = confirm(&quote, json!({"accountIdentifier": account}));
        let request = fixtures.key.request(Method::POST, BUY).json(&body);
        request.header("user-identifier", &finn.identifier)
    };
    vec![
        Row::new("ER138", "a bank account for a card's quote", pay(bank)),
        Row::new("ER139", "a card that is not verified", pay(card)),
        Row::new("ER380", "no account", pay("")),
        Row::new("ER396", "an account of nobody", pay("555555******0011")),
    ]
}

/// An offer of the shop; its id.
async fn made(fixtures: &Fixtures, changes: Value) -> String {
    let answer = fixtures.shop.post(OFFER, offer(changes)).await;
    answer.assert_status(200).json()["offerUuid"].as_str().unwrap().to_owned()
}

fn under(quote: &str, offer: &str, wallet: &str) -> Value {
    json!({"quote": quote, "offerId": offer, "walletAddress": wallet, "returnUrl": "app:back"})
}

async fn offers(fixtures: &Fixtures) -> Vec<Row> {
    let confirmed = made(fixtures, json!({})).await;
    let first = quote(&fixtures.shop, json!({})).await;
    let first = fixtures.post(UNDER_OFFER, &under(&first, &confirmed, BTC));
    first.send().await.assert_status(200);
    let ended = made(fixtures, json!({})).await;
    fixtures.operator(Method::POST, &format!("/admin/v1/offers/{ended}/expire"), json!({})).await;
    let quote = quote(&fixtures.shop, json!({})).await;
    let nobody = "019c1f5e-7c0a-7d52-9d3f-2b8a4e6f1c70";
    let post = |offer: &str| fixtures.post(UNDER_OFFER, &under(&quote, offer, BTC));
    vec![
        Row::new("ER131", "an offer that is confirmed", post(&confirmed)),
        Row::new("ER132", "an offer of nobody", post(nobody)),
        Row::new("ER133", "an offer that has ended", post(&ended)),
    ]
}

/// Offers that fix a term, and quotes over another.
async fn fixed(fixtures: &Fixtures) -> Vec<Row> {
    let amount = json!({"fixedAmount": true, "quoteCurrencyAmount": 50});
    let fee = json!({"fee": 1, "signature": fixtures.shop.sign("fee=1")});
    let euros = quote(&fixtures.shop, json!({})).await;
    let ether = quote(&fixtures.shop, json!({"currencyPair": "ETH-EUR"})).await;
    let transfer = quote(&fixtures.shop, json!({"paymentMethod": "bankTransfer"})).await;
    let mut rows = Vec::new();
    for (code, wrong, terms, quote, wallet) in [
        ("ER134", "another amount", amount, &euros, BTC),
        ("ER135", "another currency", json!({"fixedCurrency": true}), &ether, ETH),
        ("ER136", "another method", json!({"fixedPaymentMethod": true}), &transfer, BTC),
        ("ER137", "another fee", fee, &euros, BTC),
    ] {
        let offer = made(fixtures, terms).await;
        let request = fixtures.post(UNDER_OFFER, &under(quote, &offer, wallet));
        rows.push(Row::new(code, wrong, request));
    }
    rows
}
