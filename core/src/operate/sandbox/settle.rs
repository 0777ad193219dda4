//! The worker that runs due sandbox steps.

use chrono::{DateTime, TimeDelta, Utc};

use super::apply_event::apply_event;
use crate::Core;
use crate::platform::error::{Error, Result};
use crate::trading::orders::status::NotApplied;
use crate::trading::sandbox::SimulatedEvent;
use rampart_types::{ClientId, OrderId};

/// Most steps of one run.
const BATCH_STEPS: i64 = 50;
/// Lease on a claimed step; an edge that dies delays the order by this.
const LEASE: TimeDelta = TimeDelta::seconds(10);
/// The sweep in metrics and logs.
const SWEEP: &str = "sandbox";

/// A due step, leased by this edge.
struct LeasedStep {
    client: ClientId,
    order: OrderId,
    event: String,
    leased_until: DateTime<Utc>,
}

impl Core {
    /// Runs due steps, at most [`BATCH_STEPS`]; returns the number claimed. A step that fails is
    /// logged and retried after its lease.
    ///
    /// # Errors
    /// When the steps cannot be claimed.
    pub async fn settle_sandbox_orders(&self) -> Result<usize> {
        let due = self.claim_sandbox_steps().await?;
        for step in &due {
            if let Err(error) = self.run_sandbox_step(step).await {
                self.metrics.row_failed(SWEEP, (step.client.uuid(), &step.order), error)?;
            }
        }
        Ok(due.len())
    }

    async fn claim_sandbox_steps(&self) -> Result<Vec<LeasedStep>> {
        let rows = sqlx::query!(
            r#"
            with due as (
                select client_id, order_id from sandbox_step
                where due_at <= rampart_now()
                    and (leased_until is null or leased_until <= rampart_now())
                order by due_at limit $2 for update skip locked
            )
            update sandbox_step s
            set leased_until = rampart_now() + $1::bigint * interval '1 second'
            from due where s.client_id = due.client_id and s.order_id = due.order_id
            returning s.client_id, s.order_id, s.event, s.leased_until as "leased_until!"
            "#,
            LEASE.num_seconds(),
            BATCH_STEPS,
        )
        .fetch_all(&self.db)
        .await?;
        let due = rows.into_iter().map(|row| {
            let order = OrderId::new(row.order_id)
                .ok_or_else(|| Error::invariant("read a sandbox step: its order has no number"))?;
            Ok(LeasedStep {
                client: row.client_id.into(),
                order,
                event: row.event,
                leased_until: row.leased_until,
            })
        });
        due.collect()
    }

    async fn run_sandbox_step(&self, step: &LeasedStep) -> Result<()> {
        let event = SimulatedEvent::from_name(&step.event)
            .ok_or_else(|| Error::invariant("read a sandbox step: its event is unknown"))?;
        if event == SimulatedEvent::CoinsSent && self.is_payout_held(step).await? {
            // What clears the last check has it run again at once, and its lease has it later.
            return Ok(());
        }
        match apply_event(self, step.client, step.order, event).await {
            // The same transaction has replaced this step by the next one.
            Ok(_) => Ok(()),
            Err(
                NotApplied::Forbidden { .. } | NotApplied::Refused(_) | NotApplied::NoSuchOrder,
            ) => self.delete_step(step).await,
            Err(NotApplied::Failed(error)) => Err(error),
        }
    }

    async fn is_payout_held(&self, step: &LeasedStep) -> Result<bool> {
        let held = sqlx::query_scalar!(
            r#"select payout_is_held($1, $2, $3) as "held!""#,
            step.client.uuid(),
            step.order.number(),
            self.settings.compliance.gate.as_str(),
        )
        .fetch_one(&self.db)
        .await?;
        Ok(held)
    }

    /// Deletes a step that another event has overtaken; the order's next step is another row.
    async fn delete_step(&self, step: &LeasedStep) -> Result<()> {
        sqlx::query!(
            "delete from sandbox_step \
             where client_id = $1 and order_id = $2 and event = $3 and leased_until = $4",
            step.client.uuid(),
            step.order.number(),
            step.event,
            step.leased_until,
        )
        .execute(&self.db)
        .await?;
        Ok(())
    }
}
