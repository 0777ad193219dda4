//! Due events of sales: those without a deposit expire, and the sandbox transfers the money of its own.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::status::SaleEvent;
use crate::Core;
use crate::money::connectors::sandbox::worker;
use crate::platform::error::Result;
use crate::platform::sweeps::Sweep;
use crate::trading::orders::expiry::expire;

/// Sales of one batch, the longest overdue first.
const BATCH_SALES: i64 = 100;
/// Most batches of one sweep; the rest waits for the next one.
const BATCHES_MAX: u32 = 20;
/// The sweep in metrics and logs.
const SWEEP: &str = "sales";

/// A sale without its deposit: its end, client and number, by which sales are swept.
type Due = (DateTime<Utc>, Uuid, i64);

impl Core {
    /// Applies due events and returns the number of sales that were to be changed. Several edges may run it at
    /// once: a sale's guarded update lets one of them succeed. One that cannot be changed, or that
    /// somebody holds, is passed over.
    ///
    /// # Errors
    /// When the database cannot be used; the next run continues.
    pub async fn settle_sales(&self) -> Result<u32> {
        let transferred = worker::settle_sales(self, SWEEP).await?;
        Ok(u32::try_from(transferred).unwrap_or(u32::MAX) + expire_due(self).await?)
    }
}

/// Cancels pending sales whose coins can no longer come; returns their number.
async fn expire_due(core: &Core) -> Result<u32> {
    let mut sweep = Sweep::new(&core.metrics, SWEEP);
    let (mut expired, mut last) = (0, (DateTime::UNIX_EPOCH, Uuid::nil(), i64::MIN));
    for _ in 0..BATCHES_MAX {
        let due = due(core, last).await?;
        let full = due.len() >= usize::try_from(BATCH_SALES).unwrap_or(usize::MAX);
        let rows = due.iter().map(|&(_, client, number)| (client, number)).collect();
        let expire = |client, number| expire(core, client, number, SaleEvent::Expire);
        expired += sweep.settle(rows, expire).await?;
        match due.last() {
            Some(&end) if full => last = end,
            _ => break,
        }
    }
    Ok(expired)
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
        BATCH_SALES,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(rows.into_iter().map(|row| (row.expires_at, row.client_id, row.order_id)).collect())
}
