//! Settings of the sources of prices.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest `prices.deviation_max`, in percent.
const DEVIATION_MAX: Decimal = Decimal::ONE_THOUSAND;
/// Most decimals of it.
const DEVIATION_DECIMALS: u32 = 2;

/// The refusal of sources that nobody reads.
const UNREAD_SOURCES: &str = "prices.sources is set, but prices.source is 'static', not 'http'";

/// `prices`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// `static`: set by the operator; `http`: read from `prices.sources`.
    #[schemars(extend("x-default" = "http where prices.sources names any, else static"))]
    pub source: Option<PriceSource>,
    /// Sources by pair, for `http` alone.
    pub sources: BTreeMap<String, Vec<HttpPrice>>,
    /// Least number of sources with a fresh price; with fewer a pair is closed.
    #[schemars(range(min = 1, max = 100), extend("x-unit" = "sources"))]
    pub sources_min: u32,
    /// Largest move of a price from one reading to the next; beyond it the pair is closed until a
    /// second source or an operator confirms the new price.
    #[schemars(
        with = "String",
        extend(
            "type" = "number",
            "x-unit" = "percent",
            "x-bounds" = "0 to 1000, at most 2 decimals"
        )
    )]
    pub deviation_max: Decimal,
    /// Time between two readings of the sources.
    #[schemars(range(min = 1, max = 86_400))]
    pub interval_seconds: u32,
    /// Age, by the source's time, at which a price is too old to quote, unless the pair says
    /// otherwise.
    #[schemars(range(min = 1, max = 604_800))]
    pub max_age_seconds: u32,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            source: None,
            sources: BTreeMap::new(),
            sources_min: 1,
            deviation_max: Decimal::TEN,
            interval_seconds: 10,
            max_age_seconds: 120,
        }
    }
}

impl Prices {
    /// Checks what the types alone do not.
    ///
    /// # Errors
    /// One sentence that names the setting.
    pub(crate) fn check(&self) -> Result<(), String> {
        let deviation = self.deviation_max;
        let is_within = (Decimal::ZERO..=DEVIATION_MAX).contains(&deviation);
        if !is_within || deviation.normalize().scale() > DEVIATION_DECIMALS {
            return Err(format!(
                "'prices.deviation_max' is {deviation}, not between 0 and {DEVIATION_MAX} with at \
                 most {DEVIATION_DECIMALS} decimals"
            ));
        }
        if self.source == Some(PriceSource::Static) && !self.sources.is_empty() {
            return Err(UNREAD_SOURCES.to_owned());
        }
        Ok(())
    }

    /// True if prices are read from sources.
    pub(crate) fn are_read(&self) -> bool {
        self.source.map_or(!self.sources.is_empty(), |source| source == PriceSource::Http)
    }

    /// True if the pair's price is read from sources.
    pub fn has_sources(&self, pair: &str) -> bool {
        self.are_read() && self.sources.contains_key(pair)
    }
}

/// Source of prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PriceSource {
    /// The operator sets them through the admin API.
    Static,
    /// The edge reads them from HTTP sources.
    Http,
}

/// One source of a pair's price.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpPrice {
    /// An https URL that answers JSON; plain http on this machine only.
    pub url: String,
    /// JSON pointer (RFC 6901) to the price, a number or a numeric string.
    pub pointer: String,
    /// JSON pointer to the source's own time of the price: RFC 3339, or seconds or milliseconds
    /// since 1970.
    pub time_pointer: String,
}
