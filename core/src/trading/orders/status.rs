//! The state machine of orders: events, transitions, and `change`, the only way to change a state.

mod change;
mod machine;

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;

#[cfg(test)]
pub(crate) use self::change::next_transition;
pub use self::change::{
    Change, Event, Facts, NotifyColumns, apply, apply_in, apply_recorded, permit,
};
pub use self::machine::{Transition, takes, transition};
use crate::platform::clock::NoEntropy;
use crate::platform::db::Connection;
use crate::platform::error::sqlstate::Retryable;
use crate::platform::error::{Error, Result};
pub use crate::trading::orders::state::{Cause, OrderStatus};
use crate::trading::quotes::Side;
use crate::trading::routing;
use rampart_types::PairCode;

/// An event of an order. Reasons are shown to the partner, but for that of a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderEvent {
    /// Money arrived: `None` is exactly the order's amount.
    PaymentReceived {
        /// Amount in the order's fiat currency.
        amount: Option<Decimal>,
        /// The payment provider's or the bank's reference.
        reference: Option<String>,
    },
    /// The payment was denied.
    PaymentDenied {
        /// The reason.
        reason: Option<String>,
    },
    /// The coins were sent.
    CoinsSent {
        /// The transaction on chain.
        transaction_id: String,
    },
    /// The transaction is confirmed on chain.
    ConfirmedOnChain,
    /// The order must wait: compliance, an unverified account, a failed delivery.
    Hold {
        /// The reason.
        reason: Option<String>,
    },
    /// The order may proceed.
    Release,
    /// The payment was given back in full.
    Refund {
        /// The reason.
        reason: Option<String>,
    },
    /// The order is cancelled.
    Cancel {
        /// The reason.
        reason: Option<String>,
    },
    /// The time to pay has passed.
    Expire,
}

/// The effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The state before.
    pub from: OrderStatus,
    /// The state now.
    pub to: OrderStatus,
    /// The cause that the event was classified as.
    pub cause: Cause,
    /// Time of the change.
    pub at: DateTime<Utc>,
}

/// Reason that an event had no effect.
#[derive(Debug)]
pub enum NotApplied {
    /// The tenant has no such order.
    NoSuchOrder,
    /// The order's state forbids it.
    Forbidden {
        /// That state.
        status: OrderStatus,
    },
    /// Something else forbids it: the reason in words.
    Refused(&'static str),
    /// An internal error.
    Failed(Error),
}

impl From<Error> for NotApplied {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<NoEntropy> for NotApplied {
    fn from(error: NoEntropy) -> Self {
        Self::Failed(error.into())
    }
}

impl From<sqlx::Error> for NotApplied {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl Retryable for NotApplied {
    /// The engine asks for another try; what is refused stays refused.
    fn is_retryable(&self) -> bool {
        matches!(self, Self::Failed(error) if error.is_retryable())
    }
}

/// The effect of an event; `None` where the order's state forbids it.
///
/// # Errors
/// The one that it failed with. What is refused otherwise is an error, too: a part of it may have been
/// written, which the transaction gives up.
pub(crate) fn unless_forbidden<T>(applied: Result<T, NotApplied>) -> Result<Option<T>> {
    match applied {
        Ok(applied) => Ok(Some(applied)),
        Err(NotApplied::NoSuchOrder | NotApplied::Forbidden { .. }) => Ok(None),
        Err(NotApplied::Refused(reason)) => Err(Error::invariant(reason)),
        Err(NotApplied::Failed(error)) => Err(error),
    }
}

/// True if the price has moved by more than so many percent, or there is none any more.
fn has_moved(before: Decimal, live: Option<Decimal>, percent_max: Decimal) -> bool {
    let moved = || {
        let moved = (live? - before).abs().checked_mul(Decimal::ONE_HUNDRED)?;
        Some(moved > before.checked_mul(percent_max)?)
    };
    moved().unwrap_or(true)
}

impl Event for OrderEvent {
    const SIDE: Side = Side::Buy;
    const TRANSITIONS: &'static [Transition] = machine::TRANSITIONS;

