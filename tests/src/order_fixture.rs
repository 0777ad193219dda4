//! An order as a confirm leaves it, without the quote that comes before: for tests of what
//! follows.

use rampart_core::trading::orders::payment_link::payment_url;
use rampart_types::{OrderId, OrderKey};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::buyer::WALLET;
use crate::partner::Partner;
use crate::test_context::TestContext;

/// An order that waits for its payment.
#[derive(Clone, Debug)]
pub struct OrderFixture {
    /// Its number.
    pub id: i64,
    /// Path of the page where it is paid.
    pub pay_path: String,
}

impl OrderFixture {
    /// An order of this partner over 100 EUR, to be paid within an hour.
    pub async fn order(
        context: &TestContext,
        partner: &Partner,
        return_url: Option<&str>,
        callback_url: Option<&str>,
    ) -> Self {
        let core = context.core();
        let id = OrderId::from_entropy(core.clock.random_u64().unwrap());
        let client: uuid::Uuid = partner.id.parse().unwrap();
        sqlx::query(
            "insert into buy_order (client_id, order_id, quote_id, partner_reference, status, pair, \
             payment_method, wallet_address, wallet_type, fiat_amount, fiat_currency, \
             crypto_amount, crypto_currency, price, partner_fee, provider_fee, \
             payment_method_fee, network_fee, spread_fee, affiliate_fee, is_estimated_quote, \
             return_url, callback_url, terms_digest, expires_at, created_at, updated_at) \
             values ($1, $2, $3, 'shop-7', 'pending', 'BTC-EUR', 'creditCard', \
             'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq', 'unhosted', 100, 'EUR', 0.002, 'BTC', \
             50000, 0, 0, 0, 0, 0, 0, false, $4, $5, '', $6, $7, $7)",
        )
        .bind(client)
        .bind(id.number())
        .bind(core.clock.uuid().unwrap())
        .bind(return_url)
        .bind(callback_url)
        .bind(core.clock.now() + chrono::TimeDelta::hours(1))
        .bind(core.clock.now())
        .execute(context.db())
        .await
        .unwrap();
        let url = payment_url(core, OrderKey { client: client.into(), order: id }).unwrap();
        let base = "https://pay.example.com";
        Self { id: id.number(), pay_path: url.strip_prefix(base).unwrap().to_owned() }
    }

    /// An order as a partner makes it with a client token: quoted over this much fiat, and confirmed with
    /// these members besides the wallet and the return URL.
    pub async fn confirmed(partner: &Partner, token: &str, fiat: Value, members: Value) -> Self {
        let token = format!("Bearer {token}");
        let post = async |path: &str, body: &Value| {
            let request = partner.anonymous(http::Method::POST, path);
            let answer = request.header("authorization", &token).json(body).send().await;
            answer.assert_status(200).json()
        };
        let asked =
            json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": fiat});
        let quote = post("/api/v1/buy/quote", &asked).await;
        let mut body = json!({
            "quote": quote["quote"],
            "walletAddress": WALLET,
            "returnUrl": "https://shop.example/back",
        });
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let confirmed = post("/api/v1/buy/confirm", &body).await;
        let pay_path = confirmed["paymentUrl"].as_str().unwrap();
        let pay_path = pay_path.strip_prefix("https://pay.example.com").unwrap().to_owned();
        Self { id: confirmed["orderId"].as_i64().unwrap(), pay_path }
    }

    /// An order that has ended, so that its callback is due: cancelled by an operator.
    pub async fn ended(context: &TestContext, partner: &Partner, callback_url: &str) -> Self {
        let order = Self::order(context, partner, None, Some(callback_url)).await;
        order.event(context, "cancel").await.assert_status(200);
        order
    }

    /// An operator's event.
    pub async fn event(&self, context: &TestContext, event: &str) -> Answer {
        let path = format!("/admin/v1/orders/{}/events", self.id);
        context.admin(http::Method::POST, &path, json!({"event": event})).await
    }

    /// Its status, cause and timeline as an operator sees them.
    pub async fn seen(&self, context: &TestContext) -> Value {
        let path = format!("/admin/v1/orders/{}", self.id);
        let answer = context.admin(http::Method::GET, &path, json!({})).await;
        answer.assert_status(200);
        answer.json()
    }
}
