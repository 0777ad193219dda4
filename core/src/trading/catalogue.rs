//! The market: currencies, pairs with their prices, payment methods, regions. A catalogue is
//! immutable: pairs, methods, prices and quotes of one request have the same revision.

mod load;
mod maintenance;
mod payment_method;
mod per_catalogue;
mod rates;
mod routes;
mod uncommitted;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;
use serde_json::Value;

pub use self::payment_method::{PaymentMethod, PaymentMethodKind};
pub use self::per_catalogue::{OfCatalogue, PerCatalogue};
pub use self::routes::{Direction, Leg, Route, Routes};
use crate::http::language::Texts;
use crate::platform::db::BrokenRow;
use crate::platform::error::Code;
use rampart_types::{
    Caip19, Chain, CurrencyCode, CurrencyDetails, DestinationTag, InvalidTag, PairCode,
    Preserialized, TagKind, crypto_scale,
};

/// Currencies, pairs and payment methods of one revision.
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
    /// Routes of money and coins to connectors.
    pub routes: Routes,
    /// `xx-xx`, in order: the regions that partners see and send.
    pub regions: Vec<String>,
    /// The regions in the paths of pages: the same, and one for each language that none of them
    /// speaks.
    pub page_regions: Vec<String>,
    /// Nationalities that can register.
    pub nationalities: Vec<Nationality>,
    /// Rows that were left out.
    pub(crate) broken: Vec<BrokenRow>,
    by_caip19: HashMap<Caip19, CurrencyCode>,
}

impl Catalogue {
    /// The currency with this CAIP-19 id, aliases included.
    pub fn by_caip19(&self, id: &Caip19) -> Option<&Arc<Currency>> {
        self.currencies.get(self.by_caip19.get(id)?)
    }

    /// The pair of a crypto and a fiat currency.
    pub fn pair(&self, base: CurrencyCode, quote: CurrencyCode) -> Option<&Arc<Pair>> {
        self.pairs.get(&PairCode::new(base, quote))
    }

    /// An amount for people: `100.00 EUR`, `0.00142 BTC`; fiat has all of its decimals.
    pub fn format_amount(&self, value: Decimal, code: &str) -> String {
        let currency = code.parse().ok().and_then(|code| self.currencies.get(&code));
        match currency.filter(|currency| currency.crypto.is_none()) {
            Some(fiat) => format!("{value:.*} {code}", usize::try_from(fiat.scale()).unwrap_or(0)),
            None => format!("{} {code}", value.normalize()),
        }
    }

    /// The name of the network that a currency's coins move on; empty for an unknown code.
    pub(crate) fn network_name(&self, code: &str) -> String {
        let currency = code.parse().ok().and_then(|code| self.currencies.get(&code));
        let named = currency.and_then(|currency| currency.crypto.as_ref()?.chain_name.clone());
        let own = || currency.map(|currency| currency.details.name.to_string());
        named.or_else(own).unwrap_or_default()
    }

    /// The payment method with this code, disabled or not.
    pub fn payment_method(&self, code: &str) -> Option<&Arc<PaymentMethod>> {
        self.payment_methods.iter().find(|method| method.code == code)
    }

    /// The name of the payment method with this code on a page; the code if it is unknown.
    pub(crate) fn payment_method_name(&self, texts: Texts, code: &str) -> String {
        self.payment_method(code).map_or_else(|| code.to_owned(), |method| method.name(texts))
    }
}

/// A currency.
#[derive(Debug)]
pub struct Currency {
    /// Code, ticker, name and CAIP-19 id, as in responses.
    pub details: Arc<Preserialized<CurrencyDetails>>,
    /// Decimals of the ISO 4217 unit or of the chain.
    pub decimals: u32,
    /// Properties of a crypto currency; `None` for fiat.
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

/// Properties of a crypto currency.
#[derive(Debug)]
pub struct Crypto {
    /// The chain that its addresses and tags belong to.
    pub chain: Chain,
    /// The chain's display name where it differs from the currency's.
    pub chain_name: Option<String>,
    /// True if it takes a destination tag.
    pub supports_tag: bool,
    /// URL of an address without the address.
    pub address_explorer: Option<String>,
    /// URL of a transaction without its id.
    pub transaction_explorer: Option<String>,
}

impl Crypto {
    /// The form of its tags: that of its chain, if the currency takes one.
    pub const fn tag_kind(&self) -> TagKind {
        if self.supports_tag { self.chain.tag_kind() } else { TagKind::None }
    }

