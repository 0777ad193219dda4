//! Retention of what connectors have reported.

use crate::Core;
use crate::platform::error::Result;
use crate::platform::sweeps::DELETED_MAX;

impl Core {
    /// Deletes the sealed reports that are older than `retention.report_days`: one run of a worker.
    /// Their digests stay, by which a report that comes again is known. `true` if there may be more.
    ///
    /// # Errors
    /// When the database cannot be written; the next run continues.
    pub async fn delete_old_reports(&self) -> Result<bool> {
        let Some(days) = self.settings.retention.report_days else { return Ok(false) };
        // An id begins with the time of its report, so the oldest are the first of the index.
        let deleted = sqlx::query!(
            "update connector_event set sealed_report = null where report_id in ( \
                 select report_id from connector_event \
                 where report_id < (lpad(to_hex(greatest(0, extract(epoch from \
                         rampart_now() - $1::int * interval '1 day') * 1000)::bigint), 12, '0') \
                     || repeat('0', 20))::uuid \
                     and sealed_report is not null \
                 order by report_id limit $2 for update skip locked)",
            i32::try_from(days).unwrap_or(i32::MAX),
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        Ok(deleted.rows_affected() >= DELETED_MAX.unsigned_abs())
    }
}
