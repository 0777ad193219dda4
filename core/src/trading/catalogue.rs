//! The market: currencies, pairs with their prices, payment methods, regions. One immutable
//! catalogue with one version: pairs, methods, prices and quotes of a request come from the same.

mod load;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use rampart_types::{
    Caip19, Chain, CurrencyCode, CurrencyDetails, PairCode, Preserialized, crypto_scale,
};

/// Everything that can be traded and how it is paid, as of one version.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// `change_counter('catalogue')`; sent as `X-Catalog-Version`.
    pub revision: i64,
    /// Currencies by code.
    pub currencies: BTreeMap<CurrencyCode, Arc<Currency>>,
    /// Pairs by code.
    pub pairs: BTreeMap<PairCode, Arc<Pair>>,
    /// Every payment method, the disabled ones too, in the default order.
    pub payment_methods: Vec<Arc<PaymentMethod>>,
    /// Methods that users of a country prefer, best first, by alpha-2 code.
    pub preferences: HashMap<String, Vec<String>>,
    /// `xx-xx`, in order.
    pub regions: Vec<String>,
    /// Nationalities that can register.
    pub nationalities: Vec<Nationality>,
    by_caip19: HashMap<Caip19, CurrencyCode>,
}

impl Catalogue {
    /// The currency with this CAIP-19 id, aliases included.
    pub fn by_caip19(&self, id: &Caip19) -> Option<&Arc<Currency>> {
        self.currencies.get(self.by_caip19.get(id)?)
    }

    /// The pair of a crypto and a fiat currency.
    pub fn pair_of(&self, base: CurrencyCode, quote: CurrencyCode) -> Option<&Arc<Pair>> {
        self.pairs.get(&PairCode::new(base, quote))
    }

    /// `100.00 EUR`, `0.00142 BTC`: fiat with all of its decimals, as people write it.
    pub(crate) fn format_amount(&self, value: Decimal, code: &str) -> String {
        let currency = code.parse().ok().and_then(|code| self.currencies.get(&code));
        match currency.filter(|currency| currency.crypto.is_none()) {
            Some(fiat) => format!("{value:.*} {code}", usize::try_from(fiat.scale()).unwrap_or(0)),
            None => format!("{} {code}", value.normalize()),
        }
    }

    /// The payment method with this code, disabled or not.
    pub fn payment_method(&self, code: &str) -> Option<&Arc<PaymentMethod>> {
        self.payment_methods.iter().find(|method| method.code == code)
    }
}

/// A currency.
#[derive(Debug)]
pub struct Currency {
    /// Code, ticker, name and CAIP-19 id, as they stand in answers.
    pub details: Arc<Preserialized<CurrencyDetails>>,
    /// Decimals of the ISO 4217 unit or of the chain.
    pub decimals: u32,
    /// What is special to a crypto currency; `None` for fiat.
    pub crypto: Option<Crypto>,
}

impl Currency {
    /// The code.
    pub fn code(&self) -> CurrencyCode {
        self.details.code
    }

    /// Decimals that amounts carry: fiat to the ISO exponent, crypto to min(chain, 8).
    pub fn scale(&self) -> u32 {
        if self.crypto.is_some() { crypto_scale(self.decimals) } else { self.decimals }
    }
}

/// What is special to a crypto currency.
#[derive(Debug)]
pub struct Crypto {
    /// The chain whose addresses and tags it takes.
    pub chain: Chain,
    /// The chain's name where the currency's own does not tell, for people.
    pub chain_name: Option<String>,
    /// Whether it takes a destination tag.
    pub supports_tag: bool,
    /// URL of an address without the address.
    pub address_explorer: Option<String>,
    /// URL of a transaction without its id.
    pub transaction_explorer: Option<String>,
}

