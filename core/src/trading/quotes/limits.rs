//! Reasons that a quote cannot be confirmed. Limits never fail a quote: they are reported with it,
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
use crate::trading::payment_methods::families::Family;
use crate::users::accounts;

/// A reason of `quoteUnconfirmableReasons`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "QuoteUnconfirmableReason")]
#[serde(rename_all = "camelCase")]
pub(crate) enum Reason {
    /// The amount is outside the pair's bounds.
    CurrencyLimitExceeded,
    /// The amount is above the payment method's limit.
    PaymentMethodLimitExceeded,
    /// The user has accounts to buy with the method, and all of them are disabled: a confirm that
    /// names one is refused.
    PaymentMethodDisabled,
    /// The amount is above the remainder of the user's day limit.
    UserLimitExceeded,
    /// The user's verification is incomplete: a hint, because the confirm succeeds and the order
    /// has the reason.
    UserRegistrationNotCompleted,
}

/// Reasons by pair and method. A pair's bounds are in the currency that the user pays.
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
    let above = !method.accepts(fiat);
    let all =
        [(outside, Reason::CurrencyLimitExceeded), (above, Reason::PaymentMethodLimitExceeded)];
    all.into_iter().filter_map(|(holds, reason)| holds.then_some(reason)).collect()
}

/// Reasons by the user, if there is one.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn reasons_of_user(
    core: &Core,
    caller: &ClientMaybeUser,
    quote: &Quote,
) -> Result<Vec<Reason>> {
    let Some(user) = caller.user else { return Ok(Vec::new()) };
    // Boxed: it would enlarge the future of every quote, and most have no user.
    let standing = Box::pin(limits::standing(core, caller.client.id(), user)).await?;
    let (trader, spent) = standing.ok_or(Code::UserNotFound)?;
    let amount = limits::limit_amount(core, &caller.client.catalogue, quote);
    let remaining = trader.rules.remaining(quote.side, &spent);
    let above = amount.is_none_or(|amount| amount > remaining);
    let open = !trader.statuses.is_verified();
    // A quote of a sale says so in a member of its own.
    let disabled = match Family::kind_of(&quote.payment_method) {
        Some(kind) if quote.side == Side::Buy => {
            let mut conn = core.db.acquire().await?;
            Box::pin(accounts::all_disabled(&mut conn, (caller.client.id(), user), kind)).await?
        }
        _ => false,
    };
    let all = [
        (disabled, Reason::PaymentMethodDisabled),
        (above, Reason::UserLimitExceeded),
        (open, Reason::UserRegistrationNotCompleted),
    ];
    Ok(all.into_iter().filter_map(|(holds, reason)| holds.then_some(reason)).collect())
}
