//! Retention of deliveries and of their attempts.

use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use uuid::Uuid;

use crate::Core;
use crate::platform::error::Result;

/// Retention of an attempt with the beginning of its answer.
const ATTEMPT_RETENTION: TimeDelta = TimeDelta::days(7);
/// Most rows of either table that one run of the worker looks at and deletes.
const DELETED_MAX: i64 = 20_000;

/// The delivery that the last run has come to. The next one goes on behind it: those that stay for
/// having been sent again, however many they are, keep no run from what is behind them.
#[derive(Debug, Default)]
pub struct SweptDeliveries(Mutex<Uuid>);

impl SweptDeliveries {
    fn last(&self) -> Uuid {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, last: Uuid) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }
}

impl Core {
    /// Deletes attempts that are older than [`ATTEMPT_RETENTION`], and deliveries that have ended and
    /// were made, and sent again, longer ago than `retention.delivery_days`: one run of a worker.
    /// `true` if there may be more.
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
        let more = attempts.rows_affected() >= DELETED_MAX.unsigned_abs();
        let Some(days) = self.settings.retention.delivery_days else { return Ok(more) };
        let days = i32::try_from(days).unwrap_or(i32::MAX);
        Ok(self.delete_next_deliveries(days).await? || more)
    }

    /// Deletes those of the next deliveries that ended and are older than so many days. `true` if some
    /// were, and others are behind them: where all stay, the next run comes after its pause.
    async fn delete_next_deliveries(&self, days: i32) -> Result<bool> {
        let behind = self.swept_deliveries.last();
        // An id begins with the time of its event, so the oldest are the first of the index.
        let last = sqlx::query_scalar!(
            "select delivery_id from delivery \
             where delivery_id > $1 \
                 and delivery_id < (lpad(to_hex(greatest(0, extract(epoch from \
                         rampart_now() - $2::int * interval '1 day') * 1000)::bigint), 12, '0') \
                     || repeat('0', 20))::uuid \
             order by delivery_id offset $3 limit 1",
            behind,
            days,
            DELETED_MAX - 1,
        )
        .fetch_optional(&self.db)
        .await?;
        let deleted = sqlx::query!(
            "delete from delivery where (client_id, delivery_id) in ( \
                 select client_id, delivery_id from delivery \
                 where delivery_id > $1 and delivery_id <= $2 \
                     and delivery_id < (lpad(to_hex(greatest(0, extract(epoch from \
                             rampart_now() - $3::int * interval '1 day') * 1000)::bigint), 12, '0') \
                         || repeat('0', 20))::uuid \
                     and state <> 'pending' \
                     and greatest(created_at, sent_again_at) \
                         < rampart_now() - $3::int * interval '1 day' \
                 order by delivery_id limit $4 for update skip locked)",
            behind,
            last.unwrap_or(Uuid::max()),
            days,
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        // Behind the last one the next run begins anew.
        self.swept_deliveries.set(last.unwrap_or_default());
        Ok(last.is_some() && deleted.rows_affected() > 0)
    }
}
