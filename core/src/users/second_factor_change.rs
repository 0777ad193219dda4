//! Consequences of a change of the second factor that a user has made on the account's page.

use super::one_time_token::{self, Purpose};
use super::security_notice::{self, Changed};
use crate::Core;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::UserKey;

/// Ends the user's other visits, which the password alone may have begun, with what they lead to, and
/// tells the user by mail: in the change's transaction, which has locked the user's row. The visit of
/// this challenge goes on.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn follow(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    visit: &str,
    changed: Changed,
) -> Result<()> {
    one_time_token::void(conn, core, key, &Purpose::OF_PAGES).await?;
    sqlx::query!(
        "delete from passkey_challenge \
         where client_id = $1 and user_id = $2 and challenge_digest <> $3",
        key.client.uuid(),
        key.user.uuid(),
        &sha256(visit)[..],
    )
    .execute(&mut *conn)
    .await?;
    security_notice::mail(conn, core, key, changed).await
}
