//! Recording a report: the payment and its entry first, then what follows for its order.

use std::borrow::Cow;

use rampart_statement::stored_reference;
use uuid::Uuid;

use super::locks::{self, hold_books};
use super::recording::Recording;
use super::refund_confirmations::{self, RefundReport};
use super::report::{PaymentKind, PaymentState, RAW_BYTES_MAX, Recorded, Report};
use super::store::{MANUAL, NewPayment, currency_of, hold_book, store};
use super::terms::OrderTerms;
use super::timeline;
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::tenancy::house::house;
use crate::trading::orders::column::id;
use rampart_types::{ClientId, OrderId, OrderKey};

/// Records a report in the caller's transaction, which sees every tenant: the payment, its balanced
/// entry, and what follows for its order. A report that is known, contradicts a known one, or
/// confirms a refund that was booked by hand moves nothing, nor does a refund by hand of which a
/// connector has told by its name. A report of more than such a refund is a payment of the rest. One
/// of a deposit that was booked by hand is matched to its order. The order's row stays locked until
/// the transaction ends.
///
/// # Errors
/// The database's. The report's content is no error.
pub async fn record(conn: &mut Connection, core: &Core, report: &Report) -> Result<Recorded> {
    let (currency, is_coins) = currency_of(core, &report.currency);
    if report.kind.is_arrival() {
        // Reports of it that came before follow it to its order.
        locks::hold(conn, report).await?;
    }
    if report.kind == PaymentKind::Refunded {
        // An operator and a connector may tell of it by one name at once.
        locks::hold_payment_reference(conn, MANUAL, &report.provider_reference).await?;
    }
    let order = match report.order {
        Some(order) => OrderTerms::find(conn, report.client, order).await?,
        None => None,
    };
    let of_order = order.as_ref().map(|order| order.key.client);
    let client = of_order.or(report.client).unwrap_or_else(house);
    let wanted = order.as_ref().is_some_and(|order| order.wants(report.kind, &currency));
    let deposit = match &order {
        Some(_) => None,
        None => hold_without_order(conn, report, client, &currency).await?,
    };
    let mut report = Cow::Borrowed(report);
    if report.kind == PaymentKind::Refunded {
        let of = order.as_ref();
        let taken = refund_confirmations::take(conn, client, of, &report, &currency, is_coins);
        match taken.await? {
            RefundReport::Known(known) => return Ok(known),
            RefundReport::New(amount) if amount != report.amount => report.to_mut().amount = amount,
            RefundReport::New(_) => {}
        }
    }
    let mut stored = store(conn, core, &payment_of(&report, client, &currency, wanted)).await?;
    if let (None, Some(order)) = (stored, &order)
        && is_of_other_order(conn, &report, order.key).await?
    {
        let reference = format!("{}/{}", order.key.order, report.provider_reference);
        report.to_mut().provider_reference = stored_reference(&reference);
        stored = store(conn, core, &payment_of(&report, client, &currency, wanted)).await?;
    }
    let Some(id) = stored else { return known(conn, &report, &currency).await };
    keep_report(conn, core, client, id, &report).await?;
    let mut recording = Recording {
        core,
        report: &report,
        payment: id,
        client,
        currency,
        is_coins,
        order,
        wanted,
        causes: Vec::new(),
    };
    // On the heap: it holds the state of an order's whole change.
    Box::pin(recording.book(conn, deposit)).await?;
    let Recording { causes, order, currency, wanted, .. } = recording;
    if let (true, Some(order)) = (causes.is_empty(), &order) {
        timeline::note(conn, core, order, &report, &currency).await?;
    }
    let state = match (wanted || !report.kind.is_arrival(), order) {
        (true, Some(_)) => PaymentState::Matched,
        (_, None) => PaymentState::Unmatched,
        (false, Some(_)) => PaymentState::Suspense,
    };
    let (duplicate, contradicts) = (false, false);
    Ok(Recorded { payment: id, client, duplicate, contradicts, state, causes })
}

/// Holds the books that a report without an order moves. The order of the deposit that it may be of, if
/// that was booked by hand, is the answer.
async fn hold_without_order(
    conn: &mut Connection,
    report: &Report,
    client: ClientId,
    currency: &str,
) -> Result<Option<OrderKey>> {
    if !shares_book(report.kind) {
        return Ok(None);
    }
    let deposit = booked_deposit(conn, report, client, currency).await?;
    if deposit.is_some() {
        // Reports of it that came before follow it to that order.
        let (connector, reference) = (&report.connector, &report.provider_reference);
        hold_books(conn, Some(client), connector, reference).await?;
    } else {
        // Of two that are given back at once, each takes what the other has left; a dispute sees
        // the refund that is decided on at the same time, a payment the dispute that is lost, and
        // each of its ends the other one.
        hold_book(conn, client).await?;
    }
    Ok(deposit)
}

