//! Queues of this edge and backlogs in the database, as metrics.

use crate::Core;
use crate::notify::callbacks::unclaimed::unclaimed_seconds;
use crate::platform::error::Result;
use crate::platform::metrics::Measurement;

/// Most rows of a backlog that are counted.
const COUNTED_MAX: i64 = 100_000;

impl Core {
    /// Items that wait in each queue of this edge.
    pub(crate) fn queue_lengths(&self) -> [(&'static str, usize); 7] {
        [
            ("orders", self.order_inserts.waiting()),
            ("order_reads", self.order_reads.waiting()),
            ("idempotency_keys", self.key_claims.waiting()),
            ("passwords", self.passwords.waiting()),
            ("policy_shadows", self.policy_shadows.len()),
            ("telemetry", self.telemetry.waiting()),
            ("shared_rates", self.shared_rates.waiting()),
        ]
    }

    /// Measures what waits in the database: deliveries and mails, of all edges together.
    ///
    /// # Errors
    /// When the database cannot be read; the metrics stay as they are, until they are too old.
    pub async fn measure_backlogs(&self) -> Result<()> {
        let found = sqlx::query!(
            r#"
            with due as (
                -- those first whose time has come: any number may wait for a retry
                (select 'deliveries' as queue, next_attempt_at from (
                    (select next_attempt_at from delivery where state = 'pending' and ready limit $1)
                    union all
                    (select next_attempt_at from delivery where state = 'pending' and not ready
                     order by greatest(next_attempt_at, leased_until) limit $1)) waiting
                 limit $1)
                union all
                -- that of a new mail is long ago
                (select 'mail', greatest(next_attempt_at, created_at) from mail_outbox
                 where state = 'pending' order by next_attempt_at limit $1))
            select queue as "queue!", count(*) as "waiting!",
                greatest(extract(epoch from rampart_now() - min(next_attempt_at)), 0)::bigint
                    as "overdue_seconds!"
            from due group by queue
            "#,
            COUNTED_MAX,
        )
        .fetch_all(&self.db)
        .await?;
        let unclaimed = unclaimed_seconds(&self.db).await?;
        self.measured(Measurement::Backlogs);
        for queue in ["deliveries", "mail"] {
            let row = found.iter().find(|row| row.queue == queue);
            let (waiting, overdue) = row.map_or((0, 0), |row| (row.waiting, row.overdue_seconds));
            self.metrics.backlog.with_label_values(&[queue]).set(waiting);
            self.metrics.backlog_overdue.with_label_values(&[queue]).set(overdue);
        }
        self.metrics.deliveries_unclaimed.with_label_values::<&str>(&[]).set(unclaimed);
        Ok(())
    }
}
