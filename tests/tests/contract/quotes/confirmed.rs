//! Quotes as the quote endpoint made them, brought to the confirm.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{BUY, SELL, request};
use crate::orders::{BTC, OTHER_BTC, Shop, confirm_of};

async fn quote(shop: &Shop, path: &str, changes: Value) -> Value {
    let answer = shop.request(Method::POST, path).json(&request(&changes)).send().await;
    answer.assert_status(200);
    answer.json()
}

fn token(quote: &Value) -> &str {
    quote["quote"].as_str().unwrap()
}

#[tokio::test]
async fn the_order_is_what_the_quote_said() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let quote = quote(&shop, BUY, json!({"fiatAmount": "123.45", "fee": 0.5})).await;
    let answer = shop.v1(&confirm_of(token(&quote))).await;
    answer.assert_status(200);
    let order = answer.json()["orderId"].clone();
    let order = shop.get(&format!("/api/v2/buy/orders/{order}")).await.json();
    for (of_order, of_quote) in [
        (&order["fiatAmount"], "fiatAmount"),
        (&order["cryptoAmount"], "cryptoAmount"),
        (&order["fees"]["partnerFee"], "partnerFee"),
        (&order["fees"]["providerFee"], "providerFee"),
        (&order["fees"]["paymentMethodFee"], "paymentMethodCost"),
        (&order["fees"]["networkFee"], "networkFeeCost"),
        (&order["fees"]["spreadFee"], "spreadFee"),
    ] {
        assert_eq!(of_order["amount"], quote[of_quote], "{of_quote}");
    }
    assert_eq!(order["fees"]["partnerFeePercentage"], quote["partnerFeePercentage"]);
    assert_eq!(order["sourceCurrency"], quote["sourceCurrency"]);
    assert_eq!(order["targetCurrency"], quote["targetCurrency"]);
}

#[tokio::test]
async fn an_altered_quote_is_er007_wherever_it_is_altered() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let quote = quote(&shop, BUY, json!({})).await;
    let token = token(&quote);
    for at in (0..token.len()).step_by(29) {
        let mut altered = token.as_bytes().to_vec();
        altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
        let answer = shop.v1(&confirm_of(str::from_utf8(&altered).unwrap())).await;
        answer.assert_status(400).assert_codes(&["ER007"]);
    }
    shop.v1(&confirm_of(token)).await.assert_status(200);
}

#[tokio::test]
async fn a_quote_of_the_other_side_client_wallet_or_time_is_refused() {
    let context = TestContext::start().await;
    let (shop, rival) = (Shop::of(&context, "acme").await, Shop::of(&context, "rival").await);
    let plain = quote(&shop, BUY, json!({})).await;
    rival.v1(&confirm_of(token(&plain))).await.assert_codes(&["ER007"]);
    let sale = json!({"paymentMethod": "bankTransfer"});
    shop.v1(&confirm_of(token(&quote(&shop, SELL, sale).await))).await.assert_codes(&["ER009"]);
    let bound = quote(&shop, BUY, json!({"walletAddress": OTHER_BTC})).await;
    shop.v1(&confirm_of(token(&bound))).await.assert_codes(&["ER007"]);
    let bound = quote(&shop, BUY, json!({"walletAddress": BTC})).await;
    shop.v1(&confirm_of(token(&bound))).await.assert_status(200);
    context.clock().advance(TimeDelta::seconds(300));
    shop.v1(&confirm_of(token(&plain))).await.assert_codes(&["ER006"]);
}
