//! Refunds that an operator's event of an order has booked, and that their provider reports
//! afterwards: the money has left once, so the report confirms what is booked. Refunds of which a
//! connector and an operator tell by one name, who are heard in any order, are one, too.

use rust_decimal::Decimal;
use uuid::Uuid;

use super::report::{PaymentState, Recorded, Report};
use super::store::MANUAL;
use super::terms::OrderTerms;
use crate::money::ledger::AccountKind::{Customer, RefundPayable, Suspense};
use crate::money::ledger::Position;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::{ClientId, OrderId};

/// A report of a refund, beside bookings by hand and earlier reports.
pub(super) enum RefundReport {
    /// It moves nothing.
    Known(Recorded),
    /// So much of it, above zero, is a fact of its own.
    New(Decimal),
}

/// A refund that an order's event has booked, beside a report of its provider.
struct ByHand {
    payment: Uuid,
    /// The part of it that its provider has not reported.
    open: Decimal,
    /// The report names a payment that is the order's own.
    is_of_own: bool,
    /// The report names a payment, whoever's it is.
    is_named: bool,
    /// A connector was commanded to give that payment back, and may have done so.
    is_commanded: bool,
}

/// Takes a report of a refund as the confirmation of one that was booked by hand, of the same
/// payment and currency, as far as that is left to be confirmed. What it reports beyond that is a
/// fact of its own. One by hand of which a connector has told by its name is known. The order's row
/// is locked; another report of the same reference waits until the transaction ends.
pub(super) async fn take(
    conn: &mut Connection,
    client: ClientId,
    order: Option<&OrderTerms>,
    report: &Report,
    currency: &str,
    is_coins: bool,
) -> Result<RefundReport> {
    let new = RefundReport::New(report.amount);
    if report.connector == MANUAL {
        let told = told_by_name(conn, client, report, currency).await?;
        return Ok(told.map_or(new, RefundReport::Known));
    }
    hold_refund_reference(conn, report).await?;
    if let Some(known) = taken_before(conn, report, currency).await? {
        return Ok(RefundReport::Known(known));
    }
    let Some(order) = order else { return Ok(new) };
    let by_hand = find(conn, order, report, currency, is_coins).await?;
    let Some(by_hand) = by_hand.filter(|by_hand| by_hand.open > Decimal::ZERO) else {
        return Ok(new);
    };
    if !is_confirmed(conn, order, report, currency, &by_hand).await? {
        return Ok(new);
    }
    let confirmed = report.amount.min(by_hand.open);
    let rest = report.amount - confirmed;
    // An edge of the version before may have taken it at the same time: that fails, and is reported
    // again.
    sqlx::query!(
        "insert into refund_confirmation (client_id, payment_id, connector, provider_reference, \
         amount, rest, occurred_at) values ($1, $2, $3, $4, $5, $6, $7)",
        order.key.client.uuid(),
        by_hand.payment,
        report.connector,
        report.provider_reference,
        confirmed,
        rest,
        report.occurred_at,
    )
    .execute(&mut *conn)
    .await?;
    Ok(if rest.is_zero() {
        RefundReport::Known(recorded(order.key.client, by_hand.payment, false))
    } else {
        RefundReport::New(rest)
    })
}

/// The refund of which a connector has told by the name that an operator's report of it has; `None`
/// if that is on record itself.
async fn told_by_name(
    conn: &mut Connection,
    client: ClientId,
    report: &Report,
    currency: &str,
) -> Result<Option<Recorded>, sqlx::Error> {
    let row = sqlx::query!(
        r#"
        select t.client_id as "client_id!", t.payment_id as "payment_id!", t.amount as "amount!"
        from refunds_named($1, $2, $3, $4) t
        where t.connector <> $5 and not exists (
            select from payment p
            where p.connector = $5 and p.kind = 'refunded' and p.provider_reference = $3)
        limit 1
        "#,
        client.uuid(),
        report.order.map(OrderId::number),
        report.provider_reference,
        currency,
        MANUAL,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| recorded(row.client_id.into(), row.payment_id, row.amount != report.amount)))
}

/// Holds the report's reference, which an order's lock does not: reports of it may name different
/// orders.
async fn hold_refund_reference(conn: &mut Connection, report: &Report) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into refund_reference (connector, provider_reference) values ($1, $2) \
         on conflict do nothing",
        report.connector,
        report.provider_reference,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The refund that a report of this reference has confirmed before.
