//! What stands in the way of confirming a quote. Limits never fail a quote: they are told with it,
//! and fail the confirm (section 6.1 of the contract).

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::Side;
use crate::catalogue::{Pair, PaymentMethod};

/// A reason of `quoteUnconfirmableReasons`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "QuoteUnconfirmableReason")]
#[serde(rename_all = "camelCase")]
pub(super) enum Reason {
    /// The amount is outside what the pair takes.
    CurrencyLimitExceeded,
    /// The amount is above what the payment method takes.
    PaymentMethodLimitExceeded,
}

/// Reasons that pair and method give. A pair's limits are in what the user pays.
pub(super) fn reasons(
    side: Side,
    pair: &Pair,
    method: &PaymentMethod,
    (fiat, crypto): (Decimal, Decimal),
) -> Vec<Reason> {
    let (limits, paid) = match side {
        Side::Buy => (&pair.buy, fiat),
        Side::Sell => (&pair.sell, crypto),
    };
    let outside = !(limits.min..=limits.max).contains(&paid);
    let above = fiat > method.limit;
    let all =
        [(outside, Reason::CurrencyLimitExceeded), (above, Reason::PaymentMethodLimitExceeded)];
    all.into_iter().filter_map(|(holds, reason)| holds.then_some(reason)).collect()
}
