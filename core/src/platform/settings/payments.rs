//! Settings of payments and of what they buy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `payments`
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Payments {
    /// Treatment of a payment that its order does not want: the second one, or a late one.
    pub unexpected: Unexpected,
}

/// Treatment of a payment that its order does not want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unexpected {
    /// It is given back at once.
    #[default]
    Refund,
    /// It waits for an operator.
    Hold,
}

/// `quotes`
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Quotes {
    /// Largest move of the price between an estimated quote and its payment; beyond it the order is
    /// blocked.
    #[schemars(range(min = 0, max = 100), extend("x-unit" = "percent"))]
    pub estimated_slippage_max: u32,
}

impl Default for Quotes {
    fn default() -> Self {
        Self { estimated_slippage_max: 2 }
    }
}