    fn reason(&self) -> Option<&str> {
        match self {
            Self::PaymentDenied { reason }
            | Self::Hold { reason }
            | Self::Refund { reason }
            | Self::Cancel { reason } => reason.as_deref(),
            _ => None,
        }
    }

    fn payment(&self) -> (Option<Decimal>, Option<&str>) {
        match self {
            Self::PaymentReceived { amount, reference } => (*amount, reference.as_deref()),
            Self::CoinsSent { transaction_id } => (None, Some(transaction_id)),
            _ => (None, None),
        }
    }

    fn cause(&self, facts: &Facts, now: DateTime<Utc>) -> Option<Cause> {
        machine::cause(facts, self, now)
    }

    async fn facts(tx: &mut Connection, change: &Change<'_>) -> Result<Option<Facts>, sqlx::Error> {
        let row = sqlx::query!(
            r#"
            select status as "status: OrderStatus", fiat_amount, expires_at,
                transaction_id is not null as "coins_sent!",
                pair as "pair: PairCode", price, is_estimated_quote, created_at,
                rampart_now() as "read_at!"
            from buy_order where client_id = $1 and order_id = $2 for update
            "#,
            change.key.client.uuid(),
            change.key.order.number(),
        )
        .fetch_optional(tx)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let live_price = row.is_estimated_quote.then(|| {
            let snapshot = change.core.snapshots.current();
            let tenant = snapshot.tenants.get(&change.key.client)?;
            routing::price(tenant, snapshot.catalogue.pairs.get(&row.pair)?, change.now)
        });
        let transfer_lifetime =
            TimeDelta::seconds(change.core.settings.lifetimes.bank_transfer_seconds.into());
        let slippage_max = change.core.settings.quotes.estimated_slippage_max;
        Ok(Some(Facts {
            status: row.status,
            amount: row.fiat_amount,
            // A bank transfer has an end that its partner is not told.
            expires_at: row.expires_at.or(Some(row.created_at + transfer_lifetime)),
            read_at: row.read_at,
            coins_sent: row.coins_sent,
            price_moved: live_price.is_some_and(|live| has_moved(row.price, live, slippage_max)),
            live_price: live_price.flatten(),
        }))
    }

    async fn write(
        &self,
        tx: &mut Connection,
        change: &Change<'_>,
        transition: &Transition,
    ) -> Result<Option<NotifyColumns>, sqlx::Error> {
        let (transaction_id, payment) = match self {
            Self::CoinsSent { transaction_id } => (Some(transaction_id.as_str()), None),
            Self::PaymentReceived { amount, reference } => (None, Some((amount, reference))),
            _ => (None, None),
        };
        sqlx::query_as!(
            NotifyColumns,
            r#"
            with moved as (
                update buy_order set
                    status = $4, status_cause = $5, status_reason = $6, updated_at = $7,
                    transaction_id = coalesce($8, transaction_id),
                    paid_amount = case when $9 then coalesce($10, fiat_amount) else paid_amount end,
                    payment_reference = coalesce($11, payment_reference)
                where client_id = $1 and order_id = $2 and status = $3
                returning partner_reference, callback_url
            ), noted as (
                insert into order_transition (client_id, order_id, transition_id, at,
                    from_status, to_status, cause, reason, actor)
                select $1, $2, $12, $7, $3, $4, $5, $6, $13 from moved
            )
            select partner_reference, callback_url from moved
            "#,
            change.key.client.uuid(),
            change.key.order.number(),
            transition.from.as_str(),
            transition.to.as_str(),
            transition.cause.as_str(),
            self.reason(),
            change.now,
            transaction_id,
            payment.is_some(),
            payment.and_then(|(amount, _)| *amount),
            payment.and_then(|(_, reference)| reference.as_deref()),
            change.transition_id,
            change.actor,
        )
        .fetch_optional(tx)
        .await
    }
}
