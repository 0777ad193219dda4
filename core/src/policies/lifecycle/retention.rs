//! Retention of versions that a partner's staff have uploaded: those that no operator lets serve would
//! otherwise fill the store.

use uuid::Uuid;

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
        let versions = self.delete_unused_versions().await?;
        // An upload of the same component renews its time, and is waited for.
        let components = sqlx::query!(
            "delete from policy_component c \
             where c.created_at < rampart_now() - interval '1 day' \
                 and not exists (select from policy_version v where v.digest = c.digest)",
        )
        .execute(&self.db)
        .await?;
        let components = components.rows_affected();
        if versions + components > 0 {
            tracing::info!(versions, components, "policies that never served were deleted");
        }
        Ok(())
    }

    /// Deletes the versions; those that an operator has locked are left to the next run.
    async fn delete_unused_versions(&self) -> Result<u64> {
        let mut tx = self.db.begin().await?;
        let unused = sqlx::query!(
            "select v.client_id, v.kind, v.version from policy_version v join ( \
                 select client_id, kind, version, row_number() over ( \
                     partition by client_id, kind order by version desc) as place \
                 from policy_version) placed on placed.client_id = v.client_id \
                     and placed.kind = v.kind and placed.version = v.version \
             where placed.place > $1 \
                 and not v.has_served and not v.active and v.activation is null \
                 and v.created_by like 'staff:%' \
                 and v.created_at < rampart_now() - interval '1 day' \
             for update of v skip locked",
            KEPT_VERSIONS,
        )
        .fetch_all(&mut *tx)
        .await?;
        let clients: Vec<Uuid> = unused.iter().map(|version| version.client_id).collect();
        let numbers: Vec<i64> = unused.iter().map(|version| version.version).collect();
        let kinds: Vec<String> = unused.into_iter().map(|version| version.kind).collect();
        // A statement of its own sees every trial that began before the locks.
        let deleted = sqlx::query!(
            "delete from policy_version v \
             using unnest($1::uuid[], $2::text[], $3::bigint[]) as u (client_id, kind, version) \
             where v.client_id = u.client_id and v.kind = u.kind and v.version = u.version \
                 and not exists (select from policy_trial t where t.client_id = v.client_id \
                     and t.kind = v.kind and t.version = v.version)",
            &clients,
            &kinds,
            &numbers,
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(deleted.rows_affected())
    }
}
