//! Binding a partner's own name for a user to the user.

use sqlx::PgConnection;

use crate::Core;
use crate::auth::user_credentials::identifier_digest;
use crate::notify::events::{self, EventType, NewEvent};
use crate::platform::error::Result;
use rampart_types::{ClientId, UserId, UserIdentifier};

/// What became of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    /// It is there since now, and the partner is told so.
    Now,
    /// It was there before.
    Already,
    /// The identifier is another user's (ER706).
    ToAnother,
}

/// Links the identifier to the user in the caller's transaction. Of two users that race for one,
/// the first to commit has it.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn link(
    conn: &mut PgConnection,
    core: &Core,
    client: ClientId,
    user: UserId,
    identifier: &UserIdentifier,
) -> Result<Linked> {
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
        return Ok(Linked::Now);
    }
    Ok(match holder_of(conn, client, &digest).await? {
        Some(holder) if holder == user => Linked::Already,
        _ => Linked::ToAnother,
    })
}

/// Whose the identifier is; `None` when it is free.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn holder(
    conn: &mut PgConnection,
    core: &Core,
    client: ClientId,
    identifier: &UserIdentifier,
) -> Result<Option<UserId>> {
    let digest = identifier_digest(core, client, identifier)?;
    holder_of(conn, client, &digest).await
}

async fn holder_of(
    conn: &mut PgConnection,
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
