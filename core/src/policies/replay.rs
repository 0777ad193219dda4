//! Payloads that were seen before: a replay token is accepted once.

use chrono::{DateTime, Utc};

use crate::Core;
use crate::platform::crypto::digest_of;
use crate::platform::error::Result;
use rampart_types::ClientId;

/// Most rows forgotten at once.
const FORGET_ROWS_MAX: i64 = 1_000;

/// Takes the token; `false` when it was taken already and must still be remembered.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn take(
    core: &Core,
    client: ClientId,
    token: &str,
    until: DateTime<Utc>,
) -> Result<bool> {
    let taken = sqlx::query!(
        "insert into signature_replay (client_id, token_digest, expires_at) values ($1, $2, $3) \
         on conflict (client_id, token_digest) do update set expires_at = excluded.expires_at \
         where signature_replay.expires_at <= $4",
        client.uuid(),
        &digest_of(token)[..],
        until,
        core.clock.now(),
    )
    .execute(&core.db)
    .await?;
    Ok(taken.rows_affected() == 1)
}

impl Core {
    /// Forgets replay tokens whose time is over.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub(crate) async fn forget_replay_tokens(&self) -> Result<()> {
        sqlx::query!(
            "delete from signature_replay where (client_id, token_digest) in \
             (select client_id, token_digest from signature_replay where expires_at < $1 limit $2)",
            self.clock.now(),
            FORGET_ROWS_MAX,
        )
        .execute(&self.db)
        .await?;
        Ok(())
    }
}
