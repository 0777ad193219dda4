//! Refunds that are asked for: the amount is set aside, and its connector is told to give it back.

use rust_decimal::Decimal;
use serde_json::json;
use uuid::Uuid;

use super::refund_sums::refunds_of_order;
use super::refund_withdrawals::in_suspense;
use super::store::StoredPayment;
use super::terms::OrderTerms;
use super::unwind::unwind;
use crate::Core;
use crate::money::connectors::commands::{self, Command, CommandKind, Target};
use crate::money::connectors::payouts::withdraw_payout;
use crate::money::ledger::AccountKind::{Customer, PayoutPayable, RefundPayable, Suspense};
use crate::money::ledger::{AccountKind, Position, Posting, Subject, post};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Error, Result};
use crate::trading::orders::state::{Cause, OrderStatus};
use crate::trading::orders::status::{NotApplied, OrderEvent, apply_recorded};
use crate::trading::quotes::Side;
use crate::trading::sell::status::SaleEvent;
use rampart_types::{ClientId, JsonDecimal, OrderId};

/// Actor of the refunds that no operator has asked for, as stored.
pub(super) const EDGE: &str = "edge";

/// A refund that is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refund<'a> {
    /// The tenant of the payment's row.
    pub(super) of: ClientId,
    /// The tenant of the book that it is owed in.
    pub(super) book: ClientId,
    /// The order that it is owed for, in that book.
    pub(super) order: Option<i64>,
    pub(super) payment: Uuid,
    pub(super) amount: Decimal,
    pub(super) currency: &'a str,
    /// Account in which the amount is owed until now.
    pub(super) from: AccountKind,
    pub(super) actor: &'a str,
    pub(super) reason: Option<&'a str>,
}

/// Sets the amount aside and notes the refund.
pub(super) async fn request(
    conn: &mut Connection,
    core: &Core,
    refund: &Refund<'_>,
) -> Result<Uuid> {
    let id = core.clock.uuid()?;
    let requested_at = sqlx::query_scalar!(
        "insert into payment_refund (client_id, refund_id, payment_id, amount, actor, reason) \
         values ($1, $2, $3, $4, $5, $6) returning requested_at",
        refund.of.uuid(),
        id,
        refund.payment,
        refund.amount,
        refund.actor,
        refund.reason,
    )
    .fetch_one(&mut *conn)
    .await?;
    let subject = Subject {
        client: refund.book,
        order: refund.order,
        payment: Some(refund.payment),
        occurred_at: requested_at,
    };
    let postings = [
        Posting::new(refund.from, refund.currency, refund.amount),
        Posting::new(RefundPayable, refund.currency, -refund.amount),
    ];
    post(conn, core, "refund-requested", &subject, &postings).await?;
    command(conn, core, refund, id).await?;
    Ok(id)
}

