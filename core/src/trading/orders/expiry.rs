//! Cancels orders whose time to pay has passed.

use chrono::TimeDelta;

use super::status::{NotApplied, OrderEvent, apply};
use crate::Core;
use crate::platform::error::{Error, Result};
use rampart_types::{ClientId, OrderId};

/// Orders of one batch, the longest overdue first.
const BATCH_ORDERS: i64 = 100;
/// Most batches of one sweep; the rest waits for the next one.
const BATCHES_MAX: u32 = 20;

/// Cancels pending orders that can no longer be paid; returns their number. Several edges may sweep
/// at once: an order's guarded update lets one of them succeed.
///
/// # Errors
/// When the database cannot be used.
pub async fn expire_due(core: &Core) -> Result<u32> {
    let mut expired = 0;
    for _ in 0..BATCHES_MAX {
        let due = due(core).await?;
        let full = due.len() >= usize::try_from(BATCH_ORDERS).unwrap_or(usize::MAX);
        for (client, order) in due {
            match apply(core, client, order, &OrderEvent::Expire, "edge").await {
                Ok(_) => expired += 1,
                // Paid, or expired by another edge, since the batch was read.
                Err(
                    NotApplied::Forbidden { .. } | NotApplied::Refused(_) | NotApplied::NoSuchOrder,
                ) => {}
                Err(NotApplied::Failed(error)) => return Err(error),
            }
        }
        if !full {
            break;
        }
    }
    Ok(expired)
}

async fn due(core: &Core) -> Result<Vec<(ClientId, OrderId)>> {
    let now = core.clock.now();
    let rows = sqlx::query!(
        r#"
        (select client_id as "client_id!", order_id as "order_id!" from buy_order
            where status = 'pending' and expires_at < $1 order by expires_at limit $2)
        union all
        (select client_id, order_id from buy_order
            where status = 'pending' and expires_at is null and created_at < $3
            order by created_at limit $2)
        limit $2
        "#,
        now,
        BATCH_ORDERS,
        now - TimeDelta::seconds(core.settings.lifetimes.bank_transfer.into()),
    )
    .fetch_all(&core.db)
    .await?;
    rows.into_iter()
        .map(|row| {
            let order = OrderId::try_from(row.order_id)
                .map_err(|error| Error::internal("read an order id", error))?;
            Ok((ClientId::from(row.client_id), order))
        })
        .collect()
}
