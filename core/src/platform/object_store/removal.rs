//! Deferred removal of objects, queued in the transaction that deletes their rows.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::UserKey;

/// Most objects removed at once.
const REMOVED_MAX: i64 = 100;
/// The sweep in metrics and logs.
const SWEEP: &str = "documents";

/// Queues every object of the user but those in `kept` for removal, in the caller's transaction.
pub(crate) async fn remove_later(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
    kept: &[Uuid],
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "insert into document_removal (client_id, document_id, created_at) \
         select client_id, document_id, $3::timestamptz from user_document \
         where client_id = $1 and user_id = $2 and media_type is not null \
             and document_id <> all ($4) \
         union all \
         select client_id, proof_id, $3::timestamptz from ownership_proof \
         where client_id = $1 and user_id = $2 \
         on conflict do nothing",
        client.uuid(),
        user.uuid(),
        now,
        kept,
    )
    .execute(conn)
    .await?;
    Ok(())
}

impl Core {
    /// Removes the queued objects, those without a row, and abandoned unfinished ones. Every edge may do it, because removal
    /// is idempotent. True if there may be more.
    ///
    /// # Errors
    /// When the database or the store cannot be used; remaining objects are retried later.
    pub async fn remove_documents(&self) -> Result<bool> {
        // They wait until the bucket can be used, which has an alert of its own; a folder has none.
        if self.documents.lacks_bucket() {
            return Ok(false);
        }
        self.give_up_uploads().await?;
        let queued = sqlx::query!(
            "select client_id, document_id from document_removal order by created_at limit $1",
            REMOVED_MAX,
        )
        .fetch_all(&self.db)
        .await?;
        let mut removed = 0;
        for row in queued {
            let (client, document) = (row.client_id, row.document_id);
            let settled = match self.documents.remove(document).await {
                Ok(()) => self.forget_removal(client, document).await,
                Err(error) => Err(error),
            };
            let Err(error) = settled else {
                removed += 1;
                continue;
            };
            // Then it is not the row that is to blame.
            if self.documents.problem().is_some() {
                return Err(error);
            }
            self.metrics.row_failed(SWEEP, client, &document, error)?;
            self.postpone_removal(client, document).await?;
        }
        if removed == REMOVED_MAX {
            return Ok(true);
        }
        self.documents.sweep(self.clock.now()).await?;
        Ok(false)
    }

    async fn forget_removal(&self, client: Uuid, document: Uuid) -> Result<()> {
        sqlx::query!(
            "delete from document_removal where client_id = $1 and document_id = $2",
            client,
            document,
        )
        .execute(&self.db)
        .await?;
        Ok(())
    }

    /// Puts an object that could not be removed behind the others, so that these have their turn.
    async fn postpone_removal(&self, client: Uuid, document: Uuid) -> Result<()> {
        sqlx::query!(
            "update document_removal set created_at = rampart_now() \
             where client_id = $1 and document_id = $2",
            client,
            document,
        )
        .execute(&self.db)
        .await?;
        Ok(())
    }
}
