//! The only way to change an order's state, bought or sold. One transaction classifies the event by
//! the order's row and writes the new state, the timeline, the outgoing event, what connectors
//! are commanded and, once the order is final, the delivery to its callback.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Applied, Cause, NotApplied, OrderStatus, Transition};
use crate::Core;
use crate::money::connectors::cancellations::{command_cancellation, withdraw_creation};
use crate::money::connectors::payouts::{command_payout, report_payout_again, withdraw_payout};
use crate::money::connectors::transfers::command_transfer;
use crate::money::payments::bookings::{Booked, Booking};
use crate::money::payments::store::{received, refunded};
use crate::money::payments::terms::OrderTerms;
use crate::notify::events::{self, NewEvent};
use crate::platform::clock::NoEntropy;
use crate::platform::db::{Connection, retrying_statement};
use crate::platform::error::Error;
use crate::trading::orders::callback::{self, Outcome};
use crate::trading::quotes::Side;
use rampart_types::{JsonDecimal, OrderKey};

/// The reason that partners are told of an order whose price has moved.
const PRICE_MOVED: &str = "the price has moved by more than it may before the payment arrived";
/// Reasons that a change is refused although the order's state permits it.
const KNOWN_REFERENCE: &str = "a payment with this reference is recorded already";
const PAYOUT_UNDER_WAY: &str = "its payout is under way: wait for the connector's result";
const PAYOUT_OWED: &str = "a part of its payout has not left";
const PAYOUT_LEFT: &str = "its payout has left: hold the order, if it came back";
const REFUND_UNDER_WAY: &str = "a refund is under way: wait until its connector has told of it";
const NOT_PRICEABLE: &str =
    "the order cannot have what has arrived, by a live price and its limits: give it back";

/// Events of one of the two kinds of order, and the statements on its table.
pub trait Event: Sync {
    /// The kind of order.
    const SIDE: Side;
    /// Every permitted transition; any other is refused.
    const TRANSITIONS: &'static [Transition];

    /// The event's reason, shown to the partner unless it is a hold's.
    fn reason(&self) -> Option<&str>;

    /// Amount and reference of the money or the coins that it tells of.
    fn payment(&self) -> (Option<Decimal>, Option<&str>) {
        (None, None)
    }

    /// Classifies the event at `now`; `None` if it has no effect on such an order.
    fn cause(&self, facts: &Facts, now: DateTime<Utc>) -> Option<Cause>;

    /// Reads the order's facts and locks its row until the transaction ends.
    fn facts(
        tx: &mut Connection,
        change: &Change<'_>,
    ) -> impl Future<Output = Result<Option<Facts>, sqlx::Error>> + Send;

    /// Writes state and timeline, guarded by the transition's first state; `None` if the order has
    /// left it already.
    fn write(
        &self,
        tx: &mut Connection,
        change: &Change<'_>,
        transition: &Transition,
    ) -> impl Future<Output = Result<Option<NotifyColumns>, sqlx::Error>> + Send;
}

/// The facts about an order by which an event is classified.
#[derive(Clone, Debug)]
pub struct Facts {
    pub(crate) status: OrderStatus,
    /// Amount due: fiat for an order, coins for a sale.
    pub(crate) amount: Decimal,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    /// The database's time, at which they are judged.
    pub(crate) read_at: DateTime<Utc>,
    /// True if coins were sent to the user; never for a sale.
    pub(crate) coins_sent: bool,
    /// The price of the moment, if the order's rate is fixed when it is paid.
    pub(crate) live_price: Option<Decimal>,
    /// True if that price has moved too far to go on, or there is none.
    pub(crate) price_moved: bool,
}

/// The order's columns that its event and its callback need.
pub struct NotifyColumns {
    pub(crate) partner_reference: Option<String>,
    pub(crate) callback_url: Option<String>,
}

/// The transition that the event causes at `now`; `None` if the order's state forbids it.
pub(crate) fn next_transition<E: Event>(
    facts: &Facts,
    event: &E,
    now: DateTime<Utc>,
) -> Option<&'static Transition> {
    let cause = event.cause(facts, now)?;
    E::TRANSITIONS.iter().find(|row| row.from == facts.status && row.cause == cause)
}

/// Applies an event to an order. `actor` is its author in the timeline: `edge`,
/// `sandbox`, `page`, or an operator.
///
/// # Errors
/// When the order is not there, its state forbids the event, or the database is out of reach.
pub async fn apply<E: Event>(
    core: &Core,
    key: OrderKey,
    event: &E,
    actor: &str,
) -> Result<Applied, NotApplied> {
    let change = Change::new(core, key, actor)?;
    let applied = retrying_statement(|| change.attempt(event)).await?;
    Cause::count(core, [applied.cause]);
    Ok(applied)
}

