//! Identity checks of a user that end before their provider has told of them.

use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::UserKey;

/// Ends the checks of a user whose identity is not the one that they were begun for, or was taken back:
/// their outcome counts for nobody, and the page commands another one. In the caller's transaction,
/// which has locked the user's row.
///
/// # Errors
/// When the database cannot be written.
pub async fn end(conn: &mut Connection, UserKey { client, user }: UserKey) -> Result<()> {
    sqlx::query!(
        "update command set state = 'rejected', sealed_body = null, checkpoint = null, \
             finished_at = coalesce(finished_at, now()) \
         where client_id = $1 and user_id = $2 and kind = 'identity.start' \
             and state <> 'rejected'",
        client.uuid(),
        user.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}
