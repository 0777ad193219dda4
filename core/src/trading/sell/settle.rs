//! Due events of sales: those without a deposit expire, and the sandbox pays out.

use super::status::SaleEvent;
use crate::Core;
use crate::platform::error::{Error, Result};
use crate::trading::orders::status::{NotApplied, apply};
use rampart_types::{ClientId, OrderId};

/// Sales of each kind in one run, the longest overdue first.
const BATCH_SALES: i64 = 100;

impl Core {
    /// Applies due events and returns the number of sales that changed. Several edges may run it at
    /// once: a sale's guarded update lets one of them succeed.
    ///
    /// # Errors
    /// When the database cannot be used; the next run continues.
    pub async fn settle_sales(&self) -> Result<u32> {
        let now = self.clock.now();
        let overdue = sqlx::query!(
            "select client_id, order_id from sell_order \
             where status = 'pending' and expires_at < $1 order by expires_at limit $2",
            now,
            BATCH_SALES,
        )
        .fetch_all(&self.db)
        .await?;
        let paid_out = sqlx::query!(
            "select client_id, order_id from sell_order \
             where settles_at <= $1 order by settles_at limit $2",
            now,
            BATCH_SALES,
        )
        .fetch_all(&self.db)
        .await?;
        let mut changed = 0;
        for row in overdue {
            let sale = (row.client_id.into(), row.order_id);
            changed += u32::from(self.settle(sale, &SaleEvent::Expire, "edge").await?);
        }
        for row in paid_out {
            let sale = (row.client_id.into(), row.order_id);
            changed += u32::from(self.settle(sale, &SaleEvent::PaidOut, "sandbox").await?);
        }
        Ok(changed)
    }

    async fn settle(
        &self,
        (client, sale): (ClientId, i64),
        event: &SaleEvent,
        actor: &str,
    ) -> Result<bool> {
        let sale = OrderId::try_from(sale).map_err(|e| Error::internal("read a sale's id", e))?;
        match apply(self, client, sale, event, actor).await {
            Ok(_) => Ok(true),
            // Another event has changed it since the rows were read.
            Err(
                NotApplied::Forbidden { .. } | NotApplied::Refused(_) | NotApplied::NoSuchOrder,
            ) => Ok(false),
            Err(NotApplied::Failed(error)) => Err(error),
        }
    }
}
