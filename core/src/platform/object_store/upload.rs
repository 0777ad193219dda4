//! Objects whose own rows are not committed yet. Each has a row in `document_upload` from before it is
//! stored, which the transaction of its own row takes: an object whose edge died, or whose commit
//! failed, is found by it and removed.

use uuid::Uuid;

use super::StoredObject;
use crate::Core;
use crate::platform::db::{Connection, Pool};
use crate::platform::error::{Error, Result};
use rampart_types::ClientId;

/// Time from before an object is stored to the commit of its own row, at most, in seconds: an hour, more
/// than any request takes.
const UPLOAD_SECONDS_MAX: i32 = 60 * 60;
/// Most abandoned objects queued at once.
const ABANDONED_MAX: i64 = 1_000;

/// Announces an object that is about to be stored.
///
/// # Errors
/// When the database cannot be written; the object must not be stored then.
pub(crate) async fn begin_upload(db: &Pool, client: ClientId, object: Uuid) -> Result<()> {
    sqlx::query!(
        "insert into document_upload (client_id, document_id, created_at) \
         values ($1, $2, rampart_now())",
        client.uuid(),
        object,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Retains stored objects, in the transaction of their own rows and right before its commit.
///
/// # Errors
/// When one of them has been given up; when the database cannot be written. The transaction must not be
/// committed then.
pub(crate) async fn retain_all(
    conn: &mut Connection,
    client: ClientId,
    objects: Vec<StoredObject>,
) -> Result<()> {
    if objects.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = objects.iter().map(StoredObject::id).collect();
    let taken = sqlx::query!(
        "delete from document_upload where client_id = $1 and document_id = any ($2)",
        client.uuid(),
        &ids,
    )
    .execute(conn)
    .await?;
    if usize::try_from(taken.rows_affected()) != Ok(ids.len()) {
        return Err(Error::unavailable("store a document within its time"));
    }
    objects.into_iter().for_each(StoredObject::retain);
    Ok(())
}

impl Core {
    /// Queues the objects for removal whose own rows were not committed in time. The transaction of such
    /// a row finds out: either of both takes the row of the upload.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub(super) async fn give_up_uploads(&self) -> Result<()> {
        sqlx::query!(
            "with abandoned as ( \
                 delete from document_upload where (client_id, document_id) in ( \
                     select client_id, document_id from document_upload \
                     where created_at <= rampart_now() - make_interval(secs => $1::int) \
                     limit $2 for update skip locked) \
                 returning client_id, document_id) \
             insert into document_removal (client_id, document_id, created_at) \
             select client_id, document_id, rampart_now() from abandoned \
             on conflict do nothing",
            UPLOAD_SECONDS_MAX,
            ABANDONED_MAX,
        )
        .execute(&self.db)
        .await?;
        Ok(())
    }
}
