//! The effects of an event, in the transaction that stores it.

use chrono::{DateTime, Utc};
use rampart_statement::stored_reference;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::Reporter;
use super::kind::EventKind;
use super::report::Report;
use super::subject::subject;
use crate::Core;
use crate::money::connectors::identity;
use crate::money::connectors::log_label::log_label;
use crate::money::connectors::settlement::{self, Fact, OrderAmounts};
use crate::money::ledger::Subject;
use crate::money::payments::PaymentKind;
use crate::money::payments::locks::hold_payment_reference;
use crate::money::payments::store::{MANUAL, currency_of, hold_book};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::orders::column::id;
use crate::trading::orders::state::Cause;
use crate::trading::orders::status::OrderEvent;
use rampart_types::{ClientId, OrderId};

/// The effects of an event.
#[derive(Debug, Default)]
pub(in crate::money::connectors) struct Applied {
    /// It says nothing new.
    pub(super) is_duplicate: bool,
    /// Causes of changes of an order, to be counted after the commit.
    pub(in crate::money::connectors) causes: Vec<Cause>,
    /// The payment that it reports, and whose book that is in.
    pub(super) payment: Option<(ClientId, Uuid)>,
}

/// Applies an event of a connector.
///
/// # Errors
/// When the database cannot be written; the event is then not stored either.
pub(super) async fn apply(
    conn: &mut Connection,
    core: &Core,
    reporter: Reporter<'_>,
    report: &Report,
) -> Result<Applied> {
    let Reporter { connector, actor } = reporter;
    let (mut client, mut order) = subject(conn, core, connector, report).await?;
    let Some(kind) = payment_kind(report) else {
        return without_money(conn, core, reporter, report, client, order).await;
    };
    if is_of_payment(kind) || order.is_none() && !kind.is_arrival() {
        hold_names(conn, connector, kind, report).await?;
        let named = payment_of_reference(conn, connector, client, report).await?;
        // Of one that was matched, its provider goes on naming the order that it had named before.
        if let Some(named) = named.filter(|named| order.is_none() || named.is_arrival) {
            (client, order) = (Some(named.client), named.order);
        }
    }
    let amounts = match order {
        Some(order) => OrderAmounts::find(conn, client, order).await?,
        None => None,
    };
    let moved = amount_of(conn, connector, report, kind, amounts.as_ref()).await?;
    let Some((amount, currency)) = moved else {
        let kind = report.kind.as_str();
        tracing::warn!(connector, kind, "an event names no amount and no order");
        return Ok(Applied::default());
    };
    if amount.is_zero() {
        return Ok(Applied { is_duplicate: true, ..Applied::default() });
    };
    // Stated without a currency, it is of the one that is known.
    let amount = report.amount.unwrap_or(amount);
    let fact = Fact {
        kind,
        connector,
        actor,
        reference: own_name(report).to_owned(),
        original: report.original_reference.clone(),
        amount,
        currency,
        client,
        order,
        transaction_id: report.transaction_id.clone(),
        occurred_at: report.occurred_at,
        raw: Some(report.raw.to_string()),
    };
    let recorded = settlement::record(conn, core, fact).await?;
    if let (PaymentKind::PayoutConfirmed, Some(fee), false) =
        (kind, &report.network_fee, recorded.duplicate)
    {
        let of = Subject {
            client: recorded.client,
            order: amounts.and(order).map(OrderId::number),
            payment: Some(recorded.payment),
            occurred_at: report.occurred_at.min(core.clock.now()),
        };
        fee.book(conn, core, &of).await?;
    }
    let payment = Some((recorded.client, recorded.payment));
    Ok(Applied { is_duplicate: recorded.duplicate, causes: recorded.causes, payment })
}

/// Its provider's name for the movement that an event reports.
fn own_name(report: &Report) -> &str {
    let name = report.provider_reference.as_ref().or(report.transaction_id.as_ref());
    name.unwrap_or(&report.id)
}

/// Holds the name of the payment that an event gives back or disputes, which may be reported at the same
/// time, and that of a refund, which an operator may record. They come before any book.
async fn hold_names(
    conn: &mut Connection,
    connector: &str,
    kind: PaymentKind,
    report: &Report,
) -> Result<()> {
    let reference = report.original_reference.as_ref().or(report.provider_reference.as_ref());
    if let (true, Some(reference)) = (is_of_payment(kind), reference) {
        hold_payment_reference(conn, connector, reference).await?;
    }
    if kind == PaymentKind::Refunded {
        hold_payment_reference(conn, MANUAL, &stored_reference(own_name(report))).await?;
    }
    Ok(())
}

