//! Locks of those who decide on the reports of one payment.

use super::report::{PaymentKind, Report};
use super::store::MANUAL;
use crate::platform::db::Connection;
use rampart_types::ClientId;

/// Holds the reference of a payment, or of a dispute of it: others who decide on reports of that
/// payment wait until the transaction ends. It comes before any book and any order.
///
/// # Errors
/// The database's.
pub(crate) async fn hold_payment_reference(
    conn: &mut Connection,
    connector: &str,
    reference: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"
        insert into reported_payment (connector, provider_reference)
        values ($1, coalesce((
            select d.original_reference from payment d
            where d.connector = $1 and d.kind = 'disputed' and d.provider_reference = $2), $2))
        on conflict (connector, provider_reference) do update set connector = excluded.connector
        "#,
        connector,
        reference,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Holds the reference of a payment that comes in, and the books of reports of it without an order, if
/// it names one itself. Money without an order may be a deposit that was booked by hand under the same
/// reference, which is held, too.
///
/// # Errors
/// The database's.
pub(super) async fn hold(conn: &mut Connection, report: &Report) -> Result<(), sqlx::Error> {
    let (connector, reference) = (&report.connector, &report.provider_reference);
    if report.order.is_some() {
        return hold_for_order(conn, connector, reference).await;
    }
    hold_payment_reference(conn, connector, reference).await?;
    if report.kind == PaymentKind::Received && connector != MANUAL {
        // A deposit locks this one alone.
        hold_payment_reference(conn, MANUAL, reference).await?;
    }
    Ok(())
}

/// Holds the reference of a payment that comes in for an order, and the books of reports of it without
/// one.
///
/// # Errors
/// The database's.
pub async fn hold_for_order(
    conn: &mut Connection,
    connector: &str,
    reference: &str,
) -> Result<(), sqlx::Error> {
    hold_payment_reference(conn, connector, reference).await?;
    hold_books(conn, None, connector, reference).await
}

/// Holds the books of reports of a payment without an order, and that of this client, as `hold_book`
/// does. They come before any order.
///
/// # Errors
/// The database's.
pub(crate) async fn hold_books(
    conn: &mut Connection,
    client: Option<ClientId>,
    connector: &str,
    reference: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!(
        "select c.client_id from client c \
         where c.client_id = any (array( \
             select t.client_id from told_without_order($2, $3) t union select $1::uuid)) \
         order by c.client_id for no key update",
        client.map(ClientId::uuid),
        connector,
        reference,
    )
    .fetch_all(conn)
    .await?;
    Ok(())
}