    /// Reads a tag from a request: `null` is no tag.
    ///
    /// # Errors
    /// ER044 where the currency takes no tag, ER015 for a tag of another form.
    pub fn read_tag(&self, value: &Value) -> Result<Option<DestinationTag>, Code> {
        DestinationTag::read(self.tag_kind(), value).map_err(|invalid| match invalid {
            InvalidTag::Unsupported => Code::DestinationTagUnsupported,
            InvalidTag::Malformed => Code::DestinationTagInvalid,
        })
    }
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
    pub buy: PairSide,
    /// Selling; bounds in crypto.
    pub sell: PairSide,
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
    /// Time before which quotes were sealed that are void, if there are any.
    pub quotes_valid_from: Option<DateTime<Utc>>,
}

impl Pair {
    /// True if it can be bought or sold, as far as its status decides.
    pub fn is_offered(&self) -> bool {
        [&self.buy, &self.sell].into_iter().any(|side| side.status == PairStatus::Enabled)
    }

    /// The mid price, if it may be quoted at `now`.
    pub fn live_price(&self, now: DateTime<Utc>) -> Option<Decimal> {
        self.price.as_ref().filter(|price| price.is_open(now)).map(|price| price.amount)
    }

    /// The same for a live client: a price that has no end is nobody's observation.
    pub fn observed_price(&self, now: DateTime<Utc>) -> Option<Decimal> {
        let ends = self.price.as_ref().is_some_and(|price| price.max_age_seconds.is_some());
        self.live_price(now).filter(|_| ends)
    }
}

/// One direction of a pair.
#[derive(Debug)]
pub struct PairSide {
    /// The status that the operator has set; maintenance while a maintenance window closes it.
    pub status: PairStatus,
    /// Smallest amount.
    pub min: Decimal,
    /// Largest amount.
    pub max: Decimal,
}

/// Availability of one direction of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PairStatus {
    /// It can be quoted.
    Enabled,
    /// Not offered.
    Disabled,
    /// Temporarily not offered: ER008, ER016.
    Maintenance,
}

impl PairStatus {
    /// The status of this name in the database; disabled for any other.
    fn from_name(name: &str) -> Self {
        match name {
            "enabled" => Self::Enabled,
            "maintenance" => Self::Maintenance,
            _ => Self::Disabled,
        }
    }
}

/// A price: fiat for one unit of crypto.
#[derive(Debug)]
pub struct Price {
    /// The mid price.
    pub amount: Decimal,
    /// True if the operator set it by hand.
    pub fixed: bool,
    /// Time at which it was set or read.
    pub observed_at: DateTime<Utc>,
    /// Age in seconds from which it is stale and not quoted (ER008); `None` is never.
    pub max_age_seconds: Option<u32>,
    /// The price that the sources say instead, too far away to be believed; it is not quoted (ER008)
    /// while there is one.
    pub deviating: Option<Decimal>,
}

impl Price {
    /// True if it may be quoted at `now`.
    pub fn is_open(&self, now: DateTime<Utc>) -> bool {
        self.deviating.is_none() && self.is_fresh(now)
    }

    /// True if it is not too old at `now`.
    pub fn is_fresh(&self, now: DateTime<Utc>) -> bool {
        self.stale_at().is_none_or(|stale| now < stale)
    }

    /// When it gets too old, if it does.
    pub fn stale_at(&self) -> Option<DateTime<Utc>> {
        Some(self.observed_at + TimeDelta::seconds(self.max_age_seconds?.into()))
    }

    /// Part of it by which the price that the sources say instead is away; zero without one.
    pub fn deviation(&self) -> Option<Decimal> {
        let away = self.deviating.map_or(Decimal::ZERO, |other| (other - self.amount).abs());
        away.checked_div(self.amount)
    }
}

/// A nationality.
#[derive(Clone, Debug, schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Nationality {
    /// Name in English.
    pub name: String,
    /// ISO 3166-1 alpha-2.
    pub code: String,
    /// True if a selfie with the identity document is required.
    pub id_selfie_required: bool,
}
