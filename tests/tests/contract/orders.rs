//! Orders: confirmed once, moved by one table, seen by their own partner and user alone.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be made fails its test")]

mod accounts;
mod confirm;
mod day_limit;
mod locked_rows;
mod offers;
mod read;
mod receipt;
mod status;
mod together;
mod void_quotes;
mod wallet_check;

use http::Method;
use rampart_core::platform::crypto::Purpose;
use rampart_core::trading::quotes::{Quote, Side, token};
use rampart_tests::answer::Answer;
pub(crate) use rampart_tests::buyer::WALLET as BTC;
use rampart_tests::partner::{Partner, Request};
use rampart_tests::test_context::TestContext;
use rampart_types::FeeBreakdown;
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) const OTHER_BTC: &str = "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2";
const XRP: &str = "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh";

/// A partner with one user, who is who all its requests are for.
pub(crate) struct Shop {
    partner: Partner,
    user: Uuid,
    identifier: String,
}

impl Shop {
    pub(crate) async fn of(context: &TestContext, slug: &str) -> Self {
        let partner = context.partner(slug).await;
        let identifier = format!("{slug:x<36}");
        let user = user(context, &partner, &identifier).await;
        Self { partner, user, identifier }
    }

    /// The same partner with another user.
    pub(crate) async fn with_another_user(&self, context: &TestContext) -> Self {
        let identifier = format!("{}y", self.identifier);
        let user = user(context, &self.partner, &identifier).await;
        Self { partner: self.partner.clone(), user, identifier }
    }

    /// The shop's partner.
    pub(crate) fn partner(&self) -> &Partner {
        &self.partner
    }

    /// The partner's identifier of the user.
    pub(crate) fn identifier(&self) -> &str {
        &self.identifier
    }

    /// The same shop, talking to another edge.
    pub(crate) fn at(&self, edge: &TestContext) -> Self {
        let (user, identifier) = (self.user, self.identifier.clone());
        Self { partner: self.partner.at(edge), user, identifier }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> Request {
        self.partner.request(method, path).header("user-identifier", &self.identifier)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path).send().await
    }

    pub(crate) async fn v1(&self, body: &Value) -> Answer {
        self.request(Method::POST, "/api/v1/buy/confirm").json(body).send().await
    }

    async fn v2(&self, body: &Value) -> Answer {
        self.request(Method::POST, "/api/v2/buy/confirm").json(body).send().await
    }

    /// A quote over 100.00 EUR for 0.001 BTC by credit card, unless the test says otherwise.
    pub(crate) fn quote(&self, context: &TestContext, change: impl FnOnce(&mut Quote)) -> String {
        let now = context.clock().now();
        let fee = |text: &str| text.parse().unwrap();
        let mut quote = Quote {
            id: context.clock().uuid().unwrap().into(),
            client: self.partner.id.parse().unwrap(),
            user: None,
            side: Side::Buy,
            pair: "BTC-EUR".parse().unwrap(),
            payment_method: "creditCard".to_owned(),
            fiat: "100".parse().unwrap(),
            crypto: "0.001".parse().unwrap(),
            price: "90000".parse().unwrap(),
            fees: FeeBreakdown {
                partner: fee("1"),
                provider: fee("2.5"),
                payment_method: fee("2.75"),
                network: fee("1.5"),
                spread: fee("2.25"),
                affiliate: fee("0"),
            },
            partner_fee_percentage: fee("1"),
            requested_fee_percentage: None,
            wallet_address: None,
            destination_tag: None,
            country: None,
            is_estimated: false,
            policy_decisions: json!([]),
            catalogue_revision: i64::MAX,
            fee_rules: None,
            issued_at: now,
            expires_at: now + std::time::Duration::from_secs(300),
        };
        let fiat = quote.fiat;
        change(&mut quote);
        if quote.fiat != fiat {
            // Postgres holds an order to the fee identity.
            let rest = quote.fiat - quote.fees.total().unwrap();
            quote.crypto = (rest / quote.price).trunc_with_scale(8);
        }
        let snapshot = context.core().snapshots.current();
        token::seal(context.core(), &snapshot.tenants[&quote.client], &quote).unwrap().into()
    }

    /// Confirms a new quote and answers the order's number.
    async fn order(&self, context: &TestContext, change: impl FnOnce(&mut Value)) -> i64 {
        let mut body = confirm_of(&self.quote(context, |_| ()));
        change(&mut body);
        let answer = self.v1(&body).await;
        answer.assert_status(200);
        answer.json()["orderId"].as_i64().unwrap()
    }

