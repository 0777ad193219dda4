//! Refunds of which a person has given something back at the provider: it tells of that, and no
//! refund of ours explains it.

use rust_decimal::Decimal;
use uuid::Uuid;

use super::{Withdrawn, withdraw};
use crate::Core;
use crate::money::payments::report::Report;
use crate::money::payments::store::hold_book;
use crate::money::payments::terms::OrderTerms;
use crate::platform::db::Connection;
use rampart_types::{ClientId, OrderId};

/// Withdraws refunds of the payment that a report names and that no connector has begun, the one of
/// the report's amount first, then the newest, as far as the provider has told of giving back what
/// no refund of ours explains: a person has given it back there. The payment's order is locked, or
/// its book where it has none.
pub(crate) async fn withdraw_told(
    conn: &mut Connection,
    core: &Core,
    report: &Report,
) -> Result<(), sqlx::Error> {
    let withdrawn = sqlx::query!(
        r#"
        with unasked as (
            select p.client_id, p.payment_id, u.amount
            from payment p
            cross join lateral refunds_told_unasked(p.client_id, p.payment_id, null) u
            where p.connector = $1 and p.provider_reference = $2 and p.kind = 'received'
                and u.amount > 0
        ), commanded as (
            select c.client_id, c.command_id, r.refund_id, r.amount, u.amount as unasked,
                coalesce(sum(r.amount) over (
                    order by r.amount = $3 desc, c.created_at desc, c.command_id desc
                    rows between unbounded preceding and 1 preceding), 0) as ahead
            from unasked u
            join payment_refund r on r.client_id = u.client_id and r.payment_id = u.payment_id
            left join payment_match m
                on m.client_id = u.client_id and m.payment_id = u.payment_id
            join command c on c.client_id = coalesce(m.to_client_id, u.client_id)
                and c.idempotency_key = 'refund/' || r.refund_id::text
            where c.kind = 'payment.refund' and c.state = 'open' and c.attempt = c.retries
        )
        update command c set state = 'rejected', finished_at = now(), checkpoint = null
        from commanded
        where c.client_id = commanded.client_id and c.command_id = commanded.command_id
            and commanded.ahead < commanded.unasked
            and c.state = 'open' and c.attempt = c.retries
        returning commanded.refund_id as "refund_id!",
            least(commanded.amount, commanded.unasked - commanded.ahead) as "told!"
        "#,
        report.connector,
        report.payment_reference(),
        report.amount,
    )
    .fetch_all(&mut *conn)
    .await?;
    for row in withdrawn {
        let refund = Withdrawn { told: row.told, ..Withdrawn::of(row.refund_id) };
        withdraw(conn, core, refund).await?;
    }
    Ok(())
}

/// The refund of a command whose attempt has ended and has sent nothing, with the part that was given
/// back at the provider by somebody else than us; `None` of another kind of command. Its order stays
/// locked until the transaction ends, or its book where it has none.
async fn hold_refund(
    conn: &mut Connection,
    client: ClientId,
    command: Uuid,
) -> Result<Option<Withdrawn>, sqlx::Error> {
    let order = sqlx::query_scalar!(
        "select order_id from command \
         where client_id = $1 and command_id = $2 and kind = 'payment.refund'",
        client.uuid(),
        command,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(order) = order else { return Ok(None) };
    match order.and_then(OrderId::new) {
        Some(order) => {
            OrderTerms::find(conn, Some(client), order).await?;
        }
        None => hold_book(conn, client).await?,
    }
    let refund = sqlx::query!(
        r#"
        select r.refund_id as "refund!", least(r.amount, u.amount) as "told!"
        from command c
        join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
        cross join lateral refunds_told_unasked(r.client_id, r.payment_id, c.command_id) u
        where c.client_id = $1 and c.command_id = $2
        "#,
        client.uuid(),
        command,
    )
    .fetch_optional(conn)
    .await?;
    Ok(refund.map(|row| Withdrawn { told: row.told, ..Withdrawn::of(row.refund) }))
}

/// True if a part of what a command was to give back was given back at the provider by somebody else
/// than us. Its attempt has ended, and has sent nothing.
pub(crate) async fn is_told(
    conn: &mut Connection,
    client: ClientId,
    command: Uuid,
) -> Result<bool, sqlx::Error> {
    let refund = hold_refund(conn, client, command).await?;
    Ok(refund.is_some_and(|refund| refund.told > Decimal::ZERO))
}

/// Withdraws the refund of a command that was rejected.
pub(crate) async fn withdraw_rejected(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    command: Uuid,
) -> Result<(), sqlx::Error> {
    match hold_refund(conn, client, command).await? {
        Some(refund) => withdraw(conn, core, refund).await,
        None => Ok(()),
    }
}
