//! Events of a sale. It has the states and causes of a bought order; the payment in the names of
//! causes is the user's deposit of coins.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use crate::notify::events::EventType::{
    self, OrderBlocked, OrderCancelled, OrderPaid, OrderRefunded,
};
use crate::platform::db::Connection;
use crate::trading::orders::status::{
    Cause, Change, Event, Facts, NotifyColumns, OrderStatus, Transition, transition,
};
use crate::trading::quotes::Side;

/// An event of a sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaleEvent {
    /// Coins arrived.
    DepositReceived {
        /// Their amount; `None` is exactly the sale's.
        amount: Option<Decimal>,
        /// Transaction on the chain, if it is known.
        transaction_id: Option<String>,
    },
    /// The user has been paid.
    PaidOut,
    /// The sale must wait.
    Hold {
        /// Reason, for the record.
        reason: Option<String>,
    },
    /// A blocked sale may proceed.
    Release,
    /// The coins were sent back.
    Refund {
        /// Reason, for the record.
        reason: Option<String>,
    },
    /// The sale is cancelled.
    Cancel {
        /// Reason, for the record.
        reason: Option<String>,
    },
    /// The time to deposit has passed.
    Expire,
}

impl Event for SaleEvent {
    const SIDE: Side = Side::Sell;
    const TRANSITIONS: &'static [Transition] = {
        use OrderStatus::{Blocked, Cancelled, Completed, InProgress, Pending, Refunded};
        &[
            transition(Pending, Cause::PaymentReceived, InProgress, Some(OrderPaid)),
            transition(Pending, Cause::PaymentLate, Blocked, Some(OrderBlocked)),
            transition(Pending, Cause::PaymentAmountWrong, Blocked, Some(OrderBlocked)),
            transition(Pending, Cause::Expired, Cancelled, Some(OrderCancelled)),
            transition(Pending, Cause::Cancelled, Cancelled, Some(OrderCancelled)),
            transition(InProgress, Cause::PaidOut, Completed, Some(EventType::OrderCompleted)),
            transition(InProgress, Cause::Held, Blocked, Some(OrderBlocked)),
            transition(InProgress, Cause::Refunded, Refunded, Some(OrderRefunded)),
            transition(Blocked, Cause::Released, InProgress, None),
            transition(Blocked, Cause::Refunded, Refunded, Some(OrderRefunded)),
        ]
    };

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Hold { reason } | Self::Refund { reason } | Self::Cancel { reason } => {
                reason.as_deref()
            }
            _ => None,
        }
    }

    fn payment(&self) -> (Option<Decimal>, Option<&str>) {
        match self {
            Self::DepositReceived { amount, transaction_id } => {
                (*amount, transaction_id.as_deref())
            }
            _ => (None, None),
        }
    }

    fn cause(&self, facts: &Facts, now: DateTime<Utc>) -> Option<Cause> {
        let late = facts.expires_at.is_some_and(|end| end < now);
        let cause = match self {
            Self::DepositReceived { amount: Some(amount), .. } if *amount != facts.amount => {
                Cause::PaymentAmountWrong
            }
            Self::DepositReceived { .. } if late => Cause::PaymentLate,
            Self::DepositReceived { .. } => Cause::PaymentReceived,
            Self::PaidOut => Cause::PaidOut,
            Self::Hold { .. } => Cause::Held,
            Self::Release => Cause::Released,
            Self::Refund { .. } => Cause::Refunded,
            Self::Cancel { .. } => Cause::Cancelled,
            Self::Expire if !late => return None,
            Self::Expire => Cause::Expired,
        };
        Some(cause)
    }

    async fn facts(tx: &mut Connection, change: &Change<'_>) -> Result<Option<Facts>, sqlx::Error> {
        let row = sqlx::query!(
            "select status as \"status: OrderStatus\", crypto_amount, expires_at, \
             rampart_now() as \"read_at!\" from sell_order \
             where client_id = $1 and order_id = $2 for update",
            change.key.client.uuid(),
            change.key.order.number(),
        )
        .fetch_optional(tx)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let (amount, expires_at) = (row.crypto_amount, Some(row.expires_at));
        Ok(Some(Facts {
            status: row.status,
            amount,
            expires_at,
            read_at: row.read_at,
            coins_sent: false,
            live_price: None,
            price_moved: false,
        }))
    }

    async fn write(
        &self,
        tx: &mut Connection,
        change: &Change<'_>,
        transition: &Transition,
    ) -> Result<Option<NotifyColumns>, sqlx::Error> {
        let (is_deposit, amount, transaction_id) = match self {
            Self::DepositReceived { amount, transaction_id } => {
                (true, *amount, transaction_id.as_deref())
            }
            _ => (false, None, None),
        };
        sqlx::query_as!(
            NotifyColumns,
            r#"
            with moved as (
                update sell_order set
                    status = $4, status_cause = $5, status_reason = $12, updated_at = $6,
                    received_amount = case when $11 then coalesce($8, crypto_amount)
                        else received_amount end,
                    transaction_id = coalesce($7, transaction_id)
                where client_id = $1 and order_id = $2 and status = $3
                returning partner_reference, callback_url
            ), noted as (
                insert into sell_order_transition (client_id, order_id, transition_id, at,
                    from_status, to_status, cause, reason, actor)
                select $1, $2, $9, $6, $3, $4, $5, $12, $10 from moved
            )
            select partner_reference, callback_url from moved
            "#,
            change.key.client.uuid(),
            change.key.order.number(),
            transition.from.as_str(),
            transition.to.as_str(),
            transition.cause.as_str(),
            change.now,
            transaction_id,
            amount,
            change.transition_id,
            change.actor,
            is_deposit,
            self.reason(),
        )
        .fetch_optional(tx)
        .await
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::trading::orders::status::next_transition;

    #[test]
    fn every_pair_of_state_and_event_has_a_result() {
        use OrderStatus::{Blocked, Cancelled, Completed, InProgress, Pending, Refunded};
        let end = DateTime::UNIX_EPOCH;
        let (early, late) = (end, end + TimeDelta::seconds(1));
        let deposit = |amount: Option<i64>| SaleEvent::DepositReceived {
            amount: amount.map(Decimal::from),
            transaction_id: Some("ab12".to_owned()),
        };
        let events = [
            (deposit(None), early, &[(Pending, InProgress)][..]),
            (deposit(Some(1)), early, &[(Pending, InProgress)]),
            (deposit(Some(2)), early, &[(Pending, Blocked)]),
            (deposit(None), late, &[(Pending, Blocked)]),
            (SaleEvent::Expire, early, &[]),
            (SaleEvent::Expire, late, &[(Pending, Cancelled)]),
            (SaleEvent::Cancel { reason: None }, early, &[(Pending, Cancelled)]),
            (SaleEvent::PaidOut, early, &[(InProgress, Completed)]),
            (SaleEvent::Hold { reason: None }, early, &[(InProgress, Blocked)]),
            (SaleEvent::Release, early, &[(Blocked, InProgress)]),
            (
                SaleEvent::Refund { reason: None },
                early,
                &[(InProgress, Refunded), (Blocked, Refunded)],
            ),
        ];
        for (event, now, moves) in events {
            for status in OrderStatus::ALL {
                let (amount, expires_at) = (Decimal::ONE, Some(end));
                let facts = Facts {
                    status,
                    amount,
                    expires_at,
                    read_at: now,
                    coins_sent: false,
                    live_price: None,
                    price_moved: false,
                };
                let expected = moves.iter().find(|(from, _)| *from == status).map(|(_, to)| *to);
                let result = next_transition(&facts, &event, now).map(|row| row.to);
                assert_eq!(result, expected, "{event:?} in {status:?}");
            }
        }
    }
}
