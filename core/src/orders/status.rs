//! What state an order is in, and the one way to change it.

mod machine;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Serialize, Serializer};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

pub use self::machine::Cause;
use self::machine::{Facts, Transition, judge};
use super::callback;
use crate::Core;
use crate::clock::NoEntropy;
use crate::db::retrying;
use crate::error::{Error, Result};
use crate::events::{self, NewEvent};
use crate::sandbox::{self, Scenario};
use crate::types::{ClientId, OrderId};

/// The state of an order, in the words of the API document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderStatus {
    /// Waits for the payment.
    Pending,
    /// Paid; the coins are on their way.
    InProgress,
    /// Waits for the operator.
    Blocked,
    /// The coins have arrived. Final.
    Completed,
    /// Ended without a payment. Final.
    Cancelled,
    /// The payment was given back. Final.
    Refunded,
}

impl OrderStatus {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::InProgress,
        Self::Blocked,
        Self::Completed,
        Self::Cancelled,
        Self::Refunded,
    ];

    /// On the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in progress",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Refunded => "refunded",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether nothing can happen to the order any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled | Self::Refunded)
    }
}

crate::openapi::inline_schema!(
    OrderStatus,
    {"type": "string", "enum": OrderStatus::ALL.map(OrderStatus::as_str)}
);

impl Serialize for OrderStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What happens to an order. Reasons are shown to the partner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderEvent {
    /// Money arrived: `None` is exactly the order's amount.
    PaymentReceived {
        /// How much, in the order's fiat currency.
        amount: Option<Decimal>,
        /// The payment provider's or the bank's own name for it.
        reference: Option<String>,
    },
    /// The payment was denied.
    PaymentDenied {
        /// Why.
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
        /// Why.
        reason: Option<String>,
    },
    /// The order may go on.
    Release,
    /// The payment was given back in full.
    Refund {
        /// Why.
        reason: Option<String>,
    },
    /// The order is called off.
    Cancel {
        /// Why.
        reason: Option<String>,
    },
    /// The time to pay has passed.
    Expire,
}

impl OrderEvent {
    fn reason(&self) -> Option<&str> {
        match self {
            Self::PaymentDenied { reason }
            | Self::Hold { reason }
            | Self::Refund { reason }
            | Self::Cancel { reason } => reason.as_deref(),
            _ => None,
        }
    }
}

/// What an event did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The state before.
    pub from: OrderStatus,
    /// The state now.
    pub to: OrderStatus,
    /// What the event was judged to be.
    pub cause: Cause,
    /// When.
    pub at: DateTime<Utc>,
}

/// Why an event did nothing.
#[derive(Debug)]
pub enum NotApplied {
    /// The client has no such order.
    NoSuchOrder,
    /// The order's state forbids it.
    Forbidden {
        /// That state.
        status: OrderStatus,
    },
    /// We could not do it.
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

/// Lets an event happen to an order of `client`: the new state, the timeline's row, the event's
/// row, what follows in the sandbox and, once the order is final, the delivery to its callback are
/// one transaction. `actor` is who did it, for the timeline: `edge`, `sandbox`, `page`, or an
/// operator.
///
/// # Errors
/// When the order is not there, its state forbids the event, or the database is out of reach.
pub async fn apply(
    core: &Core,
    client: ClientId,
    order: OrderId,
    event: OrderEvent,
    actor: &str,
) -> Result<Applied, NotApplied> {
    let change = Change::new(core, client, order, &event, actor)?;
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
    order: OrderId,
    event: OrderEvent,
    actor: &str,
) -> Result<Applied, NotApplied> {
    let change = Change::new(core, client, order, &event, actor)?;
    change.attempt_in(conn).await.map_err(Error::from)?
}

/// One call of [`apply`].
struct Change<'a> {
    core: &'a Core,
    client: ClientId,
    order: OrderId,
    event: &'a OrderEvent,
    actor: &'a str,
    transition_id: Uuid,
    now: DateTime<Utc>,
}

/// What the order says that its partner is told with.
struct Told {
    partner_reference: Option<String>,
    callback_url: Option<String>,
}

