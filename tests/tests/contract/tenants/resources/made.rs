//! Creation of the resources, through the calls of partners and users.

use http::Method;
use rampart_core::endpoint::Route;
use rampart_tests::buyer::WALLET;
use rampart_tests::partner::Partner;
use serde_json::{Value, json};

use super::{Cast, Named, Owner};

/// The event for a route that moves an order.
const EVENT: &str = "expire";

/// The route's path with `id` in it, and a body that changes nothing where it takes one.
pub(super) fn at(route: &Route, id: &str) -> Named {
    let path = route.path.replace("{id}", id).replace("{code}", id).replace("{event}", EVENT);
    let body = if route.method == Method::PATCH { json!({}) } else { Value::Null };
    Named { path, body }
}

/// The partner's signed assertion about an order's wallet.
pub(super) fn proof(route: &Route, order: i64, by: &Partner) -> Named {
    let signature = by.sign(&format!("orderId={order}&reason=seen&walletAddress={WALLET}"));
    let body = json!({"orderId": order, "reason": "seen", "walletAddress": WALLET,
        "signature": signature});
    Named { body, ..at(route, &order.to_string()) }
}

/// The route with a body.
pub(super) fn with(route: &Route, body: Value) -> Named {
    Named { path: route.path.to_owned(), body }
}

pub(super) fn confirm(quote: &str) -> Value {
    json!({"quote": quote, "walletAddress": WALLET, "returnUrl": "app:x"})
}

pub(super) fn under(quote: &str, offer: &str) -> Value {
    json!({"quote": quote, "walletAddress": WALLET, "returnUrl": "app:x", "offerId": offer})
}

/// An offer for the user of a login token.
pub(super) fn offer_for(token: &str) -> Value {
    json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard",
        "loginToken": token})
}

fn purchase() -> Value {
    json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100})
}

impl Cast {
    async fn posted(&self, owner: Owner, path: &str, body: &Value) -> Value {
        self.user(owner).post(path, body).await.assert_status(200).json()
    }

    async fn sold_or_bought(&self, owner: Owner, path: &str, quote: Value) -> i64 {
        let confirmed = self.posted(owner, path, &quote).await;
        confirmed["orderId"].as_i64().unwrap()
    }

    pub(super) async fn order(&self, owner: Owner, reference: &str) -> i64 {
        let mut body = confirm(&self.quote(owner).await);
        body["partnerOrderIdentifier"] = reference.into();
        self.sold_or_bought(owner, "/api/v1/buy/confirm", body).await
    }

    /// An order whose coins have arrived.
    pub(super) async fn completed(&self, owner: Owner, reference: &str) -> i64 {
        let order = self.order(owner, reference).await;
        let path = format!("/admin/v1/orders/{order}/events");
        for event in [
            json!({"event": "payment-received"}),
            json!({"event": "coins-sent", "transactionId": "ab".repeat(32)}),
            json!({"event": "confirmed-on-chain"}),
        ] {
            self.context.admin(Method::POST, &path, event).await.assert_status(200);
        }
        order
    }

    pub(super) async fn sale(&self, owner: Owner, reference: &str) -> i64 {
        let quote = self.sell_quote(owner).await;
        let body = json!({"quote": quote, "partnerOrderIdentifier": reference});
        self.sold_or_bought(owner, "/api/v1/sell/confirm", body).await
    }

    /// A quote for the user.
    pub(super) async fn quote(&self, owner: Owner) -> String {
        let quote = self.posted(owner, "/api/v1/buy/quote", &purchase()).await;
        quote["quote"].as_str().unwrap().to_owned()
    }

    /// A sell quote for the user.
    pub(super) async fn sell_quote(&self, owner: Owner) -> String {
        let body = json!({"currencyPair": "BTC-EUR", "cryptoAmount": 0.01});
        let quote = self.posted(owner, "/api/v1/sell/quote", &body).await;
        quote["quote"].as_str().unwrap().to_owned()
    }

    /// A quote for any user of the client.
    pub(super) async fn free_quote(&self, by: &Partner) -> String {
        let quote = by.post("/api/v1/buy/quote", purchase()).await.assert_status(200).json();
        quote["quote"].as_str().unwrap().to_owned()
    }

    /// A card of the user's, by the session that it was entered in.
    pub(super) async fn card(&self, owner: Owner, session: &str) -> String {
        let session = json!({"sessionIdentifier": session, "cardHolderName": "Holder",
            "currencyCode": "EUR"});
        let card = self.posted(owner, "/api/v2/user/accounts/cards/processor", &session).await;
        card["accountIdentifier"].as_str().unwrap().to_owned()
    }

    /// The one card of the user's that is verified.
    pub(super) async fn verified_card(&self, owner: Owner) -> String {
        let card = self.card(owner, &format!("verified-of-{owner:?}")).await;
        let body = json!({ "accountIdentifier": card });
        let verified = self.user(owner).post("/api/v1/user/verify/card", &body).await;
        assert!(verified.status() == 200 || verified.codes() == ["ER398"], "{}", verified.text());
        card
    }

    /// A purchase with a quote of the client, paid from this account.
    pub(super) async fn paid_by(&self, account: &str, by: &Partner) -> Value {
        let mut body = confirm(&self.free_quote(by).await);
        body["accountIdentifier"] = account.into();
        body
    }

    /// A sale with a quote of the client, paid out to this account.
    pub(super) async fn paid_to(&self, account: &str, by: &Partner) -> Value {
        let asked = json!({"currencyPair": "BTC-EUR", "cryptoAmount": 0.01,
            "paymentMethod": "creditCard"});
        let quote = by.post("/api/v1/sell/quote", asked).await.assert_status(200).json();
        json!({"quote": quote["quote"], "accountIdentifier": account})
    }

    pub(super) async fn offer(&self, by: &Partner) -> String {
        let offer =
            json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard"});
        let offer = by.post("/api/v2/buy/offer", offer).await.assert_status(200).json();
        offer["offerUuid"].as_str().unwrap().to_owned()
    }

    pub(super) async fn plan(&self, owner: Owner) -> String {
        let path = format!("/admin/v1/users/{}/dca-codes", self.uuids[owner as usize]);
        let plan = json!({"cryptoCurrency": "BTC", "walletAddress": WALLET});
        let plan = self.context.admin(Method::POST, &path, plan).await.assert_status(201).json();
        plan["code"].as_str().unwrap().to_owned()
    }

    /// The event that tells of a new order.
    pub(super) async fn event(&self, owner: Owner) -> String {
        let order = self.order(owner, "told").await;
        let event = "select event_id from event where order_id = $1";
        let event: uuid::Uuid =
            sqlx::query_scalar(event).bind(order).fetch_one(self.context.db()).await.unwrap();
        event.to_string()
    }

    /// Parameters of an onboarding URL, as they are sent to be verified.
    pub(super) async fn onboarding(&self, by: &Partner) -> Value {
        let body = json!({"returnUrl": "app:x"});
        let made = by.post("/api/v2/sell/onboarding", body).await.assert_status(200).json();
        let url = made["onboardingUrl"].as_str().unwrap().to_owned();
        let (_, signature) = url.split_once("signature=").unwrap();
        json!({"returnUrl": "app:x", "signature": signature})
    }
}
