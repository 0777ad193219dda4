//! The user's agreement to the privacy statement, given on a page.

use crate::Core;
use crate::money::connectors::payouts::command_payouts_and_transfers;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::{ClientId, UserId};

/// Stores the agreement in the caller's transaction, and commands what waited for it. A user whom an
/// operator has blocked stays so.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn agree(
    conn: &mut Connection,
    core: &Core,
    (client, user): (ClientId, UserId),
) -> Result<()> {
    sqlx::query!(
        "update end_user set privacy_agreement_status = 'verified' \
         where client_id = $1 and user_id = $2 and deleted_at is null \
             and privacy_agreement_status <> 'blocked'",
        client.uuid(),
        user.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    command_payouts_and_transfers(conn, core, (client, user)).await
}
