//! Retention of offers and checkouts that nobody has confirmed.

use crate::Core;
use crate::platform::error::Result;
use crate::platform::sweeps::DELETED_MAX;

impl Core {
    /// Deletes offers, with their checkouts, that nobody has confirmed and that ended longer ago than
    /// `retention.offer_days`: one run of a worker. `true` if there may be more.
    ///
    /// # Errors
    /// When the database cannot be written; the next run continues.
    pub async fn delete_old_offers(&self) -> Result<bool> {
        let Some(days) = self.settings.retention.offer_days else { return Ok(false) };
        let deleted = sqlx::query!(
            "with ended as materialized ( \
                 select client_id, offer_id from offer \
                 where confirmed_at is null \
                     and expires_at < rampart_now() - $1::int * interval '1 day' \
                 order by expires_at limit $2 for update skip locked \
             ), links as ( \
                 delete from checkout c using ended e \
                 where c.client_id = e.client_id and c.offer_id = e.offer_id) \
             delete from offer o using ended e \
             where o.client_id = e.client_id and o.offer_id = e.offer_id",
            i32::try_from(days).unwrap_or(i32::MAX),
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        Ok(deleted.rows_affected() >= DELETED_MAX.unsigned_abs())
    }
}
