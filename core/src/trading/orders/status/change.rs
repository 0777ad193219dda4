//! The one way to change an order, bought or sold: what happens to it is judged by what its row
//! says, and the new state, the timeline's row, the event's row, what follows in the sandbox and,
//! once the order is final, the delivery to its callback are one transaction.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Applied, Cause, NotApplied, OrderStatus, Transition};
use crate::Core;
use crate::notify::events::{self, NewEvent};
use crate::platform::clock::NoEntropy;
use crate::platform::db::retrying;
use crate::platform::error::Error;
use crate::trading::orders::callback::{self, Outcome};
use rampart_types::{ClientId, OrderId};

/// What can happen to one of the two kinds of order, and how its table takes it.
pub(crate) trait Event: Sync {
    /// Everything that may happen to such an order once it exists. What is not here is refused.
    const TRANSITIONS: &'static [Transition];

    /// The reason that came with it, shown to the partner.
    fn reason(&self) -> Option<&str>;

    /// What the event is judged to be at `now`; `None` when it can be nothing.
    fn cause(&self, facts: &Facts, now: DateTime<Utc>) -> Option<Cause>;

    /// What the event is judged by; the row stays as it is until the transaction ends.
    fn facts(
        tx: &mut PgConnection,
        client: ClientId,
        order: OrderId,
    ) -> impl Future<Output = Result<Option<Facts>, sqlx::Error>> + Send;

    /// Writes state and timeline, guarded by the state that the transition leaves; `None` when the
    /// order has left it already.
    fn write(
        &self,
        tx: &mut PgConnection,
        change: &Change<'_>,
        transition: &Transition,
    ) -> impl Future<Output = Result<Option<Told>, sqlx::Error>> + Send;

    /// What follows in the same transaction.
    fn go_on(
        &self,
        _tx: &mut PgConnection,
        _change: &Change<'_>,
        _after: (&Facts, Cause, &Told),
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async { Ok(()) }
    }
}

/// What an event is judged by besides itself.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) status: OrderStatus,
    /// What is to be paid: fiat for an order, coins for a sale.
    pub(crate) amount: Decimal,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    /// Whether coins were sent to the user; never for a sale.
    pub(crate) coins_sent: bool,
}

/// What the order says that its partner is told with.
pub(crate) struct Told {
    pub(crate) partner_reference: Option<String>,
    pub(crate) callback_url: Option<String>,
}

/// The transition that the event means for an order at `now`; `None` when its state forbids it.
pub(crate) fn judge<E: Event>(
    facts: &Facts,
    event: &E,
    now: DateTime<Utc>,
) -> Option<&'static Transition> {
    let cause = event.cause(facts, now)?;
    E::TRANSITIONS.iter().find(|row| row.from == facts.status && row.cause == cause)
}

/// Lets an event happen to an order of `client`. `actor` is who did it, for the timeline: `edge`,
/// `sandbox`, `page`, or an operator.
///
/// # Errors
/// When the order is not there, its state forbids the event, or the database is out of reach.
pub(crate) async fn apply<E: Event>(
    core: &Core,
    client: ClientId,
    order: OrderId,
    event: &E,
    actor: &str,
) -> Result<Applied, NotApplied> {
    let change = Change::new(core, client, order, actor)?;
    let applied = retrying(|| change.attempt(event)).await??;
    core.metrics.orders.with_label_values(&[applied.cause.as_str()]).inc();
    Ok(applied)
}

/// The same inside the caller's transaction, which is given up when nothing was applied and counts
/// the cause once it is committed.
///
/// # Errors
/// As [`apply`].
pub(crate) async fn apply_in<E: Event>(
    conn: &mut PgConnection,
    core: &Core,
    client: ClientId,
    order: OrderId,
    event: &E,
    actor: &str,
) -> Result<Applied, NotApplied> {
    let change = Change::new(core, client, order, actor)?;
    change.attempt_in(conn, event).await.map_err(Error::from)?
}

/// One call of [`apply`].
pub(crate) struct Change<'a> {
    pub(crate) core: &'a Core,
    pub(crate) client: ClientId,
    pub(crate) order: OrderId,
    pub(crate) actor: &'a str,
    pub(crate) transition_id: Uuid,
    pub(crate) now: DateTime<Utc>,
}

impl<'a> Change<'a> {
    fn new(
        core: &'a Core,
        client: ClientId,
        order: OrderId,
        actor: &'a str,
    ) -> Result<Self, NoEntropy> {
        let (transition_id, now) = (core.clock.uuid()?, core.clock.now());
        Ok(Self { core, client, order, actor, transition_id, now })
    }

    async fn attempt<E: Event>(
        &self,
        event: &E,
    ) -> Result<Result<Applied, NotApplied>, sqlx::Error> {
        let mut tx = self.core.db.begin().await?;
        let applied = self.attempt_in(&mut tx, event).await?;
        if applied.is_ok() {
            tx.commit().await?;
        }
        Ok(applied)
    }

    async fn attempt_in<E: Event>(
        &self,
        tx: &mut PgConnection,
        event: &E,
    ) -> Result<Result<Applied, NotApplied>, sqlx::Error> {
        let Some(facts) = E::facts(tx, self.client, self.order).await? else {
            return Ok(Err(NotApplied::NoSuchOrder));
        };
        let status = facts.status;
        let Some(transition) = judge(&facts, event, self.now) else {
            return Ok(Err(NotApplied::Forbidden { status }));
        };
        let Some(told) = event.write(tx, self, transition).await? else {
            return Ok(Err(NotApplied::Forbidden { status }));
        };
        self.tell(tx, transition, &told).await?;
        let Transition { from, to, cause, .. } = *transition;
        event.go_on(tx, self, (&facts, cause, &told)).await?;
        Ok(Ok(Applied { from, to, cause, at: self.now }))
    }

    async fn tell(
        &self,
        tx: &mut PgConnection,
        transition: &Transition,
        told: &Told,
    ) -> Result<(), sqlx::Error> {
        let Some(kind) = transition.tells else { return Ok(()) };
        let outcome = Outcome::of(transition.to, transition.cause);
        let url = told.callback_url.as_deref().zip(outcome);
        let url = url.map(|(url, outcome)| callback::address(url, self.order, outcome));
        let payload = json!({
            "orderId": self.order,
            "partnerOrderIdentifier": told.partner_reference,
            "status": transition.to,
        });
        let event = NewEvent { kind, order_id: Some(self.order), payload };
        events::record(tx, self.core, self.client, event, url.as_deref()).await
    }
}
