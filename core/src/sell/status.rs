//! The one way to change a sale: what may happen to it, and its transaction.
//!
//! A sale has the states of an order that is bought. The payment of which causes speak is the
//! user's deposit of coins.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Core;
use crate::clock::NoEntropy;
use crate::db::retrying;
use crate::error::Error;
use crate::events::{self, EventType, NewEvent};
use crate::orders::callback;
use crate::orders::status::{Applied, Cause, NotApplied, OrderStatus};
use crate::sandbox;
use crate::types::{ClientId, OrderId};

/// What happens to a sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SaleEvent {
    /// Coins arrived: `None` is exactly the sale's amount.
    DepositReceived { amount: Option<Decimal>, transaction_id: Option<String> },
    /// The user has been paid.
    PaidOut,
    /// The sale must wait.
    Hold { reason: Option<String> },
    /// A blocked sale may go on.
    Release,
    /// The coins were sent back.
    Refund { reason: Option<String> },
    /// The sale is called off.
    Cancel { reason: Option<String> },
    /// The time to deposit has passed.
    Expire,
}

impl SaleEvent {
    fn reason(&self) -> Option<&str> {
        match self {
            Self::Hold { reason } | Self::Refund { reason } | Self::Cancel { reason } => {
                reason.as_deref()
            }
            _ => None,
        }
    }
}

/// What an event is judged by.
#[derive(Clone, Debug)]
struct Facts {
    status: OrderStatus,
    crypto_amount: Decimal,
    expires_at: DateTime<Utc>,
}

/// Everything that may happen to a sale once it exists: from, cause, to, and what the partner is
/// told; a release is told by what follows it.
const TRANSITIONS: &[(OrderStatus, Cause, OrderStatus, Option<EventType>)] = {
    use OrderStatus::{Blocked, Cancelled, Completed, InProgress, Pending, Refunded};
    &[
        (Pending, Cause::PaymentReceived, InProgress, Some(EventType::OrderPaid)),
        (Pending, Cause::PaymentLate, Blocked, Some(EventType::OrderBlocked)),
        (Pending, Cause::PaymentAmountWrong, Blocked, Some(EventType::OrderBlocked)),
        (Pending, Cause::Expired, Cancelled, Some(EventType::OrderCancelled)),
        (Pending, Cause::Cancelled, Cancelled, Some(EventType::OrderCancelled)),
        (InProgress, Cause::PaidOut, Completed, Some(EventType::OrderCompleted)),
        (InProgress, Cause::Held, Blocked, Some(EventType::OrderBlocked)),
        (InProgress, Cause::Refunded, Refunded, Some(EventType::OrderRefunded)),
        (Blocked, Cause::Released, InProgress, None),
        (Blocked, Cause::Refunded, Refunded, Some(EventType::OrderRefunded)),
    ]
};

/// State, cause and what is told after the event at `now`; `None` when the state forbids it.
fn judge(
    facts: &Facts,
    event: &SaleEvent,
    now: DateTime<Utc>,
) -> Option<(OrderStatus, Cause, Option<EventType>)> {
    let late = facts.expires_at < now;
    let cause = match event {
        SaleEvent::DepositReceived { amount: Some(amount), .. }
            if *amount != facts.crypto_amount =>
        {
            Cause::PaymentAmountWrong
        }
        SaleEvent::DepositReceived { .. } if late => Cause::PaymentLate,
        SaleEvent::DepositReceived { .. } => Cause::PaymentReceived,
        SaleEvent::PaidOut => Cause::PaidOut,
        SaleEvent::Hold { .. } => Cause::Held,
        SaleEvent::Release => Cause::Released,
        SaleEvent::Refund { .. } => Cause::Refunded,
        SaleEvent::Cancel { .. } => Cause::Cancelled,
        SaleEvent::Expire if !late => return None,
        SaleEvent::Expire => Cause::Expired,
    };
    let row = TRANSITIONS.iter().find(|row| row.0 == facts.status && row.1 == cause)?;
    Some((row.2, cause, row.3))
}

/// Lets an event happen to a sale of `client`: the new state, the timeline's row, the event's row
/// and, once the sale is final, the delivery to its callback are one transaction.
///
/// # Errors
/// When the sale is not there, its state forbids the event, or the database is out of reach.
pub(crate) async fn apply(
    core: &Core,
    client: ClientId,
    sale: OrderId,
    event: &SaleEvent,
    actor: &str,
) -> Result<Applied, NotApplied> {
    let change = Change::new(core, client, sale, event, actor)?;
    let applied = retrying(|| change.attempt()).await??;
    core.metrics.orders.with_label_values(&[applied.cause.as_str()]).inc();
    Ok(applied)
}

/// The same inside the caller's transaction, which is given up when nothing was applied and counts
/// the cause once it is committed.
///
/// # Errors
/// As [`apply`].
pub(crate) async fn apply_in(
    conn: &mut PgConnection,
    core: &Core,
    client: ClientId,
    sale: OrderId,
    event: &SaleEvent,
    actor: &str,
) -> Result<Applied, NotApplied> {
    let change = Change::new(core, client, sale, event, actor)?;
    change.attempt_in(conn).await.map_err(Error::from)?
}