/// Has the connector that the payment came through give it back. Other payments, and those of a
/// connector that gives none back, are given back by an operator.
async fn command(conn: &mut Connection, core: &Core, refund: &Refund<'_>, id: Uuid) -> Result<()> {
    let found = sqlx::query!(
        "select p.connector, p.provider_reference from payment p \
         join connector k on k.name = p.connector and $3 = any (k.capabilities) \
         where p.client_id = $1 and p.payment_id = $2 and p.kind = 'received'",
        refund.of.uuid(),
        refund.payment,
        CommandKind::PaymentRefund.as_str(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(payment) = found else { return Ok(()) };
    let command = Command {
        client: refund.book,
        order: refund.order.and_then(OrderId::new),
        user: None,
        kind: CommandKind::PaymentRefund,
        idempotency_key: format!("refund/{id}"),
        target: Target::Connector(payment.connector),
        body: json!({
            "orderId": refund.order,
            "amount": JsonDecimal(refund.amount),
            "currency": refund.currency,
            "providerReference": payment.provider_reference,
        }),
    };
    commands::enqueue(conn, core, command).await?;
    Ok(())
}

/// An operator's decision to give a payment back.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    /// Payment that is given back.
    pub payment: Uuid,
    /// In whole smallest units of the payment's currency; `None` is all that is left of it.
    pub amount: Option<Decimal>,
    /// Reason, for the record.
    pub reason: &'a str,
    /// Operator who decided.
    pub actor: &'a str,
}

/// A refund that was asked for.
#[derive(Debug)]
pub struct Requested {
    /// Its id.
    pub id: Uuid,
    /// Amount in whole smallest units of the currency.
    pub amount: Decimal,
    /// The amount, and what was asked for of the payment before, or what operators give back of its
    /// order in all if that is more.
    pub all: Decimal,
    /// Code of its currency.
    pub currency: String,
    /// Causes of changes of the order's state, to be counted after the commit.
    pub causes: Vec<Cause>,
}

/// Sets aside what is to be given back of a payment. An order in progress waits from then on.
///
/// # Errors
/// 404 without such a payment; 409 when nothing came in by it, less is left of it, its provider has
/// taken it back or given it back, or its coins have left.
pub async fn decide(
    conn: &mut Connection,
    core: &Core,
    decision: &Decision<'_>,
) -> Result<Requested> {
    let Decision { payment, reason, actor, .. } = *decision;
    let stored = StoredPayment::hold(conn, payment).await?;
    let stored = stored.ok_or_else(|| Denial::not_found("payment"))?;
    if !stored.kind.is_arrival() {
        return Err(Denial::conflict("nothing came in by this payment").into());
    }
    let left = left(conn, &stored).await?;
    let amount = decision.amount.unwrap_or(left);
    if amount > left || amount <= Decimal::ZERO {
        let reason = "less is left of the payment, or its provider has taken or given it back";
        return Err(Denial::conflict(reason).into());
    }
    let owed = owed_in(conn, &stored, payment, amount).await?;
    let mut causes = Vec::new();
    if owed.from == Customer
        && let Some(key) = stored.order_key()
    {
        let terms = OrderTerms::find(conn, Some(key.client), key.order).await?;
        let terms = terms.ok_or_else(|| Error::invariant("find the order of a payment"))?;
        causes.extend(stop(conn, core, &terms, payment, reason, actor).await?);
    }
    let Owed { book, order, from } = owed;
    let position = Position::of(conn, book, order).await?;
    if position.owed(from, &stored.currency) < amount {
        return Err(Denial::conflict("the payment was given back, or its coins have left").into());
    }
    let refund = Refund {
        of: stored.client,
        book,
        order,
        payment,
        amount,
        currency: &stored.currency,
        from,
        actor,
        reason: Some(reason),
    };
    let id = request(conn, core, &refund).await?;
    let mut all = stored.refund_requested + amount;
    if let Some(order) = order {
        all = all.max(refunds_of_order(conn, order, &stored.currency).await?);
    }
    Ok(Requested { id, amount, all, currency: stored.currency, causes })
}

/// The amount that [`decide`] gives back without one by what is stored now; zero where it refuses.
/// Nothing is locked: a payout that is under way may come before the decision.
///
/// # Errors
/// When the database cannot be read.
pub async fn refundable(conn: &mut Connection, payment: Uuid) -> Result<Decimal> {
    let stored = StoredPayment::find(conn, payment).await?;
    let Some(stored) = stored.filter(|stored| stored.kind.is_arrival()) else {
        return Ok(Decimal::ZERO);
    };
    let left = left(conn, &stored).await?;
    if left <= Decimal::ZERO {
        return Ok(Decimal::ZERO);
    }
    let Owed { book, order, from } = owed_in(conn, &stored, payment, left).await?;
    let position = Position::of(conn, book, order).await?;
    let is_owed = position.owed(from, &stored.currency) >= left;
    // An exchange is undone while its payout has not left.
    let is_there = is_owed || from == Customer && position.owes_payout();
    Ok(if is_there { left } else { Decimal::ZERO })
}

/// The part of a payment that nobody has asked for, and its provider has neither taken nor given back.
async fn left(conn: &mut Connection, stored: &StoredPayment) -> Result<Decimal> {
    // What is in its book beside it is of other payments, or somebody else's.
    let gone = stored.disputed(conn).await? + stored.given_back_unasked(conn).await?;
    Ok(stored.amount - stored.refund_requested - gone)
}

/// The account that a part of a payment is owed in.
struct Owed {
    /// The tenant of its book.
    book: ClientId,
    order: Option<i64>,
    from: AccountKind,
}

async fn owed_in(
    conn: &mut Connection,
    stored: &StoredPayment,
    payment: Uuid,
    amount: Decimal,
) -> Result<Owed> {
    if stored.matched.is_none() && (stored.suspense || stored.order.is_none()) {
        return Ok(Owed { book: stored.client, order: stored.order, from: Suspense });
    }
    let key = stored.order_key();
    let key = key.ok_or_else(|| Error::invariant("find the order of a payment"))?;
    let is_in_suspense = in_suspense(conn, stored.client, payment).await? >= amount;
    let from = if is_in_suspense { Suspense } else { Customer };
    Ok(Owed { book: key.client, order: Some(key.order.number()), from })
}

/// The refund that a decision would ask for now: its transaction is undone.
///
/// # Errors
/// Those of [`decide`].
pub async fn rehearse(core: &Core, decision: &Decision<'_>) -> Result<Requested> {
    let mut tx = core.db.begin().await?;
    let requested = decide(&mut tx, core, decision).await?;
    tx.rollback().await?;
    Ok(requested)
}

/// Undoes the exchange of an order whose payout has not left, and lets it wait.
async fn stop(
    conn: &mut Connection,
    core: &Core,
    terms: &OrderTerms,
    payment: Uuid,
    reason: &str,
    actor: &str,
) -> Result<Option<Cause>> {
    let key = terms.key;
    if withdraw_payout(conn, key).await? {
        return Err(Denial::conflict("its payout is under way").into());
    }
    let position = Position::of_order(conn, key).await?;
    let (payout, currency) = terms.amounts.payout();
    let executed = position.is_executed(&terms.amounts.crypto_currency);
    if !executed || position.owed(PayoutPayable, currency) < payout {
        return Ok(None);
    }
    let subject = Subject {
        client: key.client,
        order: Some(key.order.number()),
        payment: Some(payment),
        occurred_at: core.clock.now(),
    };
    unwind(conn, core, terms, &subject).await?;
    if terms.status != OrderStatus::InProgress {
        return Ok(None);
    }
    let reason = Some(reason.to_owned());
    let applied = match terms.amounts.side {
        Side::Buy => {
            let hold = OrderEvent::Hold { reason };
            Box::pin(apply_recorded(conn, core, key, payment, &hold, actor)).await
        }
        Side::Sell => {
            let hold = SaleEvent::Hold { reason };
            Box::pin(apply_recorded(conn, core, key, payment, &hold, actor)).await
        }
    };
    match applied {
        Ok(applied) => Ok(Some(applied.cause)),
        Err(NotApplied::Failed(error)) => Err(error),
        Err(_) => Err(Error::invariant("let an order wait whose payment is given back")),
    }
}