    /// An offer that fixes what `columns` say, as its creation would have left it.
    async fn offer(&self, context: &TestContext, changes: &str) -> Uuid {
        let (offer, now) = (context.clock().uuid().unwrap(), context.clock().now());
        let client: Uuid = self.partner.id.parse().unwrap();
        sqlx::query(
            "insert into offer (client_id, offer_id, base_currency, quote_currency, \
             payment_method, quote_amount, fixed_amount, fixed_currency, fixed_payment_method, \
             show_wallet_address, return_url, callback_url, partner_reference, expires_at, \
             created_at) values ($1, $2, 'BTC', 'EUR', 'creditCard', 100, false, false, false, \
             true, 'https://shop.example/back', 'https://shop.example/cb?a=b', 'offer-ref', \
             $3::timestamptz + interval '1 hour', $3)",
        )
        .bind(client)
        .bind(offer)
        .bind(now)
        .execute(context.db())
        .await
        .unwrap();
        if !changes.is_empty() {
            let statement = format!("update offer set {changes} where offer_id = $1");
            let statement = sqlx::AssertSqlSafe(statement);
            sqlx::query(statement).bind(offer).execute(context.db()).await.unwrap();
        }
        offer
    }
}

/// Lets BTC trade at 100000 USD as well, which all edges of the database know afterwards.
async fn with_dollars(edges: &[&TestContext]) {
    let pair = "insert into currency_pair (pair, base_currency, quote_currency, buy_min, buy_max, \
                    sell_min, sell_max, spread_percentage, network_fee, provider_fee_percentage) \
                select 'BTC-USD', 'BTC', 'USD', buy_min, buy_max, sell_min, sell_max, \
                    spread_percentage, network_fee, provider_fee_percentage \
                from currency_pair where pair = 'BTC-EUR'";
    let told = "update change_counter set revision = revision + 1 where scope = 'catalogue'";
    for statement in [pair, told] {
        sqlx::query(statement).execute(edges[0].db()).await.unwrap();
    }
    let price = json!({"price": 100_000});
    edges[0].admin(Method::PUT, "/admin/v1/prices/BTC-USD", price).await.assert_status(200);
    for edge in edges {
        edge.core().refresh().await.unwrap();
    }
}

/// A user of the partner, linked to the identifier.
pub(crate) async fn user(context: &TestContext, partner: &Partner, identifier: &str) -> Uuid {
    let (user, now) = (context.clock().uuid().unwrap(), context.clock().now());
    let client: Uuid = partner.id.parse().unwrap();
    let message = format!("identifier/{client}/{identifier}");
    let digest = context.core().keys.mac(Purpose::BlindIndex, message.as_bytes()).unwrap();
    // These tests are about other bounds than the level's, and not about what is still to be shown.
    sqlx::query(
        "insert into end_user (client_id, user_id, limit_overrides, email_status, \
         identity_status, amld5_status, privacy_agreement_status, \
         residential_address_status, created_at) \
         values ($1, $2, '{\"user_day_limit\": 1000000}', 'verified', 'verified', 'verified', \
         'verified', 'present', $3)",
    )
    .bind(client)
    .bind(user)
    .bind(now)
    .execute(context.db())
    .await
    .unwrap();
    sqlx::query(
        "insert into user_identifier (client_id, identifier_digest, user_id, created_at) \
         values ($1, $2, $3, $4)",
    )
    .bind(client)
    .bind(digest.as_ref())
    .bind(user)
    .bind(now)
    .execute(context.db())
    .await
    .unwrap();
    user
}

pub(crate) fn confirm_of(quote: &str) -> Value {
    json!({"quote": quote, "walletAddress": BTC, "returnUrl": "https://shop.example/back"})
}

fn confirm_under(offer: Uuid, quote: &str) -> Value {
    json!({"quote": quote, "walletAddress": BTC, "offerId": offer})
}

/// One number of the database.
pub(crate) async fn count(context: &TestContext, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement).fetch_one(context.db()).await.unwrap()
}

/// An operator's event.
async fn happen(context: &TestContext, order: i64, body: Value) -> Answer {
    context.admin(Method::POST, &format!("/admin/v1/orders/{order}/events"), body).await
}
