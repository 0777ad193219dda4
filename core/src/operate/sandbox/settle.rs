//! The worker that takes the steps that are due.

use chrono::{DateTime, TimeDelta, Utc};

use super::apply_event::apply_event;
use crate::Core;
use crate::platform::error::{Error, Result};
use crate::trading::orders::status::NotApplied;
use crate::trading::sandbox::SimulatedEvent;
use rampart_types::{ClientId, OrderId};

/// Most steps of one turn.
const BATCH_STEPS: i64 = 50;
/// How long a claimed step is an edge's own; one that dies delays the order by this.
const LEASE: TimeDelta = TimeDelta::seconds(10);

/// A step that this edge may take.
struct Due {
    client: ClientId,
    order: OrderId,
    event: String,
    leased_until: DateTime<Utc>,
}

impl Core {
    /// Takes the steps that are due, at most [`BATCH_STEPS`]; returns how many were claimed. A step
    /// that fails is logged and tried again when its lease ends.
    ///
    /// # Errors
    /// When none could be claimed.
    pub async fn settle_sandbox_orders(&self) -> Result<usize> {
        let due = self.claim_sandbox_steps().await?;
        for step in &due {
            if let Err(error) = self.take_sandbox_step(step).await {
                tracing::warn!(%error, order = %step.order, "a sandbox step was not taken");
            }
        }
        Ok(due.len())
    }

    async fn claim_sandbox_steps(&self) -> Result<Vec<Due>> {
        let now = self.clock.now();
        let leased_until = now + LEASE;
        let rows = sqlx::query!(
            r#"
            with due as (
                select client_id, order_id from sandbox_step
                where due_at <= $1 and (leased_until is null or leased_until <= $1)
                order by due_at limit $3 for update skip locked
            )
            update sandbox_step s set leased_until = $2
            from due where s.client_id = due.client_id and s.order_id = due.order_id
            returning s.client_id, s.order_id, s.event
            "#,
            now,
            leased_until,
            BATCH_STEPS,
        )
        .fetch_all(&self.db)
        .await?;
        let due = rows.into_iter().map(|row| {
            let order = OrderId::new(row.order_id)
                .ok_or_else(|| Error::broken("read a sandbox step: its order has no number"))?;
            Ok(Due { client: row.client_id.into(), order, event: row.event, leased_until })
        });
        due.collect()
    }

    async fn take_sandbox_step(&self, step: &Due) -> Result<()> {
        let happening = SimulatedEvent::from_name(&step.event)
            .ok_or_else(|| Error::broken("read a sandbox step: an event nobody knows"))?;
        match apply_event(self, step.client, step.order, happening).await {
            // The next step took this one's place in the same transaction.
            Ok(_) => Ok(()),
            Err(NotApplied::Forbidden { .. } | NotApplied::NoSuchOrder) => {
                self.drop_step(step).await
            }
            Err(NotApplied::Failed(error)) => Err(error),
        }
    }

    /// Somebody else moved the order first. What follows from that is another row by now.
    async fn drop_step(&self, step: &Due) -> Result<()> {
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