/// The kind of payment that an event reports; `None` if no money and no coins have moved.
fn payment_kind(report: &Report) -> Option<PaymentKind> {
    Some(match report.kind {
        EventKind::PaymentReceived => PaymentKind::Received,
        EventKind::PaymentRefunded => PaymentKind::Refunded,
        EventKind::PaymentDisputed => PaymentKind::Disputed,
        EventKind::DisputeClosed if report.outcome.as_deref() == Some("won") => {
            PaymentKind::DisputeWon
        }
        EventKind::DisputeClosed => PaymentKind::DisputeLost,
        EventKind::DepositReceived if report.confirmations != Some(0) => {
            PaymentKind::DepositReceived
        }
        EventKind::PayoutConfirmed if report.confirmations != Some(0) => {
            PaymentKind::PayoutConfirmed
        }
        EventKind::PayoutFailed => PaymentKind::PayoutFailed,
        EventKind::TransferCompleted => PaymentKind::TransferCompleted,
        EventKind::TransferReturned => PaymentKind::TransferReturned,
        EventKind::DepositReceived
        | EventKind::PayoutConfirmed
        | EventKind::PaymentFailed
        | EventKind::IdentityCompleted
        | EventKind::Health => return None,
    })
}

/// The amount that an event reports: its own, else what is left of the dispute that it closes, or that
/// of the payout that it names, else the order's. Zero for a dispute that is closed already.
async fn amount_of(
    conn: &mut Connection,
    connector: &str,
    report: &Report,
    kind: PaymentKind,
    order: Option<&OrderAmounts>,
) -> Result<Option<(Decimal, String)>> {
    let stated = report.amount.zip(report.currency.clone());
    if stated.is_some() {
        return Ok(stated);
    }
    if matches!(kind, PaymentKind::DisputeWon | PaymentKind::DisputeLost)
        && let Some(disputed) = disputed(conn, connector, report, kind).await?
    {
        return Ok(Some(disputed));
    }
    let reference = report.original_reference.as_ref().or(report.provider_reference.as_ref());
    let reference = reference.or(report.transaction_id.as_ref());
    if let (true, Some(reference)) = (kind.is_of_payout(), reference) {
        let sent = settlement::payout_named(conn, connector, reference, order).await?;
        if sent.is_some() {
            return Ok(sent);
        }
    }
    Ok(order.map(|order| match kind {
        PaymentKind::PayoutConfirmed | PaymentKind::PayoutFailed => {
            (order.coins, order.asset.clone())
        }
        _ => (order.fiat, order.currency.clone()),
    }))
}

/// The part that is neither won nor lost of the dispute whose reference an event names; of those of the
/// payment, if it is the payment's own. What is lost as a whole is won as a whole. `None` without one.
async fn disputed(
    conn: &mut Connection,
    connector: &str,
    report: &Report,
    kind: PaymentKind,
) -> Result<Option<(Decimal, String)>> {
    let found = sqlx::query!(
        r#"
        select case when $4 and sum(d.still_open) <= 0 then sum(d.taken)
                else sum(d.still_open) end as "open!", d.currency as "currency!"
        from disputes_of($1, $2, null, null) d
        where d.is_itself or $3::text is null and d.is_of_payment
        group by d.currency, d.is_itself
        order by d.is_itself desc limit 1
        "#,
        connector,
        report.provider_reference.as_deref(),
        report.original_reference,
        kind == PaymentKind::DisputeWon,
    )
    .fetch_optional(conn)
    .await?;
    Ok(found.map(|found| (found.open.max(Decimal::ZERO), found.currency)))
}

async fn without_money(
    conn: &mut Connection,
    core: &Core,
    Reporter { connector, actor }: Reporter<'_>,
    report: &Report,
    client: Option<ClientId>,
    order: Option<OrderId>,
) -> Result<Applied> {
    if let (EventKind::PaymentFailed, Some(order)) = (report.kind, order)
        && let Some(amounts) = OrderAmounts::find(conn, client, order).await?
    {
        let event = OrderEvent::PaymentDenied { reason: report.reason.clone() };
        let causes = settlement::apply(conn, core, amounts.key, &event, actor).await?;
        return Ok(Applied { causes, ..Applied::default() });
    }
    if let (EventKind::IdentityCompleted, Some(command)) = (report.kind, report.command) {
        let outcome = report.outcome.as_deref().unwrap_or_default();
        identity::completed(conn, core, connector, command, outcome).await?;
        return Ok(Applied::default());
    }
    if report.kind == EventKind::Health {
        let [outcome, reason] =
            [&report.outcome, &report.reason].map(|text| text.as_deref().map(log_label));
        tracing::info!(connector, outcome, reason, "a connector told of its health");
        if let Some((amount, asset)) = report.amount.zip(report.currency.as_deref()) {
            let (asset, _) = currency_of(core, asset);
            keep_balance(conn, connector, &asset, amount, report.occurred_at).await?;
        }
    }
    Ok(Applied::default())
}