/// Applies an event inside the caller's transaction. The caller rolls back unless it was applied,
/// and counts the cause in the metrics after the commit.
///
/// # Errors
/// As [`apply`].
pub async fn apply_in<E: Event>(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    event: &E,
    actor: &str,
) -> Result<Applied, NotApplied> {
    let change = Change::new(core, key, actor)?;
    change.attempt_in(conn, event).await
}

/// Finds out whether the order's state permits an event. The order's row stays locked until the
/// caller's transaction ends.
///
/// # Errors
/// As [`apply`].
pub async fn permit<E: Event>(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    event: &E,
) -> Result<(), NotApplied> {
    let change = Change::new(core, key, "")?;
    let facts = E::facts(conn, &change).await?.ok_or(NotApplied::NoSuchOrder)?;
    match next_transition(&facts, event, facts.read_at) {
        Some(_) => Ok(()),
        None => Err(NotApplied::Forbidden { status: facts.status }),
    }
}

/// Applies what a payment that is recorded already means for its order, inside the caller's
/// transaction.
///
/// # Errors
/// As [`apply`].
pub async fn apply_recorded<E: Event>(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    payment: Uuid,
    event: &E,
    actor: &str,
) -> Result<Applied, NotApplied> {
    let change = Change::new(core, key, actor)?;
    let change = Change { payment: Some(payment), ..change };
    change.attempt_in(conn, event).await
}

/// An event being applied.
pub struct Change<'a> {
    pub(crate) core: &'a Core,
    pub(crate) key: OrderKey,
    pub(crate) actor: &'a str,
    pub(crate) transition_id: Uuid,
    pub(crate) now: DateTime<Utc>,
    /// The payment that causes it, if it is recorded already.
    payment: Option<Uuid>,
}

impl<'a> Change<'a> {
    fn new(core: &'a Core, key: OrderKey, actor: &'a str) -> Result<Self, NoEntropy> {
        let (transition_id, now) = (core.clock.uuid()?, core.clock.now());
        Ok(Self { core, key, actor, transition_id, now, payment: None })
    }

    async fn attempt<E: Event>(&self, event: &E) -> Result<Applied, NotApplied> {
        let mut tx = self.core.db.begin().await?;
        let applied = self.attempt_in(&mut tx, event).await?;
        tx.commit().await?;
        Ok(applied)
    }

    async fn attempt_in<E: Event>(
        &self,
        tx: &mut Connection,
        event: &E,
    ) -> Result<Applied, NotApplied> {
        let facts = E::facts(tx, self).await?.ok_or(NotApplied::NoSuchOrder)?;
        // The row is locked: of two events that race, the one that waited has the later time.
        let change = Change::new(self.core, self.key, self.actor)?;
        let change = Change { payment: self.payment, ..change };
        let status = facts.status;
        let Some(transition) = next_transition(&facts, event, facts.read_at) else {
            return Err(NotApplied::Forbidden { status });
        };
        let Some(columns) = event.write(tx, &change, transition).await? else {
            return Err(NotApplied::Forbidden { status });
        };
        if transition.ends_payout() && !self.may_end_payout(tx, transition).await? {
            return Err(NotApplied::Refused(PAYOUT_UNDER_WAY));
        }
        match change.book(tx, event, &facts, transition.cause).await? {
            Booked::Done => {}
            Booked::KnownReference => return Err(NotApplied::Refused(KNOWN_REFERENCE)),
            Booked::PayoutUnderWay => return Err(NotApplied::Refused(PAYOUT_UNDER_WAY)),
            Booked::PayoutOwed => return Err(NotApplied::Refused(PAYOUT_OWED)),
            Booked::PayoutLeft => return Err(NotApplied::Refused(PAYOUT_LEFT)),
            Booked::RefundUnderWay => return Err(NotApplied::Refused(REFUND_UNDER_WAY)),
            Booked::NotPriceable => return Err(NotApplied::Refused(NOT_PRICEABLE)),
        }
        change.notify(tx, transition, E::SIDE, &columns).await?;
        let Transition { from, to, cause, .. } = *transition;
        match E::SIDE {
            Side::Buy => change.command(tx, cause).await?,
            Side::Sell => change.command_transfer(tx, cause).await?,
        }
        Ok(Applied { from, to, cause, at: change.now })
    }

