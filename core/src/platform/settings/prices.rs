//! Settings of the source of prices.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `prices`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// `static`: set by the operator; `http`: read from `prices.sources`.
    pub source: PriceSource,
    /// Sources by pair, for `http`.
    pub sources: BTreeMap<String, HttpPrice>,
    /// Time between two readings of the sources.
    #[schemars(range(min = 1, max = 86_400))]
    pub interval_seconds: u32,
    /// Age at which a price read from a source is too old to quote, unless the pair says otherwise.
    #[schemars(range(min = 1, max = 604_800))]
    pub max_age_seconds: u32,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            source: PriceSource::Static,
            sources: BTreeMap::new(),
            interval_seconds: 10,
            max_age_seconds: 120,
        }
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

/// One pair's source.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpPrice {
    /// An https URL that answers JSON.
    pub url: String,
    /// JSON pointer (RFC 6901) to the price, a number or a numeric string.
    pub pointer: String,
}
