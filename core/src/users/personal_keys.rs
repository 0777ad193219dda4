//! Users' keys that older edges stored beside the personal data: they are moved to the table of keys,
//! which backups leave out.

use crate::Core;
use crate::platform::error::Result;

/// Keys of one transaction.
const BATCH_ROWS: i64 = 500;
/// Most transactions of one run of the worker.
const BATCHES_MAX: usize = 200;

impl Core {
    /// Moves keys that are stored beside the personal data: one run of a worker.
    ///
    /// # Errors
    /// When the database cannot be written; the next run continues.
    pub async fn move_personal_keys(&self) -> Result<()> {
        for _ in 0..BATCHES_MAX {
            let moved = sqlx::query_scalar!(
                r#"
                with found as materialized (
                    select client_id, user_id, sealed_key from end_user where sealed_key <> ''
                    limit $1 for update skip locked
                ), stored as (
                    insert into personal_key (client_id, user_id, sealed)
                    select client_id, user_id, sealed_key from found
                    on conflict (client_id, user_id) do nothing
                ), emptied as (
                    update end_user u set sealed_key = '' from found
                    where u.client_id = found.client_id and u.user_id = found.user_id
                    returning 1
                )
                select count(*) as "count!" from emptied
                "#,
                BATCH_ROWS,
            )
            .fetch_one(&self.db)
            .await?;
            if moved < BATCH_ROWS {
                break;
            }
        }
        Ok(())
    }
}
