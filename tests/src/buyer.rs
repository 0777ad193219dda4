//! A partner's calls for a purchase, one by one.

use futures::StreamExt as _;
use http::Method;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::caller::{Caller, Request};

/// Wallet that receives the coins.
pub const WALLET: &str = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq";
/// Page that the user returns to after the payment.
pub const RETURN_URL: &str = "https://shop.example/thanks";

/// A quote's answer: 100 EUR of BTC by card.
pub async fn quote(partner: &Caller) -> Value {
    ask_quote(partner).send().await.assert_status(200).json()
}

/// The request of such a quote.
pub fn ask_quote(partner: &Caller) -> Request {
    let body = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    partner.request(Method::POST, "/api/v1/buy/quote").json(&body)
}

/// So many quotes, a few at a time.
pub async fn quotes(partner: &Caller, count: usize) -> Vec<String> {
    let quotes =
        (0..count).map(|_| async { quote(partner).await["quote"].as_str().unwrap().to_owned() });
    futures::stream::iter(quotes).buffer_unordered(8).collect().await
}

/// A confirm of a quote on its own.
pub fn confirm(partner: &Caller, quote: &str) -> Request {
    let body = json!({"quote": quote, "walletAddress": WALLET, "returnUrl": RETURN_URL});
    partner.request(Method::POST, "/api/v1/buy/confirm").json(&body)
}

/// The confirm of a new quote: an order of 100 EUR that waits for its payment.
pub async fn order(partner: &Caller) -> Answer {
    let quoted = quote(partner).await;
    let confirmed = confirm(partner, quoted["quote"].as_str().unwrap()).send().await;
    confirmed.assert_status(200);
    confirmed
}

/// A confirm of a quote under an offer.
pub fn confirm_offer(partner: &Caller, quote: &str, offer: &str) -> Request {
    let body = json!({"quote": quote, "walletAddress": WALLET, "offerId": offer});
    partner.request(Method::POST, "/api/v2/buy/confirm").json(&body)
}

/// An offer of 100 EUR of BTC by card, signed; its id.
pub async fn offer(partner: &Caller, callback_url: &str) -> String {
    let encode = |text: &str| text.replace(':', "%3A").replace('/', "%2F");
    let signed = format!(
        "callbackUrl={}&returnUrl={}&walletAddress={WALLET}",
        encode(callback_url),
        encode(RETURN_URL)
    );
    let signature = partner.sign(&signed);
    let body = json!({
        "baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard",
        "quoteCurrencyAmount": 100, "fixedAmount": true, "fixedCurrency": true,
        "walletAddress": WALLET, "returnUrl": RETURN_URL, "callbackUrl": callback_url,
        "partnerOrderIdentifier": "cart-1", "signature": signature,
    });
    let answer = partner.post("/api/v2/buy/offer", body).await;
    answer.assert_status(200).json()["offerUuid"].as_str().unwrap().to_owned()
}

/// The order of a confirm that was granted.
pub fn order_of(confirmed: &Answer) -> u64 {
    confirmed.assert_status(200).json()["orderId"].as_u64().unwrap()
}
