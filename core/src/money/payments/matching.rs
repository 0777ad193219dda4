//! A payment that an operator matches to the order that it was meant for.

use rust_decimal::Decimal;
use uuid::Uuid;

use super::recording::Recording;
use super::report::Report;
use super::store::{StoredPayment, currency_of, forget_erased_payer};
use super::terms::OrderTerms;
use crate::Core;
use crate::money::ledger::AccountKind::{Customer, Suspense};
use crate::money::ledger::entries::holding;
use crate::money::ledger::{Position, Posting, Subject, post};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use crate::trading::orders::state::Cause;
use rampart_types::OrderId;

/// Matches a payment in suspense to an order that waits for it, which then follows. Gives the causes
/// of its changes of state, to be counted after the commit.
///
/// # Errors
/// 404 without such a payment or order; 409 when the payment is not in suspense any more, its
/// provider has taken it back or given it back, or the order does not wait for it.
pub async fn match_to(
    conn: &mut Connection,
    core: &Core,
    payment: Uuid,
    order: OrderId,
    actor: &str,
) -> Result<Vec<Cause>> {
    let (stored, terms) = matchable(conn, payment, order).await?;
    let matched_at = sqlx::query_scalar!(
        "insert into payment_match (client_id, payment_id, to_client_id, order_id, actor) \
         values ($1, $2, $3, $4, $5) returning matched_at",
        stored.client.uuid(),
        payment,
        terms.key.client.uuid(),
        order.number(),
        actor,
    )
    .fetch_one(&mut *conn)
    .await?;
    forget_erased_payer(conn, stored.client, payment, terms.key).await?;
    let (_, is_coins) = currency_of(core, &stored.currency);
    let held = |amount| holding(is_coins, &stored.connector, &stored.currency, amount);
    let subject = Subject {
        client: stored.client,
        order: stored.order,
        payment: Some(payment),
        occurred_at: matched_at,
    };
    // Out of one book and into another one, which may be the same.
    let out = [Posting::new(Suspense, &stored.currency, stored.amount), held(-stored.amount)];
    post(conn, core, "matched", &subject, &out).await?;
    let subject = Subject { client: terms.key.client, order: Some(order.number()), ..subject };
    let into = [held(stored.amount), Posting::new(Customer, &stored.currency, -stored.amount)];
    post(conn, core, "matched", &subject, &into).await?;
    let report = Report {
        client: Some(terms.key.client),
        connector: stored.connector,
        provider_reference: stored.reference,
        original_reference: None,
        kind: stored.kind,
        amount: stored.amount,
        currency: stored.currency.clone(),
        order: Some(order),
        transaction_id: stored.transaction,
        occurred_at: stored.occurred_at,
        actor: actor.to_owned(),
        reason: None,
        raw: None,
    };
    let mut recording = Recording::matched(core, &report, payment, terms, is_coins);
    Box::pin(recording.follow_arrival(conn)).await?;
    Ok(recording.causes)
}

/// A payment in suspense that is still with us, and an order that waits for it.
async fn matchable(
    conn: &mut Connection,
    payment: Uuid,
    order: OrderId,
) -> Result<(StoredPayment, OrderTerms)> {
    let stored = StoredPayment::hold(conn, payment).await?;
    let stored = stored.ok_or_else(|| Denial::not_found("payment"))?;
    let is_open = stored.matched.is_none() && (stored.suspense || stored.order.is_none());
    if !is_open || stored.refund_requested > Decimal::ZERO {
        let reason = "the payment is matched already, or is being given back";
        return Err(Denial::conflict(reason).into());
    }
    // What is in suspense beside it is somebody else's.
    if stored.disputed(conn).await? > Decimal::ZERO || stored.is_given_back(conn).await? {
        let reason = "the payment is disputed, or its provider has given it back";
        return Err(Denial::conflict(reason).into());
    }
    let terms = OrderTerms::find(conn, None, order).await?;
    let terms = terms.ok_or_else(|| Denial::not_found("order"))?;
    let in_suspense = Position::of(conn, stored.client, stored.order).await?;
    if in_suspense.owed(Suspense, &stored.currency) < stored.amount
        || !terms.wants(stored.kind, &stored.currency)
    {
        return Err(Denial::conflict("the order does not wait for this payment").into());
    }
    Ok((stored, terms))
}