    /// Takes back the payout that no connector has begun. `false` if one is under way that the change
    /// would repeat, or send beside what is given back; what a provider reports has happened all the
    /// same.
    async fn may_end_payout(
        &self,
        tx: &mut Connection,
        transition: &Transition,
    ) -> Result<bool, sqlx::Error> {
        if self.payment.is_some() && transition.to == OrderStatus::InProgress {
            return Ok(true);
        }
        let under_way = withdraw_payout(tx, self.key).await?;
        Ok(!under_way || self.payment.is_some() || transition.to == OrderStatus::Blocked)
    }

    /// Writes what the change means for the books.
    async fn book<E: Event>(
        &self,
        tx: &mut Connection,
        event: &E,
        facts: &Facts,
        cause: Cause,
    ) -> Result<Booked, sqlx::Error> {
        let (amount, reference) = event.payment();
        let booking = Booking {
            core: self.core,
            key: self.key,
            side: E::SIDE,
            cause,
            from: facts.status,
            payment: self.payment,
            amount,
            reference,
            reason: event.reason(),
            live_price: facts.live_price,
            actor: self.actor,
            now: self.now,
        };
        // On the heap: most changes have little to write, and none waits for its size.
        Box::pin(booking.write(tx)).await
    }

    /// Commands what connectors have to do about the change of a bought order.
    async fn command(&self, tx: &mut Connection, cause: Cause) -> Result<(), Error> {
        let (core, key) = (self.core, self.key);
        // On the heap: most changes command nothing.
        match cause {
            Cause::PaymentReceived => {
                withdraw_creation(tx, key).await?;
                // The coins first: one connector may do both.
                Box::pin(command_payout(tx, core, key)).await?;
                Box::pin(command_cancellation(tx, core, key)).await
            }
            Cause::Released => {
                // An edge of the version before has left that of an order that waited.
                withdraw_creation(tx, key).await?;
                Box::pin(command_payout(tx, core, key)).await?;
                Box::pin(command_cancellation(tx, core, key)).await?;
                Ok(report_payout_again(tx, core, key).await?)
            }
            Cause::PaymentLate
            | Cause::PaymentAmountWrong
            | Cause::PriceMoved
            | Cause::Expired
            | Cause::Cancelled
            | Cause::PaymentDenied
            | Cause::Refunded => {
                // Whichever way it goes, no other payment of it is to be made.
                withdraw_creation(tx, key).await?;
                Box::pin(command_cancellation(tx, core, key)).await
            }
            _ => Ok(()),
        }
    }

    /// Commands what connectors have to do about the change of a sold order.
    async fn command_transfer(&self, tx: &mut Connection, cause: Cause) -> Result<(), Error> {
        match cause {
            Cause::PaymentReceived | Cause::Released => {
                Box::pin(command_transfer(tx, self.core, self.key)).await
            }
            _ => Ok(()),
        }
    }

    async fn notify(
        &self,
        tx: &mut Connection,
        transition: &Transition,
        side: Side,
        columns: &NotifyColumns,
    ) -> Result<(), sqlx::Error> {
        let Some(kind) = transition.event_type else { return Ok(()) };
        let outcome = Outcome::from_state(transition.to, transition.cause);
        let url = columns.callback_url.as_deref().zip(outcome);
        let url = url.map(|(url, outcome)| callback::address(url, self.key.order, outcome));
        let amounts = |all: Vec<(Decimal, String)>| -> Value {
            all.iter().map(|(amount, currency)| amount_of(*amount, currency)).collect()
        };
        let mut payload = json!({
            "orderId": self.key.order,
            "partnerOrderIdentifier": columns.partner_reference,
            "status": transition.to,
        });
        match transition.cause {
            Cause::PriceMoved => payload["reason"] = PRICE_MOVED.into(),
            Cause::Refunded => {
                let given_back = refunded(tx, self.key).await?;
                payload["refunded"] = amounts(given_back);
            }
            _ => {}
        }
        if transition.to == OrderStatus::Blocked {
            let arrived = received(tx, self.key).await?;
            payload["received"] = amounts(arrived);
            if let Some(terms) = OrderTerms::lock(tx, self.key, side).await? {
                let (due, currency) = terms.amounts.paid();
                payload["due"] = amount_of(due, currency);
            }
        }
        let event = NewEvent { kind, order_id: Some(self.key.order), payload };
        events::record(tx, self.core, self.key.client, event, url.as_deref()).await
    }
}

/// An amount in the data of an event.
fn amount_of(amount: Decimal, currency: &str) -> Value {
    json!({ "amount": JsonDecimal(amount), "currencyCode": currency })
}
