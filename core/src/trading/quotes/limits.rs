//! Reasons that a quote cannot be confirmed. Limits never fail a quote: they are reported with it,
//! and fail the confirm (section 6.1 of the contract).

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Quote, Side};
use crate::Core;
use crate::auth::caller::ClientMaybeUser;
use crate::platform::error::{Code, Result};
use crate::trading::catalogue::{Catalogue, Pair, PaymentMethod};
use crate::trading::limits::{self, Usage};
use crate::trading::payment_methods::families::Family;
use crate::users::accounts::{self, AccountType};

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

/// Reasons by pair and method, for a sale of `sold` coins or else for a purchase. A pair's bounds
/// are in the currency that the user pays.
pub(super) fn reasons(
    pair: &Pair,
    method: &PaymentMethod,
    fiat: Decimal,
    sold: Option<Decimal>,
) -> Vec<Reason> {
    let (limits, paid) = match sold {
        None => (&pair.buy, fiat),
        Some(coins) => (&pair.sell, coins),
    };
    let outside = !(limits.min..=limits.max).contains(&paid);
    let above = !method.accepts(fiat);
    let all =
        [(outside, Reason::CurrencyLimitExceeded), (above, Reason::PaymentMethodLimitExceeded)];
    all.into_iter().filter_map(|(holds, reason)| holds.then_some(reason)).collect()
}

/// Amounts that the caller's user may still trade.
pub(super) struct UserLimits {
    usage: Usage,
    /// Kinds of which the user has accounts, and all of them are disabled.
    disabled: Vec<AccountType>,
}

impl UserLimits {
    /// Reads the caller's user, if there is one, with its accounts of these kinds.
    ///
    /// # Errors
    /// ER709 for a user who is gone; when the database cannot be read.
    pub(super) async fn of(
        core: &Core,
        caller: &ClientMaybeUser,
        kinds: &[AccountType],
    ) -> Result<Option<Self>> {
        let Some(user) = caller.user else { return Ok(None) };
        let key = caller.client.key_of(user);
        // Boxed: it would enlarge the future of every quote, and most have no user.
        let usage = Box::pin(limits::usage(core, key)).await?;
        let usage = usage.ok_or(Code::UserNotFound)?;
        let mut disabled = Vec::new();
        if !kinds.is_empty() {
            let mut conn = core.db.acquire().await?;
            for kind in kinds {
                if Box::pin(accounts::all_disabled(&mut conn, key, *kind)).await? {
                    disabled.push(*kind);
                }
            }
        }
        Ok(Some(Self { usage, disabled }))
    }

    /// Reasons by the user.
    pub(super) fn reasons(&self, core: &Core, catalogue: &Catalogue, quote: &Quote) -> Vec<Reason> {
        let amount = limits::limit_amount(core, catalogue, quote);
        let Usage { trader, spent } = &self.usage;
        let remaining = trader.rules.remaining(quote.side, spent);
        let above = amount.is_none_or(|amount| amount > remaining);
        let open = !trader.statuses.is_verified();
        let kind = Family::kind_of(&quote.payment_method);
        // A quote of a sale says so in a member of its own.
        let disabled = quote.side == Side::Buy && kind.is_some_and(|k| self.disabled.contains(&k));
        let all = [
            (disabled, Reason::PaymentMethodDisabled),
            (above, Reason::UserLimitExceeded),
            (open, Reason::UserRegistrationNotCompleted),
        ];
        all.into_iter().filter_map(|(holds, reason)| holds.then_some(reason)).collect()
    }
}