async fn taken_before(
    conn: &mut Connection,
    report: &Report,
    currency: &str,
) -> Result<Option<Recorded>, sqlx::Error> {
    let row = sqlx::query!(
        r#"
        select c.client_id, c.payment_id, c.amount + c.rest as "told!", p.currency, p.order_id
        from refund_confirmation c
        join payment p on p.client_id = c.client_id and p.payment_id = c.payment_id
        where c.connector = $1 and c.provider_reference = $2
        "#,
        report.connector,
        report.provider_reference,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| {
        let other_order = report.order.is_some_and(|order| row.order_id != Some(order.number()));
        let contradicts = row.told != report.amount || row.currency != currency || other_order;
        recorded(row.client_id.into(), row.payment_id, contradicts)
    }))
}

/// The order's refund by hand at the report's provider, of coins in the treasury; `None` if the
/// report is a payment already. An event's refund has its own id for a reference.
async fn find(
    conn: &mut Connection,
    order: &OrderTerms,
    report: &Report,
    currency: &str,
    is_coins: bool,
) -> Result<Option<ByHand>, sqlx::Error> {
    sqlx::query_as!(
        ByHand,
        r#"
        with own as (
            select p.client_id, p.payment_id, p.connector, p.kind, p.provider_reference, p.amount,
                p.currency
            from payment p
            where p.client_id = $1 and p.order_id = $2 and not p.suspense
            union all
            select p.client_id, p.payment_id, p.connector, p.kind, p.provider_reference, p.amount,
                p.currency
            from payment_match m
            join payment p on p.client_id = m.client_id and p.payment_id = m.payment_id
            where m.to_client_id = $1 and m.order_id = $2
        ), named as (
            select o.client_id, o.payment_id from own o
            where o.connector = $3 and o.kind in ('received', 'deposit-received')
                and (o.provider_reference = $4 or exists (
                    select from payment_alias a
                    where a.client_id = o.client_id and a.payment_id = o.payment_id
                        and a.provider_reference = $4))
        )
        select o.payment_id as "payment!",
            o.amount - coalesce((
                select sum(c.amount) from refund_confirmation c
                where c.client_id = o.client_id and c.payment_id = o.payment_id), 0) as "open!",
            exists (select from named) as "is_of_own!",
            $5::text is not null or exists (
                select from payment p
                where p.connector = $3 and p.kind in ('received', 'deposit-received')
                    and p.provider_reference = $4) as "is_named!",
            exists (
                select from named n
                join payment_refund r on r.client_id = n.client_id and r.payment_id = n.payment_id
                join command c on c.client_id = $1
                    and c.idempotency_key = 'refund/' || r.refund_id::text
                where c.state in ('open', 'done')) as "is_commanded!"
        from own o
        where o.kind = 'refunded' and o.provider_reference = o.payment_id::text
            and o.currency = $6 and (o.connector = $3 or $7::boolean)
            and not exists (
                select from payment p
                where p.connector = $3 and p.kind = 'refunded' and p.provider_reference = $8)
            -- what an operator has told of by the report's name is that
            and not exists (
                select from refunds_named($1, $2, $8, $6) t where t.connector = $9)
        limit 1
        "#,
        order.key.client.uuid(),
        order.key.order.number(),
        report.connector,
        report.payment_reference(),
        report.original_reference,
        currency,
        is_coins,
        report.provider_reference,
        MANUAL,
    )
    .fetch_optional(conn)
    .await
}

/// True if the report is of the money that was given back by hand, and not of what is owed beside
/// it: a report that names no payment takes that first.
async fn is_confirmed(
    conn: &mut Connection,
    order: &OrderTerms,
    report: &Report,
    currency: &str,
    by_hand: &ByHand,
) -> Result<bool, sqlx::Error> {
    let position = Position::of_order(conn, order.key).await?;
    let set_aside = position.owed(RefundPayable, currency);
    if by_hand.is_of_own {
        return Ok(!by_hand.is_commanded || report.amount > set_aside);
    }
    let owed = set_aside + position.owed(Suspense, currency) + position.owed(Customer, currency);
    Ok(!by_hand.is_named && report.amount > owed)
}

fn recorded(client: ClientId, payment: Uuid, contradicts: bool) -> Recorded {
    let (state, causes) = (PaymentState::Matched, Vec::new());
    Recorded { payment, client, duplicate: true, contradicts, state, causes }
}
