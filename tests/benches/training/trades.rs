//! Purchases, sales, offers and checkouts.

use http::Method;
use rampart_tests::buyer::{RETURN_URL, WALLET};
use rampart_tests::caller::{Caller, Request};
use serde_json::{Value, json};

use super::{Customer, sent};

/// Quotes of a round that are not confirmed.
const QUOTES: usize = 8;

fn buy() -> Value {
    json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 50,
        "countryCode": "NL"})
}

/// A request for a user.
pub(super) fn for_user(partner: &Caller, method: Method, path: &str, user: &str) -> Request {
    partner.request(method, path).header("user-identifier", user)
}

impl Customer<'_> {
    /// Quotes, a purchase with a token, one under an offer, a checkout and an onboarding.
    pub(super) async fn trade_as_guest(&self, round: u32) {
        for _ in 0..QUOTES {
            self.post("/api/v1/buy/quote", &buy()).await;
        }
        self.post("/api/v1/sell/quote", &json!({"currencyPair": "ETH-EUR", "cryptoAmount": 1}))
            .await;
        let quote = self.post("/api/v1/buy/quote", &buy()).await;
        let body = json!({"quote": quote["quote"], "walletAddress": WALLET,
            "returnUrl": RETURN_URL});
        let key = format!("guest-{}-{round}", self.number);
        let confirm = || {
            let request = self.authenticated.request(Method::POST, "/api/v1/buy/confirm");
            sent(request.header("idempotency-key", &key).json(&body))
        };
        let confirmed = confirm().await;
        assert_eq!(confirm().await["orderId"], confirmed["orderId"], "a repeat is the same order");
        self.pay(&confirmed).await;
        self.buy_under_an_offer().await;
        let checkout = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
            "paymentMethod": "creditCard", "quoteCurrencyAmount": 100});
        let made = self.post("/api/v2/buy/checkout", &checkout).await;
        self.open(&made["checkoutUrl"]).await;
        self.post("/api/v2/sell/onboarding", &json!({"returnUrl": "app:back"})).await;
    }

    async fn buy_under_an_offer(&self) {
        let encoded = RETURN_URL.replace(':', "%3A").replace('/', "%2F");
        let signed = format!("returnUrl={encoded}&walletAddress={WALLET}");
        let offer = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
            "paymentMethod": "creditCard", "quoteCurrencyAmount": 50, "fixedAmount": true,
            "walletAddress": WALLET, "returnUrl": RETURN_URL,
            "signature": self.partner.sign(&signed)});
        let offer = self.post("/api/v2/buy/offer", &offer).await;
        let quote = self.post("/api/v1/buy/quote", &buy()).await;
        let confirm = json!({"quote": quote["quote"], "walletAddress": WALLET,
            "offerId": offer["offerUuid"]});
        let request = self.authenticated.request(Method::POST, "/api/v2/buy/confirm");
        sent(request.json(&confirm)).await;
    }

    /// A purchase and a sale, each read afterwards.
    pub(super) async fn trade_as_user(&self, user: &str, round: u32) {
        let request = |method, path: &str| for_user(&self.partner, method, path, user);
        let quote = sent(request(Method::POST, "/api/v1/buy/quote").json(&buy())).await;
        let body = json!({"quote": quote["quote"], "walletAddress": WALLET,
            "returnUrl": RETURN_URL, "callbackUrl": "http://127.0.0.1:9/callback"});
        let key = format!("user-{}-{round}", self.number);
        let confirm = request(Method::POST, "/api/v1/buy/confirm").header("idempotency-key", &key);
        let confirmed = sent(confirm.json(&body)).await;
        self.pay(&confirmed).await;
        let sell = json!({"currencyPair": "BTC-EUR", "cryptoAmount": 0.001});
        let quote = sent(request(Method::POST, "/api/v1/sell/quote").json(&sell)).await;
        let body = json!({"quote": quote["quote"]});
        let sale = sent(request(Method::POST, "/api/v1/sell/confirm").json(&body)).await;
        let event = format!("/api/v2/sandbox/sell/orders/{}/deposit-received", sale["orderId"]);
        self.post(&event, &json!({})).await;
        let (bought, sold) = (&confirmed["orderId"], &sale["orderId"]);
        for path in [
            format!("/api/v1/user/buy/orders/{bought}"),
            format!("/api/v2/buy/orders/{bought}"),
            format!("/api/v2/buy/orders/{bought}/timeline"),
            format!("/api/v1/user/sell/orders/{sold}"),
            "/api/v2/buy/orders".to_owned(),
            "/api/v1/user/sell/orders".to_owned(),
        ] {
            sent(request(Method::GET, &path)).await;
        }
    }

    /// Opens the payment page and pays.
    async fn pay(&self, confirmed: &Value) {
        let path = self.open(&confirmed["paymentUrl"]).await;
        let paying = self.partner.anonymous(Method::POST, &path).form("action=pay").send().await;
        assert!([200, 303].contains(&paying.status()), "the payment page: {}", paying.status());
    }

    /// Opens a page by its URL; its path.
    async fn open(&self, url: &Value) -> String {
        let url = url.as_str().expect("an answer has a URL");
        let path = url.splitn(4, '/').nth(3).expect("a URL has a path");
        let path = format!("/{path}");
        self.partner.anonymous(Method::GET, &path).send().await.assert_status(200);
        path
    }
}
