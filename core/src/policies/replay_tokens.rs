//! Replay protection: a replay token is accepted once.

use chrono::{DateTime, Utc};

use crate::Core;
use crate::platform::crypto::sha256;
use crate::platform::error::Result;
use rampart_types::ClientId;

/// Most rows deleted at once.
const DELETE_ROWS_MAX: i64 = 1_000;

/// Consumes the token; `false` when it was consumed before and has not expired.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn consume(
    core: &Core,
    client: ClientId,
    token: &str,
    until: DateTime<Utc>,
) -> Result<bool> {
    let inserted = sqlx::query!(
        "insert into signature_replay (client_id, token_digest, expires_at) values ($1, $2, $3) \
         on conflict (client_id, token_digest) do update set expires_at = excluded.expires_at \
         where signature_replay.expires_at <= rampart_now()",
        client.uuid(),
        &sha256(token)[..],
        until,
    )
    .execute(&core.db)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

impl Core {
    /// Deletes expired replay tokens.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub(crate) async fn delete_expired_replay_tokens(&self) -> Result<()> {
        sqlx::query!(
            "delete from signature_replay where (client_id, token_digest) in ( \
                 select client_id, token_digest from signature_replay \
                 where expires_at < rampart_now() limit $1 for update skip locked)",
            DELETE_ROWS_MAX,
        )
        .execute(&self.db)
        .await?;
        Ok(())
    }
}
