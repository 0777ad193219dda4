//! The providers that an order's money goes back from.

use std::collections::HashMap;

use rust_decimal::Decimal;

use crate::money::ledger::Position;
use crate::platform::db::Connection;
use rampart_types::OrderKey;

/// A provider that holds money of an order.
struct Source {
    provider: String,
    held: Decimal,
    /// The part of it that goes back.
    part: Decimal,
}

/// The providers that hold a currency for an order, and how much of `owed` goes back from each: first
/// what came in there by payments that are the order's own, then what they hold besides, as of
/// payments in suspense. The order's row is locked.
///
/// # Errors
/// The database's.
pub(super) async fn refund_sources(
    conn: &mut Connection,
    key: OrderKey,
    position: &Position,
    currency: &str,
    mut owed: Decimal,
) -> Result<Vec<(String, Decimal)>, sqlx::Error> {
    let own = own_payments(conn, key, currency).await?;
    let mut sources = Vec::new();
    for (provider, held) in position.providers(currency) {
        let part = own.get(provider).copied().unwrap_or_default().min(held).min(owed);
        owed -= part;
        sources.push(Source { provider: provider.to_owned(), held, part });
    }
    for source in &mut sources {
        let more = (source.held - source.part).min(owed);
        owed -= more;
        source.part += more;
    }
    Ok(sources.into_iter().map(|source| (source.provider, source.part)).collect())
}

/// The sums of the payments that came in and are the order's own, by the connector that reported them.
async fn own_payments(
    conn: &mut Connection,
    OrderKey { client, order }: OrderKey,
    currency: &str,
) -> Result<HashMap<String, Decimal>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"
        select connector as "connector!", sum(amount) as "amount!"
        from (
            select p.connector, p.amount from payment p
            where p.client_id = $1 and p.order_id = $2 and p.currency = $3
                and p.kind = 'received' and not p.suspense
            union all
            select p.connector, p.amount from payment_match m
            join payment p on p.client_id = m.client_id and p.payment_id = m.payment_id
            where m.to_client_id = $1 and m.order_id = $2 and p.currency = $3
                and p.kind = 'received'
        ) own
        group by connector
        "#,
        client.uuid(),
        order.number(),
        currency,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.connector, row.amount)).collect())
}
