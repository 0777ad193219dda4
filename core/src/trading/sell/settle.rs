//! Due events of sales: those without a deposit expire, and the sandbox transfers the money of its own.

use super::status::SaleEvent;
use crate::Core;
use crate::money::connectors::sandbox::worker;
use crate::platform::error::Result;
use crate::trading::orders::expiry::{BATCH_ORDERS, Due, expire_batches};

/// The sweep in metrics and logs.
const SWEEP: &str = "sales";

impl Core {
    /// Applies due events and returns the number of sales that were to be changed. Several edges may run it at
    /// once: a sale's guarded update lets one of them succeed. One that cannot be changed, or that
    /// somebody holds, is passed over.
    ///
    /// # Errors
    /// When the database cannot be used; the next run continues.
    pub async fn settle_sales(&self) -> Result<u32> {
        let transferred = worker::settle_sales(self, SWEEP).await?;
        let due = |last| due(self, last);
        let expired = expire_batches(self, SWEEP, SaleEvent::Expire, due).await?;
        Ok(u32::try_from(transferred).unwrap_or(u32::MAX) + expired)
    }
}

/// Overdue sales behind `last` that nobody holds.
async fn due(core: &Core, last: Due) -> Result<Vec<Due>> {
    let rows = sqlx::query!(
        "select expires_at, client_id, order_id from sell_order \
         where status = 'pending' and expires_at < rampart_now() and expires_at >= $1 \
             and (expires_at, client_id, order_id) > ($1, $2, $3) \
         order by expires_at, client_id, order_id limit $4 for update skip locked",
        last.0,
        last.1,
        last.2,
        BATCH_ORDERS,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(rows.into_iter().map(|row| (row.expires_at, row.client_id, row.order_id)).collect())
}
