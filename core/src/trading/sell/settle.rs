//! What happens to sales by themselves: those without a deposit end, and the sandbox pays out.

use super::status::SaleEvent;
use crate::Core;
use crate::platform::error::{Error, Result};
use crate::trading::orders::status::{NotApplied, apply};
use rampart_types::{ClientId, OrderId};

/// Sales of each kind that one turn takes, the longest overdue first.
const BATCH_SALES: i64 = 100;

impl Core {
    /// Takes what is due, and answers how many sales moved. Several edges may do so at once: a
    /// sale's own guard lets one of them have it.
    ///
    /// # Errors
    /// When the database cannot be used; the next turn goes on.
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
        let mut moved = 0;
        for row in overdue {
            let of = (row.client_id.into(), row.order_id);
            moved += u32::from(self.settle(of, &SaleEvent::Expire, "edge").await?);
        }
        for row in paid_out {
            let of = (row.client_id.into(), row.order_id);
            moved += u32::from(self.settle(of, &SaleEvent::PaidOut, "sandbox").await?);
        }
        Ok(moved)
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
            // Moved by somebody else since the look.
            Err(NotApplied::Forbidden { .. } | NotApplied::NoSuchOrder) => Ok(false),
            Err(NotApplied::Failed(error)) => Err(error),
        }
    }
}
