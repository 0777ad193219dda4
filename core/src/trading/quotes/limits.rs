//! What stands in the way of confirming a quote. Limits never fail a quote: they are told with it,
//! and fail the confirm (section 6.1 of the contract).

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Quote, Side};
use crate::Core;
use crate::auth::caller::ClientMaybeUser;
use crate::platform::error::{Code, Result};
use crate::trading::catalogue::{Pair, PaymentMethod};
use crate::trading::limits;

/// A reason of `quoteUnconfirmableReasons`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "QuoteUnconfirmableReason")]
#[serde(rename_all = "camelCase")]
pub(super) enum Reason {
    /// The amount is outside what the pair takes.
    CurrencyLimitExceeded,
    /// The amount is above what the payment method takes.
    PaymentMethodLimitExceeded,
    /// The amount is above what the user may still trade today.
    UserLimitExceeded,
    /// The user has not shown everything yet: a hint, because the confirm then succeeds and the
    /// reason stands in the order.
    UserRegistrationNotCompleted,
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

/// Reasons that the user gives, if there is one.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn reasons_of_user(
    core: &Core,
    caller: &ClientMaybeUser,
    quote: &Quote,
) -> Result<Vec<Reason>> {
    let Some(user) = caller.user else { return Ok(Vec::new()) };
    // Boxed, because a quote without a user, the common one, would carry its room around.
    let standing = Box::pin(limits::standing(core, caller.client.id(), user)).await?;
    let (trader, spent) = standing.ok_or(Code::UserNotFound)?;
    let above = quote.fiat > trader.rules.left(quote.side, &spent);
    let open = !trader.statuses.is_verified();
    let all = [(above, Reason::UserLimitExceeded), (open, Reason::UserRegistrationNotCompleted)];
    Ok(all.into_iter().filter_map(|(holds, reason)| holds.then_some(reason)).collect())
}
