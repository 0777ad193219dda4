//! Settings of payments and of what they buy.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most decimals of `quotes.estimated_slippage_max`.
const SLIPPAGE_DECIMALS: u32 = 2;

/// `payments`
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Payments {
    /// Treatment of an unexpected payment: a second one of its order, or a late one.
    pub unexpected: Unexpected,
}

/// Treatment of an unexpected payment.
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
    #[schemars(
        with = "String",
        extend("type" = "number", "x-unit" = "percent", "x-bounds" = "0 to 100, at most 2 decimals")
    )]
    pub estimated_slippage_max: Decimal,
}

impl Default for Quotes {
    fn default() -> Self {
        Self { estimated_slippage_max: Decimal::TWO }
    }
}

impl Quotes {
    /// Checks what the types alone do not.
    ///
    /// # Errors
    /// One sentence that names the setting.
    pub(crate) fn check(&self) -> Result<(), String> {
        let slippage = self.estimated_slippage_max;
        let is_within = (Decimal::ZERO..=Decimal::ONE_HUNDRED).contains(&slippage);
        if !is_within || slippage.normalize().scale() > SLIPPAGE_DECIMALS {
            return Err(format!(
                "'quotes.estimated_slippage_max' is {slippage}, not between 0 and 100 with at most \
                 {SLIPPAGE_DECIMALS} decimals"
            ));
        }
        Ok(())
    }
}
