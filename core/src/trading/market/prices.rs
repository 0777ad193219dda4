//! `GET /api/v1/prices` and `GET /api/v2/prices`: prices of one coin, partner fee and spread
//! included, payment method fees excluded.
//!
//! A quote takes the fee from the fiat amount and the spread from the rest. So do these prices:
//! with `share = (1 − fee ÷ 100) × (1 − spread ÷ 100)`, one coin is bought for `mid ÷ share` and
//! sold for `mid × share`, as in a quote without other fees. Without `?fee=` the tenant's default
//! is taken, as in a quote. Fees of a policy depend on the single trade and are not included.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::Method;
use rust_decimal::{Decimal, RoundingStrategy};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, Member, optional};
use crate::endpoint::{Cache, Deprecation, Endpoint, PreserializedJson};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::catalogue::{Pair, PairStatus};
use crate::trading::quotes::Side;
use crate::trading::routing;
use rampart_types::money::round_fiat;
use rampart_types::{CurrencyDetails, JsonDecimal, PairCode, Preserialized, decimal};

/// Least significant digits of a price, so that a coin worth a cent has one too.
const SIGNIFICANT_DIGITS: u32 = 6;

const DETAILS: &str = "The price of one coin, bought and sold, with the partner's fee and the \
                       spread, without fees of payment methods. A pair that cannot be quoted now \
                       has no price.";

const FEE: Member = optional(
    "fee",
    Kind::Decimal,
    "The partner's fee in percent, 0 to 5 within the client's cap; the client's default if omitted.",
);

/// Version 1: a number by side and pair.
pub struct V1;

/// Version 2: both numbers by pair, with the currencies.
pub struct V2;

impl Endpoint for V1 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v1/prices";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const ERRORS: &'static [Code] = &[Code::FeeOutOfBounds];
    const CACHE: Cache = Cache::Revalidate;
    const DEPRECATION: Option<Deprecation> = Some(Deprecation { successor: V2::PATH });
    const DOC: Doc = Doc {
        summary: "List prices by side",
        details: DETAILS,
        query: &[FEE],
        answer: r#"{"buy": {"BTC-EUR": 90452.26}, "sell": {"BTC-EUR": 89550}}"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = Decimal;
    type Response = PreserializedJson<BySide>;

    fn read(input: &Input, client: &Client) -> Result<Decimal> {
        read_fee(input, client)
    }

    async fn call(core: &Core, client: Client, fee: Decimal) -> Result<Self::Response> {
        let now = core.clock.now();
        core.price_cache.of(&client.catalogue).by_side.get(&client, fee, now, || {
            let mut prices = BySide::default();
            for (pair, shown) in quotable(&client, fee, now) {
                prices.buy.extend(shown.buy.map(|price| (pair.code, price.into())));
                prices.sell.extend(shown.sell.map(|price| (pair.code, price.into())));
            }
            prices
        })
    }
}

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/prices";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const ERRORS: &'static [Code] = &[Code::FeeOutOfBounds];
    const CACHE: Cache = Cache::Revalidate;
    const DOC: Doc = Doc {
        summary: "List prices by pair",
        details: DETAILS,
        query: &[FEE],
        answer: r#"{"XRP-EUR": {
            "sourceCurrency": {
                "code": "EUR", "ticker": "EUR", "name": "Euro", "caip19": "swift:0/iso4217:EUR"
            },
            "targetCurrency": {
                "code": "XRP", "ticker": "XRP", "name": "XRP", "caip19": "xrpl:0/slip44:144"
            },
            "buy": 2.01005,
            "sell": 1.99
        }}"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = Decimal;
    type Response = PreserializedJson<ByPair>;

    fn read(input: &Input, client: &Client) -> Result<Decimal> {
        read_fee(input, client)
    }

    async fn call(core: &Core, client: Client, fee: Decimal) -> Result<Self::Response> {
        let entry = |(pair, shown): (&Pair, SidePrices)| {
            let prices = PairPrices {
                source_currency: Arc::clone(&pair.quote.details),
                target_currency: Arc::clone(&pair.base.details),
                buy: shown.buy.map(JsonDecimal),
                sell: shown.sell.map(JsonDecimal),
            };
            (pair.code, prices)
        };
        let now = core.clock.now();
        let list = || quotable(&client, fee, now).map(entry).collect();
        core.price_cache.of(&client.catalogue).by_pair.get(&client, fee, now, list)
    }
}

/// `?fee=` in percent, else the client's default.
fn read_fee(input: &Input, client: &Client) -> Result<Decimal> {
    let mut fields = Fields::of_query(input.head.query.as_deref());
    let accepted = |fee: &Decimal| client.tenant.accepts_fee(*fee);
    let fee = fields.optional("fee", Code::FeeOutOfBounds, |value| {
        value.as_str().and_then(decimal::parse).filter(accepted)
    });
    fields.finish(Some(fee.unwrap_or(client.tenant.default_fee())))
}

/// Prices by side; a pair is listed only under sides that can be quoted now.
#[derive(Debug, Default, JsonSchema, Serialize)]
#[schemars(rename = "PricesBySide")]
pub struct BySide {
    /// Prices of buying, by pair.
    buy: BTreeMap<PairCode, JsonDecimal>,
    /// Prices of selling, by pair.
    sell: BTreeMap<PairCode, JsonDecimal>,
}