/// One call of [`apply`].
struct Change<'a> {
    core: &'a Core,
    client: ClientId,
    sale: OrderId,
    event: &'a SaleEvent,
    actor: &'a str,
    transition_id: Uuid,
    now: DateTime<Utc>,
}

/// What the sale says that its partner is told with.
struct Told {
    partner_reference: Option<String>,
    callback_url: Option<String>,
}

impl<'a> Change<'a> {
    fn new(
        core: &'a Core,
        client: ClientId,
        sale: OrderId,
        event: &'a SaleEvent,
        actor: &'a str,
    ) -> Result<Self, NoEntropy> {
        let (transition_id, now) = (core.clock.uuid()?, core.clock.now());
        Ok(Self { core, client, sale, event, actor, transition_id, now })
    }

    async fn attempt(&self) -> Result<Result<Applied, NotApplied>, sqlx::Error> {
        let mut tx = self.core.db.begin().await?;
        let applied = self.attempt_in(&mut tx).await?;
        if applied.is_ok() {
            tx.commit().await?;
        }
        Ok(applied)
    }

    async fn attempt_in(
        &self,
        tx: &mut PgConnection,
    ) -> Result<Result<Applied, NotApplied>, sqlx::Error> {
        let Some(facts) = self.facts(tx).await? else {
            return Ok(Err(NotApplied::NoSuchOrder));
        };
        let from = facts.status;
        let forbidden = Err(NotApplied::Forbidden { status: from });
        let Some((to, cause, tells)) = judge(&facts, self.event, self.now) else {
            return Ok(forbidden);
        };
        let applied = Applied { from, to, cause, at: self.now };
        let Some(told) = self.write(tx, applied).await? else { return Ok(forbidden) };
        if let Some(kind) = tells {
            self.tell(tx, applied, kind, told).await?;
        }
        Ok(Ok(applied))
    }

    /// What the event is judged by; the row stays as it is until the transaction ends.
    async fn facts(&self, tx: &mut PgConnection) -> Result<Option<Facts>, sqlx::Error> {
        let row = sqlx::query!(
            "select status, crypto_amount, expires_at from sell_order \
             where client_id = $1 and order_id = $2 for update",
            self.client.uuid(),
            self.sale.number(),
        )
        .fetch_optional(tx)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let status = OrderStatus::from_name(&row.status)
            .ok_or_else(|| sqlx::Error::Decode("a sale has an unknown status".into()))?;
        let (crypto_amount, expires_at) = (row.crypto_amount, row.expires_at);
        Ok(Some(Facts { status, crypto_amount, expires_at }))
    }

    /// State and timeline, guarded by the state that is left. In the sandbox a sale in progress is
    /// paid out by itself.
    async fn write(
        &self,
        tx: &mut PgConnection,
        applied: Applied,
    ) -> Result<Option<Told>, sqlx::Error> {
        let (is_deposit, amount, transaction_id) = match self.event {
            SaleEvent::DepositReceived { amount, transaction_id } => {
                (true, *amount, transaction_id.as_deref())
            }
            _ => (false, None, None),
        };
        let settles_at =
            (applied.to == OrderStatus::InProgress).then(|| self.now + sandbox::pause(self.core));
        sqlx::query_as!(
            Told,
            r#"
            with moved as (
                update sell_order o set
                    status = $4, status_cause = $5, status_reason = $13, updated_at = $6,
                    received_amount = case when $12 then coalesce($8, crypto_amount)
                        else received_amount end,
                    transaction_id = coalesce($7, transaction_id),
                    settles_at = (select $9::timestamptz from client c
                        where c.client_id = o.client_id and c.mode = 'test')
                where client_id = $1 and order_id = $2 and status = $3
                returning partner_reference, callback_url
            ), noted as (
                insert into sell_order_transition (client_id, order_id, transition_id, at,
                    from_status, to_status, cause, reason, actor)
                select $1, $2, $10, $6, $3, $4, $5, $13, $11 from moved
            )
            select partner_reference, callback_url from moved
            "#,
            self.client.uuid(),
            self.sale.number(),
            applied.from.as_str(),
            applied.to.as_str(),
            applied.cause.as_str(),
            self.now,
            transaction_id,
            amount,
            settles_at,
            self.transition_id,
            self.actor,
            is_deposit,
            self.event.reason(),
        )
        .fetch_optional(tx)
        .await
    }

    async fn tell(
        &self,
        tx: &mut PgConnection,
        applied: Applied,
        kind: EventType,
        told: Told,
    ) -> Result<(), sqlx::Error> {
        let outcome = callback::Outcome::of(applied.to, applied.cause);
        let url = told.callback_url.zip(outcome);
        let url = url.map(|(url, outcome)| callback::address(&url, self.sale, outcome));
        let payload = json!({
            "orderId": self.sale,
            "partnerOrderIdentifier": told.partner_reference,
            "status": applied.to,
        });
        let event = NewEvent { kind, order_id: Some(self.sale), payload };
        events::record(tx, self.core, self.client, event, url.as_deref()).await
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn every_pair_of_state_and_event_is_decided() {
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
                let facts = Facts { status, crypto_amount: Decimal::ONE, expires_at: end };
                let expected = moves.iter().find(|(from, _)| *from == status).map(|(_, to)| *to);
                let judged = judge(&facts, &event, now).map(|(to, ..)| to);
                assert_eq!(judged, expected, "{event:?} in {status:?}");
            }
        }
    }
}