/// A crypto currency against a fiat currency.
#[derive(Debug)]
pub struct Pair {
    /// `BTC-EUR`.
    pub code: PairCode,
    /// The crypto currency.
    pub base: Arc<Currency>,
    /// The fiat currency.
    pub quote: Arc<Currency>,
    /// Buying; bounds in fiat.
    pub buy: Side,
    /// Selling; bounds in crypto.
    pub sell: Side,
    /// Spread in percent of what the other fees leave of the fiat amount.
    pub spread_percentage: Decimal,
    /// Fee of the network for one delivery, in fiat.
    pub network_fee: Decimal,
    /// The service's own fee in percent of the fiat amount.
    pub provider_fee_percentage: Decimal,
    /// Lifetime of a quote where it is not the edge's default.
    pub quote_lifetime_seconds: Option<u32>,
    /// The price, if one was ever set.
    pub price: Option<Price>,
}

impl Pair {
    /// The mid price, if it may be quoted at `now`.
    pub fn live_price(&self, now: DateTime<Utc>) -> Option<Decimal> {
        self.price.as_ref().filter(|price| price.is_fresh(now)).map(|price| price.amount)
    }

    /// Whether buying can be quoted at `now`. Without a fresh price it is as in maintenance (ER008),
    /// whatever the operator's status says.
    pub fn buy_status(&self, now: DateTime<Utc>) -> PairStatus {
        self.status_of(&self.buy, now)
    }

    /// The same for selling (ER016).
    pub fn sell_status(&self, now: DateTime<Utc>) -> PairStatus {
        self.status_of(&self.sell, now)
    }

    fn status_of(&self, side: &Side, now: DateTime<Utc>) -> PairStatus {
        match side.status {
            PairStatus::Enabled if self.live_price(now).is_none() => PairStatus::Maintenance,
            status => status,
        }
    }
}

/// One direction of a pair.
#[derive(Debug)]
pub struct Side {
    /// Whether it can be quoted.
    pub status: PairStatus,
    /// Smallest amount.
    pub min: Decimal,
    /// Largest amount.
    pub max: Decimal,
}

/// Whether a direction of a pair can be quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PairStatus {
    /// Yes.
    Enabled,
    /// Not offered.
    Disabled,
    /// Not now: ER008, ER016.
    Maintenance,
}

/// A price: fiat for one unit of crypto.
#[derive(Debug)]
pub struct Price {
    /// The mid price.
    pub amount: Decimal,
    /// Whether the operator set it by hand.
    pub fixed: bool,
    /// When it was set or read.
    pub observed_at: DateTime<Utc>,
    /// Age in seconds from which it is not quoted (ER008); `None` never ages.
    pub max_age_seconds: Option<u32>,
}

impl Price {
    /// Whether it may be quoted at `now`.
    pub fn is_fresh(&self, now: DateTime<Utc>) -> bool {
        let age = (now - self.observed_at).num_seconds();
        self.max_age_seconds.is_none_or(|max| age < i64::from(max))
    }
}

/// A payment method.
#[derive(Debug)]
pub struct PaymentMethod {
    /// The service's code.
    pub code: String,
    /// Its name for people.
    pub label: String,
    /// The payment service provider behind it.
    pub psp: String,
    /// What it is, for a method-order policy.
    pub kind: String,
    /// Largest amount, in fiat.
    pub limit: Decimal,
    /// Fixed fee, in fiat.
    pub fee_fixed: Decimal,
    /// Fee in percent of the fiat amount.
    pub fee_percentage: Decimal,
    /// Seconds that a user has to pay.
    pub expiration_period_seconds: u32,
    /// Whether the payment page wants a tab of its own.
    pub open_in_new_tab: bool,
    /// Whether the rate is fixed when the payment arrives instead of when it is ordered.
    pub uses_estimated_quote: bool,
    /// Whether it is offered.
    pub enabled: bool,
    /// `{type, value}` pairs for the partner's user interface.
    pub context: serde_json::Value,
}

/// A nationality.
#[derive(Clone, Debug, schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Nationality {
    /// Name in English.
    pub name: String,
    /// ISO 3166-1 alpha-2.
    pub code: String,
    /// Whether a selfie with the identity document is asked for.
    pub id_selfie_required: bool,
}