/// The order of the deposit to a savings plan that a report without an order may be of, if that was
/// booked by hand: of the same reference, amount and currency, and of the partner in whose book the
/// report is, or of any if that is the house's. The reference by hand is held: of a deposit and a
/// report at once the second one sees the first.
async fn booked_deposit(
    conn: &mut Connection,
    report: &Report,
    client: ClientId,
    currency: &str,
) -> Result<Option<OrderKey>> {
    // One that names an order, which does not exist, holds its own reference alone.
    let is_other = report.kind != PaymentKind::Received || report.order.is_some();
    if is_other || report.connector == MANUAL {
        return Ok(None);
    }
    let row = sqlx::query!(
        "select d.client_id, d.order_id from payment p \
         join dca_deposit d on d.client_id = p.client_id and d.reference = p.provider_reference \
             and d.order_id = p.order_id \
         where p.connector = $1 and p.kind = 'received' and p.provider_reference = $2 \
             and p.amount = $3 and p.currency = $4 and not p.suspense",
        MANUAL,
        report.provider_reference,
        report.amount,
        currency,
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let key = OrderKey { client: row.client_id.into(), order: id(row.order_id)? };
    Ok(Some(key).filter(|key| client == key.client || client == house()))
}

/// True for what moves the book of what has no order.
fn shares_book(kind: PaymentKind) -> bool {
    matches!(
        kind,
        PaymentKind::Received
            | PaymentKind::Refunded
            | PaymentKind::Disputed
            | PaymentKind::DisputeWon
            | PaymentKind::DisputeLost
    )
}

/// The payment of a report.
fn payment_of<'a>(
    report: &'a Report,
    client: ClientId,
    currency: &'a str,
    wanted: bool,
) -> NewPayment<'a> {
    NewPayment {
        client,
        connector: &report.connector,
        reference: Some(&report.provider_reference),
        original: report.original_reference.as_deref(),
        transaction: report.transaction_id.as_deref(),
        kind: report.kind,
        amount: report.amount,
        currency,
        order: report.order.map(OrderId::number),
        suspense: !wanted && report.kind.is_arrival(),
        actor: &report.actor,
        reason: report.reason.as_deref(),
        occurred_at: report.occurred_at,
    }
}

/// True if a connector's reference of a payout is that of another order's: one transaction may pay
/// several orders. This one's has its order's number before it then, as that of an operator's event.
async fn is_of_other_order(
    conn: &mut Connection,
    report: &Report,
    OrderKey { client, order }: OrderKey,
) -> Result<bool, sqlx::Error> {
    if report.connector == MANUAL || !report.kind.is_of_payout() {
        return Ok(false);
    }
    sqlx::query_scalar!(
        r#"
        select exists (
            select from payment p
            where p.connector = $1 and p.kind = $2 and p.provider_reference = $3
                and (p.client_id, p.order_id) <> ($4::uuid, $5::bigint)
                -- what has named an order that does not exist may be of any
                and (exists (select from buy_order o
                        where o.client_id = p.client_id and o.order_id = p.order_id)
                    or exists (select from sell_order o
                        where o.client_id = p.client_id and o.order_id = p.order_id))) as "is_other!"
        "#,
        report.connector,
        report.kind.as_str(),
        report.provider_reference,
        client.uuid(),
        order.number(),
    )
    .fetch_one(conn)
    .await
}

/// The payment that has the report's reference already.
async fn known(conn: &mut Connection, report: &Report, currency: &str) -> Result<Recorded> {
    let row = sqlx::query!(
        r#"
        select p.client_id, p.payment_id, p.amount, p.currency, p.order_id, p.suspense,
            m.payment_id is not null as "matched!", m.order_id as "matched_order?",
            p.order_id is not null and (
                exists (select from buy_order o
                    where o.client_id = p.client_id and o.order_id = p.order_id)
                or exists (select from sell_order o
                    where o.client_id = p.client_id and o.order_id = p.order_id)) as "has_order!"
        from payment p
        left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
        where p.connector = $1 and p.kind = $2 and p.provider_reference = $3
        "#,
        report.connector,
        report.kind.as_str(),
        report.provider_reference,
    )
    .fetch_optional(conn)
    .await?;
    let row = row.ok_or_else(|| Error::invariant("find the payment of a known reference"))?;
    let orders = [row.order_id, row.matched_order];
    let other_order = report.order.is_some_and(|order| !orders.contains(&Some(order.number())));
    let state = match (row.has_order, row.suspense) {
        _ if row.matched => PaymentState::Matched,
        (false, _) => PaymentState::Unmatched,
        (true, true) => PaymentState::Suspense,
        (true, false) => PaymentState::Matched,
    };
    Ok(Recorded {
        payment: row.payment_id,
        client: row.client_id.into(),
        duplicate: true,
        contradicts: row.amount != report.amount || row.currency != currency || other_order,
        state,
        causes: Vec::new(),
    })
}

/// Stores the report as it came, sealed, unless its order's user is erased.
async fn keep_report(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    payment: Uuid,
    report: &Report,
) -> Result<()> {
    let Some(raw) = report.raw.as_deref() else { return Ok(()) };
    if raw.len() > RAW_BYTES_MAX {
        tracing::warn!(%payment, bytes = raw.len(), "a report is too large to be kept");
        return Ok(());
    }
    let sealed = core.cipher(client).seal(&report_context(client, payment), raw.as_bytes())?;
    sqlx::query!(
        "insert into payment_report (client_id, payment_id, sealed) \
         select $1, $2, $3 where not exists (select from erased_user_of($1, $4))",
        client.uuid(),
        payment,
        sealed,
        report.order.map(OrderId::number),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The context that a report is sealed for.
pub fn report_context(client: ClientId, payment: Uuid) -> String {
    format!("payment_report/{client}/{payment}")
}