impl<'a> Change<'a> {
    fn new(
        core: &'a Core,
        client: ClientId,
        order: OrderId,
        event: &'a OrderEvent,
        actor: &'a str,
    ) -> Result<Self, NoEntropy> {
        let (transition_id, now) = (core.clock.uuid()?, core.clock.now());
        Ok(Self { core, client, order, event, actor, transition_id, now })
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
        let status = facts.status;
        let Some(transition) = judge(&facts, self.event, self.now) else {
            return Ok(Err(NotApplied::Forbidden { status }));
        };
        let Some(told) = self.write(tx, transition).await? else {
            return Ok(Err(NotApplied::Forbidden { status }));
        };
        let scenario = Scenario::of(told.partner_reference.as_deref(), facts.fiat_amount);
        self.tell(tx, transition, told).await?;
        self.go_on(tx, transition.cause, scenario, facts.coins_sent).await?;
        let Transition { from, to, cause, .. } = *transition;
        Ok(Ok(Applied { from, to, cause, at: self.now }))
    }

    /// What the event is judged by; the row stays as it is until the transaction ends.
    async fn facts(&self, tx: &mut PgConnection) -> Result<Option<Facts>, sqlx::Error> {
        let row = sqlx::query!(
            r#"
            select status, fiat_amount, expires_at, transaction_id is not null as "coins_sent!"
            from buy_order where client_id = $1 and order_id = $2 for update
            "#,
            self.client.uuid(),
            self.order.number(),
        )
        .fetch_optional(tx)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let status = OrderStatus::from_name(&row.status)
            .ok_or_else(|| sqlx::Error::Decode("an order has an unknown status".into()))?;
        let (fiat_amount, expires_at) = (row.fiat_amount, row.expires_at);
        Ok(Some(Facts { status, fiat_amount, expires_at, coins_sent: row.coins_sent }))
    }

    /// State and timeline, guarded by the state that the transition leaves.
    async fn write(
        &self,
        tx: &mut PgConnection,
        transition: &Transition,
    ) -> Result<Option<Told>, sqlx::Error> {
        let (transaction_id, payment) = match self.event {
            OrderEvent::CoinsSent { transaction_id } => (Some(transaction_id.as_str()), None),
            OrderEvent::PaymentReceived { amount, reference } => (None, Some((amount, reference))),
            _ => (None, None),
        };
        sqlx::query_as!(
            Told,
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
            self.client.uuid(),
            self.order.number(),
            transition.from.as_str(),
            transition.to.as_str(),
            transition.cause.as_str(),
            self.event.reason(),
            self.now,
            transaction_id,
            payment.is_some(),
            payment.and_then(|(amount, _)| *amount),
            payment.and_then(|(_, reference)| reference.as_deref()),
            self.transition_id,
            self.actor,
        )
        .fetch_optional(tx)
        .await
    }

    async fn tell(
        &self,
        tx: &mut PgConnection,
        transition: &Transition,
        told: Told,
    ) -> Result<(), sqlx::Error> {
        let Some(kind) = transition.tells else { return Ok(()) };
        let outcome = callback::Outcome::of(transition.to, transition.cause);
        let url = match (told.callback_url, outcome) {
            (Some(url), Some(outcome)) => Some(callback::address(&url, self.order, outcome)),
            _ => None,
        };
        let payload = json!({
            "orderId": self.order,
            "partnerOrderIdentifier": told.partner_reference,
            "status": transition.to,
        });
        let event = NewEvent { kind, order_id: Some(self.order), payload };
        events::record(tx, self.core, self.client, event, url.as_deref()).await
    }

    /// In the sandbox an order goes on by itself.
    async fn go_on(
        &self,
        tx: &mut PgConnection,
        cause: Cause,
        scenario: Option<Scenario>,
        coins_were_sent: bool,
    ) -> Result<(), sqlx::Error> {
        let coins_sent = coins_were_sent || matches!(self.event, OrderEvent::CoinsSent { .. });
        let step = sandbox::next(scenario, cause, coins_sent);
        sandbox::follow(tx, self.core, self.client, self.order, (step, self.now)).await
    }
}