/// Prices by pair.
pub type ByPair = BTreeMap<PairCode, PairPrices>;

/// Prices of one pair, named from the buyer's side: `source` is fiat, `target` is crypto.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PairPrices {
    /// Currency that is given.
    source_currency: Arc<Preserialized<CurrencyDetails>>,
    /// Currency that is received.
    target_currency: Arc<Preserialized<CurrencyDetails>>,
    /// `null` while it cannot be bought.
    buy: Option<JsonDecimal>,
    /// `null` while it cannot be sold.
    sell: Option<JsonDecimal>,
}

/// A pair's prices, by side that can be quoted.
#[derive(Debug, PartialEq)]
struct SidePrices {
    buy: Option<Decimal>,
    sell: Option<Decimal>,
}

/// The pairs of which at least one side can be quoted at `now`.
fn quotable(
    client: &Client,
    fee: Decimal,
    now: DateTime<Utc>,
) -> impl Iterator<Item = (&Pair, SidePrices)> {
    client.catalogue.pairs.values().filter_map(move |pair| {
        let mid = routing::price(&client.tenant, pair, now)?;
        let exponent = pair.quote.decimals;
        let (buy, sell) = with_costs(mid, [fee, pair.spread_percentage], exponent)?;
        let status = |side| routing::pair_status(client, pair, side, now);
        let shown = SidePrices {
            buy: (status(Side::Buy) == PairStatus::Enabled).then_some(buy),
            sell: (status(Side::Sell) == PairStatus::Enabled).then_some(sell),
        };
        (shown.buy.is_some() || shown.sell.is_some()).then_some((&**pair, shown))
    })
}

/// Buy and sell price around `mid` with `costs`, in percent, charged one after the other; `None`
/// when a number is too large. One of more than 28 digits is rounded: fewer are shown.
fn with_costs(mid: Decimal, costs: [Decimal; 2], exponent: u32) -> Option<(Decimal, Decimal)> {
    let [fee, spread] = costs.map(|cost| Decimal::ONE_HUNDRED - cost);
    let share = fee.checked_mul(spread)?.checked_div(Decimal::ONE_HUNDRED)?;
    let buy = mid.checked_mul(Decimal::ONE_HUNDRED)?.checked_div(share)?;
    let sell = mid.checked_mul(share)?.checked_div(Decimal::ONE_HUNDRED)?;
    Some((rounded(buy, exponent)?, rounded(sell, exponent)?))
}

/// Rounds half up to the currency's exponent, or to [`SIGNIFICANT_DIGITS`] if that is finer.
pub(crate) fn rounded(price: Decimal, exponent: u32) -> Option<Decimal> {
    let strategy = RoundingStrategy::MidpointAwayFromZero;
    let significant = price.round_sf_with_strategy(SIGNIFICANT_DIGITS, strategy)?;
    Some(if significant.scale() > exponent { significant } else { round_fiat(price, exponent) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prices(mid: &str, costs: [&str; 2]) -> (String, String) {
        let decimal = |text| decimal::parse(text).unwrap();
        let (buy, sell) = with_costs(decimal(mid), costs.map(decimal), 2).unwrap();
        (buy.normalize().to_string(), sell.normalize().to_string())
    }

    #[test]
    fn the_spread_is_taken_from_what_the_fee_leaves() {
        let texts = |buy: &str, sell: &str| (buy.to_owned(), sell.to_owned());
        assert_eq!(prices("90000", ["0", "0"]), texts("90000", "90000"));
        // 90000 / (0.99 × 0.98) = 92764.378...
        assert_eq!(prices("90000", ["1", "2"]), texts("92764.38", "87318"));
        // 0.15 / 0.995 = 0.150753768...
        assert_eq!(prices("0.15", ["0", "0.5"]), texts("0.150754", "0.14925"));
        assert_eq!(prices("0.00001234", ["0", "1"]), texts("0.0000124646", "0.0000122166"));
    }

    #[test]
    fn a_price_of_many_digits_is_rounded_and_not_left_out() {
        let texts = |buy: &str, sell: &str| (buy.to_owned(), sell.to_owned());
        // The median of two sources may have as many.
        let price = prices("0.0912345678901234567", ["1.2345", "0.1234"]);
        assert_eq!(price, texts("0.0924891", "0.0899971"));
        let price = prices("90000", ["1.2345", "0.1234567890123456789012345"]);
        assert_eq!(price, texts("91237.58", "88779.21"));
    }

    proptest! {
        #[test]
        fn buying_never_costs_less_than_selling_brings(
            mid in 1_i64..1_000_000_000_000,
            scale in 0_u32..10,
            costs in prop::array::uniform2(0_i64..2500),
        ) {
            let mid = Decimal::new(mid, scale);
            let costs = costs.map(|cost| Decimal::new(cost, 2));
            let (buy, sell) = with_costs(mid, costs, 2).unwrap();
            prop_assert!(buy >= sell && sell > Decimal::ZERO);
        }
    }
}
