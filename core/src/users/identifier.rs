//! Links between a partner's identifiers and users.

use crate::Core;
use crate::auth::user_credentials::identifier_digest;
use crate::notify::events::{self, EventType, NewEvent};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::{ClientId, UserId, UserIdentifier, UserKey};

/// The outcome of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkOutcome {
    /// It was created, and an event was recorded.
    Created,
    /// It existed before.
    Existing,
    /// The identifier is linked to another user (ER706).
    Conflict,
}

/// Links the identifier to the user in the caller's transaction. Of two concurrent links, the first
/// to commit succeeds.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn link(
    conn: &mut Connection,
    core: &Core,
    UserKey { client, user }: UserKey,
    identifier: &UserIdentifier,
) -> Result<LinkOutcome> {
    let digest = identifier_digest(core, client, identifier)?;
    let linked = sqlx::query!(
        "insert into user_identifier (client_id, identifier_digest, user_id, created_at) \
         values ($1, $2, $3, $4) on conflict (client_id, identifier_digest) do nothing",
        client.uuid(),
        &digest,
        user.uuid(),
        core.clock.now(),
    )
    .execute(&mut *conn)
    .await?;
    if linked.rows_affected() == 1 {
        let payload = serde_json::json!({ "uuid": user });
        let event = NewEvent { kind: EventType::IdentifierLinked, order_id: None, payload };
        events::record(conn, core, client, event, None).await?;
        return Ok(LinkOutcome::Created);
    }
    Ok(match find_linked_user(conn, client, &digest).await? {
        Some(holder) if holder == user => LinkOutcome::Existing,
        _ => LinkOutcome::Conflict,
    })
}

/// Unlinks every identifier of the user, in the caller's transaction, which has locked the user's row.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn unlink_all(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
) -> Result<()> {
    sqlx::query!(
        "delete from user_identifier where client_id = $1 and user_id = $2",
        client.uuid(),
        user.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The user of an identifier; `None` when it is free.
///
/// # Errors
/// When the database cannot be read.
pub async fn linked_user(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    identifier: &UserIdentifier,
) -> Result<Option<UserId>> {
    let digest = identifier_digest(core, client, identifier)?;
    find_linked_user(conn, client, &digest).await
}

async fn find_linked_user(
    conn: &mut Connection,
    client: ClientId,
    digest: &[u8],
) -> Result<Option<UserId>> {
    let user = sqlx::query_scalar!(
        "select user_id from user_identifier where client_id = $1 and identifier_digest = $2",
        client.uuid(),
        digest,
    )
    .fetch_optional(conn)
    .await?;
    Ok(user.map(UserId::from))
}
