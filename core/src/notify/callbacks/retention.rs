//! Retention of deliveries and of their attempts.

use chrono::TimeDelta;

use crate::Core;
use crate::platform::error::Result;

/// Retention of an attempt with the beginning of its answer.
const ATTEMPT_RETENTION: TimeDelta = TimeDelta::days(7);
/// Most rows that one run of the worker deletes.
const DELETED_MAX: i64 = 20_000;

impl Core {
    /// Deletes attempts that are older than [`ATTEMPT_RETENTION`], and deliveries that have ended and
    /// are older than `retention.delivery_days`: one run of a worker. `true` if there may be more.
    ///
    /// # Errors
    /// When the database cannot be written; the next run continues.
    pub async fn delete_old_deliveries(&self) -> Result<bool> {
        let attempts = sqlx::query!(
            "delete from delivery_attempt where (client_id, delivery_id, attempt_id) in ( \
                 select client_id, delivery_id, attempt_id from delivery_attempt \
                 where sent_at <= rampart_now() - $1::bigint * interval '1 second' \
                 order by sent_at limit $2 for update skip locked)",
            ATTEMPT_RETENTION.num_seconds(),
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        let most = DELETED_MAX.unsigned_abs();
        let more = attempts.rows_affected() >= most;
        let Some(days) = self.settings.retention.delivery_days else { return Ok(more) };
        // An id begins with the time of its event, so the oldest are the first of the index.
        let deliveries = sqlx::query!(
            "delete from delivery where (client_id, delivery_id) in ( \
                 select client_id, delivery_id from delivery \
                 where delivery_id < (lpad(to_hex(greatest(0, extract(epoch from \
                         rampart_now() - $1::int * interval '1 day') * 1000)::bigint), 12, '0') \
                     || repeat('0', 20))::uuid \
                     and state <> 'pending' \
                 order by delivery_id limit $2 for update skip locked)",
            i32::try_from(days).unwrap_or(i32::MAX),
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        Ok(more || deliveries.rows_affected() >= most)
    }
}
