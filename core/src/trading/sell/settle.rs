//! Due events of sales: those without a deposit expire, and the sandbox transfers the money of its own.

use std::collections::HashSet;

use super::status::SaleEvent;
use crate::Core;
use crate::money::connectors::sandbox::worker;
use crate::platform::error::{Error, Result};
use crate::trading::orders::status::{NotApplied, apply};
use rampart_types::{ClientId, OrderId};

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
        let mut changed = u32::try_from(transferred).unwrap_or(u32::MAX);
        // Clients whose rows somebody holds: one wait for each is enough.
        let mut held = HashSet::new();
        for (client, number) in overdue.into_iter().map(|row| (row.client_id, row.order_id)) {
            if held.contains(&client) {
                continue;
            }
            match self.expire_sale((client.into(), number)).await {
                Ok(settled) => changed += u32::from(settled),
                Err(error) => {
                    if error.is_lock_timeout() {
                        held.insert(client);
                    }
                    self.metrics.row_failed(SWEEP, (client, &number), error)?;
                }
            }
        }
        Ok(changed)
    }

    async fn expire_sale(&self, (client, sale): (ClientId, i64)) -> Result<bool> {
        let sale = OrderId::try_from(sale).map_err(|e| Error::internal("read a sale's id", e))?;
        match apply(self, client, sale, &SaleEvent::Expire, "edge").await {
            Ok(_) => Ok(true),
            // Another event has changed it since the rows were read.
            Err(
                NotApplied::Forbidden { .. } | NotApplied::Refused(_) | NotApplied::NoSuchOrder,
            ) => Ok(false),
            Err(NotApplied::Failed(error)) => Err(error),
        }
    }
}
