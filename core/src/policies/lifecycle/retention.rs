//! Retention of versions that a partner's staff have uploaded: those that no operator lets serve would
//! otherwise fill the store.

use crate::Core;
use crate::platform::error::Result;

/// Versions of one kind of a partner that stay, the newest, whether they have served or not.
const KEPT_VERSIONS: i64 = 20;

impl Core {
    /// Deletes what staff uploaded more than a day ago, has never served and is not among the newest
    /// versions of its kind; then components that no version has: one run of a worker.
    ///
    /// # Errors
    /// When the database cannot be written; the next run continues.
    pub async fn delete_unused_policy_versions(&self) -> Result<()> {
        let versions = sqlx::query!(
            "delete from policy_version v using ( \
                 select client_id, kind, version, row_number() over ( \
                     partition by client_id, kind order by version desc) as place \
                 from policy_version) placed \
             where placed.client_id = v.client_id and placed.kind = v.kind \
                 and placed.version = v.version and placed.place > $1 \
                 and not v.has_served and not v.active and v.activation is null \
                 and v.created_by like 'staff:%' \
                 and v.created_at < rampart_now() - interval '1 day' \
                 and not exists (select from policy_trial t where t.client_id = v.client_id \
                     and t.kind = v.kind and t.version = v.version)",
            KEPT_VERSIONS,
        )
        .execute(&self.db)
        .await?;
        // An upload of the same component renews its time, and is waited for.
        let components = sqlx::query!(
            "delete from policy_component c \
             where c.created_at < rampart_now() - interval '1 day' \
                 and not exists (select from policy_version v where v.digest = c.digest)",
        )
        .execute(&self.db)
        .await?;
        let (versions, components) = (versions.rows_affected(), components.rows_affected());
        if versions + components > 0 {
            tracing::info!(versions, components, "policies that never served were deleted");
        }
        Ok(())
    }
}