/// A payment whose reference an event names, such as the one that is given back or disputed.
struct NamedPayment {
    /// The client and the order that it was matched to, else its own.
    client: ClientId,
    order: Option<OrderId>,
    /// It came in.
    is_arrival: bool,
    /// The client in whose book it waits, where it may be matched yet.
    waits_in: Option<ClientId>,
}

/// The payment whose reference an event names, or that of the dispute that it names by its own. It
/// must be the connector's, and the partner's if one is named. One that waits stays as it is until
/// the transaction ends.
async fn payment_of_reference(
    conn: &mut Connection,
    connector: &str,
    client: Option<ClientId>,
    report: &Report,
) -> Result<Option<NamedPayment>> {
    let named = read_payment(conn, connector, client, report).await?;
    match named.as_ref().and_then(|named| named.waits_in) {
        Some(book) => {
            // An operator may be matching it: a statement of its own sees what has come of that.
            hold_book(conn, book).await?;
            read_payment(conn, connector, client, report).await
        }
        None => Ok(named),
    }
}

async fn read_payment(
    conn: &mut Connection,
    connector: &str,
    client: Option<ClientId>,
    report: &Report,
) -> Result<Option<NamedPayment>> {
    // As it is recorded: a payout may be named by its transaction alone.
    let own = report.provider_reference.as_deref().or(report.transaction_id.as_deref());
    let Some(original) = report.original_reference.as_deref().or(own) else { return Ok(None) };
    let found = sqlx::query!(
        r#"
        select coalesce(m.to_client_id, p.client_id) as "client_id!",
            coalesce(m.order_id, p.order_id) as order_id,
            p.kind in ('received', 'deposit-received') as "is_arrival!",
            case when p.suspense and m.payment_id is null then p.client_id end as waits_in
        from payment p
        left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
        where p.connector = $1
            and p.provider_reference in ($2, $4, (
                select d.original_reference from payment d
                where d.connector = $1 and d.kind = 'disputed' and d.provider_reference = $4))
            -- a dispute follows its payment to the order that an operator has matched that to
            and (p.provider_reference in ($2, $4) or m.payment_id is not null)
            -- of a payout its end alone may have been told
            and p.kind in ('received', 'deposit-received', 'payout-sent', 'payout-confirmed',
                'transfer-sent', 'transfer-completed', 'disputed')
            and ($3::uuid is null or $3 in (p.client_id, m.to_client_id))
        order by p.kind = 'disputed', p.provider_reference = $2 desc, p.recorded_at limit 1
        "#,
        connector,
        original,
        client.map(ClientId::uuid),
        own,
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = found else { return Ok(None) };
    Ok(Some(NamedPayment {
        client: row.client_id.into(),
        order: row.order_id.map(id).transpose()?,
        is_arrival: row.is_arrival,
        waits_in: row.waits_in.map(ClientId::from),
    }))
}

/// True for what follows for a payment that came in: its refund, or its dispute.
const fn is_of_payment(kind: PaymentKind) -> bool {
    matches!(
        kind,
        PaymentKind::Refunded
            | PaymentKind::Disputed
            | PaymentKind::DisputeWon
            | PaymentKind::DisputeLost
    )
}

/// Keeps what a connector holds of an asset by its own account, unless it has reported later.
async fn keep_balance(
    conn: &mut Connection,
    connector: &str,
    asset: &str,
    amount: Decimal,
    at: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "insert into connector_balance (connector, asset, amount, reported_at) \
         values ($1, $2, $3, least($4, now())) \
         on conflict (connector, asset) do update \
         set amount = excluded.amount, reported_at = excluded.reported_at \
         where connector_balance.reported_at <= excluded.reported_at",
        connector,
        asset,
        amount,
        at,
    )
    .execute(conn)
    .await?;
    Ok(())
}
