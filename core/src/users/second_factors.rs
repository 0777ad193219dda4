//! The removal of what opens an account besides its password, told by mail.

use super::authenticator_app;
use super::passkeys;
use super::security_notice::{self, Changed};
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::UserKey;

/// Removes the user's passkeys, which sign in without the password, too.
///
/// # Errors
/// When the database cannot be written.
pub async fn remove_passkeys(conn: &mut Connection, core: &Core, key: UserKey) -> Result<()> {
    if passkeys::remove_all(conn, key).await? {
        security_notice::mail(conn, core, key, Changed::PasskeyRemoved).await?;
    }
    Ok(())
}

/// Removes the user's authenticator app, and ends visits of the account's page: whoever has it open
/// could set up an app of their own.
///
/// # Errors
/// When the database cannot be written.
pub async fn remove_authenticator_app(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
) -> Result<()> {
    if authenticator_app::remove(conn, key).await? {
        security_notice::mail(conn, core, key, Changed::AuthenticatorAppRemoved).await?;
    }
    passkeys::end_challenges(conn, key).await
}
