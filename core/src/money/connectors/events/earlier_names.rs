//! Payments that came in, and transfers that came back, which a connector has reported before, when it
//! named them otherwise.

use rampart_types::{ClientId, OrderId};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::kind::EventKind;
use super::report::{EARLIER_MAX, Report};
use super::subject::subject;
use crate::Core;
use crate::money::payments::PaymentKind;
use crate::money::payments::store::currency_of;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::tenancy::house::house;

/// The payment that an event tells of, and whose book it is in, if it was recorded under an earlier
/// name of its provider's. It has this event's reference from then on: another reference that says
/// the same is of another payment.
///
/// # Errors
/// The database's.
pub(super) async fn take(
    conn: &mut Connection,
    core: &Core,
    connector: &str,
    report: &Report,
) -> Result<Option<(ClientId, Uuid)>> {
    let kind = match report.kind {
        EventKind::PaymentReceived => PaymentKind::Received,
        EventKind::TransferReturned => PaymentKind::TransferReturned,
        _ => return Ok(None),
    };
    let (Some(reference), Some(amount), Some(currency)) =
        (report.provider_reference.as_deref(), report.amount, report.currency.as_deref())
    else {
        return Ok(None);
    };
    let (currency, _) = currency_of(core, currency);
    // Each try that loses to an event at the same time has one payment less to look at: there is at
    // most one of each name.
    for _ in 0..=EARLIER_MAX {
        let known = renamed(conn, connector, kind, reference, amount, &currency).await?;
        if known.is_some() || report.earlier_references.is_empty() {
            return Ok(known);
        }
        let (client, order) = subject(conn, core, connector, report).await?;
        let found = sqlx::query!(
            r#"
            with free as (
                select p.client_id, p.payment_id from payment p
                where p.connector = $1 and p.kind = $8 and p.provider_reference = any ($2)
                    and p.amount = $3 and p.currency = $4 and p.occurred_at = $5
                    -- that of another order is another payment; a return need not name its order
                    and (p.order_id is null or p.kind = 'transfer-returned'
                        -- in the house's book it has named no partner
                        or p.order_id = $6 and ($9::uuid is null or p.client_id in ($9, $10)))
                    and not exists (select from payment_alias a
                        where a.client_id = p.client_id and a.payment_id = p.payment_id)
                    -- recorded under its own name, it needs no other one
                    and not exists (select from payment own where own.connector = $1
                        and own.kind = $8 and own.provider_reference = $7)
                order by p.order_id is null, p.recorded_at, p.payment_id limit 1
            ), taken as (
                insert into payment_alias (client_id, payment_id, provider_reference)
                select client_id, payment_id, $7 from free
                on conflict (client_id, payment_id) do nothing
                returning payment_id
            )
            select f.client_id as "client_id!", f.payment_id as "payment_id!",
                exists (select from taken) as "is_taken!"
            from free f
            "#,
            connector,
            &report.earlier_references,
            amount,
            &*currency,
            report.occurred_at,
            order.map(OrderId::number),
            reference,
            kind.as_str(),
            client.map(ClientId::uuid),
            house().uuid(),
        )
        .fetch_optional(&mut *conn)
        .await?;
        match found {
            Some(row) if row.is_taken => return Ok(Some((row.client_id.into(), row.payment_id))),
            // An event at the same time has taken it: there may be another one.
            Some(_) => {}
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// The payment that has taken this reference beside its own, and whose book it is in.
async fn renamed(
    conn: &mut Connection,
    connector: &str,
    kind: PaymentKind,
    reference: &str,
    amount: Decimal,
    currency: &str,
) -> Result<Option<(ClientId, Uuid)>> {
    let found = sqlx::query!(
        "select p.client_id, p.payment_id, p.amount, p.currency from payment_alias a \
         join payment p on p.client_id = a.client_id and p.payment_id = a.payment_id \
         where a.provider_reference = $2 and p.connector = $1 and p.kind = $3 limit 1",
        connector,
        reference,
        kind.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = found else { return Ok(None) };
    if row.amount != amount || row.currency != currency {
        let payment = row.payment_id;
        tracing::warn!(connector, %payment, "a report contradicts an earlier one");
    }
    Ok(Some((row.client_id.into(), row.payment_id)))
}
