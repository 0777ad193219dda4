//! Due events of sales: those without a deposit expire, and the sandbox transfers the money of its own.

use super::status::SaleEvent;
use crate::Core;
use crate::money::connectors::sandbox::worker;
use crate::platform::error::Result;
use crate::platform::sweeps::Sweep;
use crate::trading::orders::expiry::expire;

/// Sales of each kind in one run, the longest overdue first.
const BATCH_SALES: i64 = 1_000;
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
        let overdue = sqlx::query!(
            "select client_id, order_id from sell_order \
             where status = 'pending' and expires_at < rampart_now() \
             order by expires_at limit $1 for update skip locked",
            BATCH_SALES,
        )
        .fetch_all(&self.db)
        .await?;
        let transferred = worker::settle_sales(self, SWEEP).await?;
        let rows = overdue.into_iter().map(|row| (row.client_id, row.order_id)).collect();
        let expire = |client, number| expire(self, client, number, SaleEvent::Expire);
        let expired = Sweep::new(&self.metrics, SWEEP).settle(rows, expire).await?;
        Ok(u32::try_from(transferred).unwrap_or(u32::MAX) + expired)
    }
}
