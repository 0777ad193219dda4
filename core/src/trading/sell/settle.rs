//! Due events of sales: those without a deposit expire, and the sandbox settles its own.

use std::collections::HashSet;

use super::status::SaleEvent;
use crate::Core;
use crate::platform::error::{Error, Result};
use crate::trading::orders::status::{Cause, NotApplied, apply};
use crate::trading::sandbox::Scenario;
use rampart_types::{ClientId, OrderId};

/// Sales of each kind in one run, the longest overdue first.
const BATCH_SALES: i64 = 1_000;
/// The sweep in metrics and logs.
const SWEEP: &str = "sales";

impl Core {
    /// Applies due events and returns the number of sales that changed. Several edges may run it at
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
        let in_sandbox = sqlx::query!(
            "select client_id, order_id, partner_reference, status_cause as \"cause: Cause\" \
             from sell_order where settles_at <= rampart_now() order by settles_at limit $1 \
             for update skip locked",
            BATCH_SALES,
        )
        .fetch_all(&self.db)
        .await?;
        let overdue = overdue.into_iter().map(|row| (row.client_id, row.order_id));
        let overdue = overdue.map(|sale| (sale, SaleEvent::Expire, "edge"));
        let in_sandbox = in_sandbox.into_iter().map(|row| {
            let event = simulated(row.partner_reference.as_deref(), row.cause);
            ((row.client_id, row.order_id), event, "sandbox")
        });
        let mut changed = 0;
        // Clients whose rows somebody holds: one wait for each is enough.
        let mut held = HashSet::new();
        for ((client, number), event, actor) in overdue.chain(in_sandbox) {
            if held.contains(&client) {
                continue;
            }
            match self.settle((client.into(), number), &event, actor).await {
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

/// The sandbox's event for a sale in progress: the payout, unless its reference names another end
/// of a deposit.
fn simulated(reference: Option<&str>, cause: Cause) -> SaleEvent {
    let scenario = Scenario::named(reference).filter(|_| cause == Cause::PaymentReceived);
    match scenario {
        Some(Scenario::Held) => SaleEvent::Hold { reason: None },
        Some(Scenario::Returned) => SaleEvent::Refund { reason: None },
        _ => SaleEvent::PaidOut,
    }
}
