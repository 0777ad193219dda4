//! The user's agreement to the privacy statement, given on a page.

use super::account::{self, Account, RowLock};
use super::changed;
use crate::Core;
use crate::money::connectors::payouts::command_payouts_and_transfers;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::UserKey;

/// Stores the agreement in the caller's transaction, records `user.verified` if it was the last check,
/// and commands what waited for it. A user whom an operator has blocked stays so.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn agree(conn: &mut Connection, core: &Core, key: UserKey) -> Result<()> {
    // Another check that is passed at the same time is seen here, or sees this one.
    if !account::lock(conn, key, RowLock::Update).await? {
        return Ok(());
    }
    let Some(before) = Account::load(conn, core, key).await? else { return Ok(()) };
    sqlx::query!(
        "update end_user set privacy_agreement_status = 'verified' \
         where client_id = $1 and user_id = $2 and privacy_agreement_status <> 'blocked'",
        key.client.uuid(),
        key.user.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    if let Some(after) = Account::load(conn, core, key).await? {
        changed::record_events(conn, core, &before, &after).await?;
    }
    command_payouts_and_transfers(conn, core, key).await
}
