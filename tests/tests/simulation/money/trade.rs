//! Orders and sales, as partners make them.

use std::sync::{Mutex, PoisonError};

use http::Method;
use rampart_tests::buyer::WALLET;
use rampart_tests::partner::Partner;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::act::{Act, script};
use super::dice::Dice;
use super::world::World;

/// Largest amount of a purchase, in euros: a third more needs no proof of the wallet either.
const FIAT_MAX: usize = 700;

/// An order or a sale, and what shall happen to it.
pub(crate) struct Trade {
    /// Index in the run.
    pub(crate) index: u64,
    pub(crate) id: i64,
    /// Index of its partner.
    pub(crate) tenant: usize,
    pub(crate) is_sale: bool,
    /// The provider of what the user pays.
    pub(crate) provider: &'static str,
    /// Amount that the user pays.
    pub(crate) due: Decimal,
    pub(crate) currency: &'static str,
    /// Of a sale, where the coins are to go.
    pub(crate) address: Value,
    pub(crate) script: Vec<Act>,
    /// Reports so far, with who has reported.
    pub(crate) reports: Mutex<Vec<(&'static str, Value)>>,
}

impl Trade {
    /// Opens the trade of an index; all about it follows from the seed.
    pub(crate) async fn open(world: &World, tokens: &[String], index: u64, acts: usize) -> Self {
        let mut dice = Dice::named(world.seed, "trade", &[index]);
        let tenant = usize::from(dice.chance(25));
        let is_sale = dice.chance(35);
        let method = dice.weigh(&[(60, "creditCard"), (40, "bankTransfer")]);
        let post = async |path: &str, body: &Value| {
            world.step();
            post(&world.partners[tenant], &tokens[tenant], path, body).await
        };
        let (quote, confirm) = if is_sale {
            let amount = Decimal::new(1 + i64::try_from(dice.below(30)).unwrap(), 2);
            let asked = json!({"currencyPair": "ETH-EUR", "cryptoAmount": amount.to_string()});
            let quote = post("/api/v1/sell/quote", &asked).await;
            let confirm = json!({"quote": quote["quote"]});
            (quote, post("/api/v1/sell/confirm", &confirm).await)
        } else {
            let asked = json!({"currencyPair": "BTC-EUR", "paymentMethod": method,
                "fiatAmount": 30 + dice.below(FIAT_MAX)});
            let quote = post("/api/v1/buy/quote", &asked).await;
            let confirm = json!({"quote": quote["quote"], "walletAddress": WALLET,
                "returnUrl": "https://shop.example/back"});
            (quote, post("/api/v1/buy/confirm", &confirm).await)
        };
        let number = |name: &str| quote[name].to_string().trim_matches('"').parse::<Decimal>();
        let due = if is_sale { number("cryptoAmount") } else { number("fiatAmount") };
        let id = confirm["orderId"].as_i64().unwrap();
        world.indexes.lock().unwrap_or_else(PoisonError::into_inner).insert(id, index);
        Self {
            index,
            id,
            tenant,
            is_sale,
            provider: match (is_sale, method) {
                (true, _) => "chain",
                (false, "creditCard") => "cards",
                (false, _) => "bank",
            },
            due: due.unwrap(),
            currency: if is_sale { "ETH" } else { "EUR" },
            address: confirm["walletAddress"].clone(),
            script: script(world.seed, index, acts),
            reports: Mutex::default(),
        }
    }

    /// So many hundredths of what is due, as exact as the currency is.
    pub(crate) fn part(&self, hundredths: u16) -> Decimal {
        let amount = self.due * Decimal::new(hundredths.into(), 2);
        amount.round_dp(if self.is_sale { 8 } else { 2 }).normalize()
    }
}

/// A request of a partner that must succeed.
async fn post(partner: &Partner, token: &str, path: &str, body: &Value) -> Value {
    let request = partner.anonymous(Method::POST, path);
    let request = request.header("authorization", &format!("Bearer {token}")).json(body);
    Box::pin(request.send()).await.assert_status(200).json()
}
