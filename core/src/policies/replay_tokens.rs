//! Replay protection: a replay token is accepted once.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rampart_plugins::contract::PolicyKind;

use crate::Core;
use crate::auth::caller::Client;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use rampart_types::ClientId;

/// Most rows deleted at once.
const DELETE_ROWS_MAX: i64 = 1_000;

/// The replay token of an authentic payload, not consumed yet.
#[derive(Clone, Debug)]
pub(super) struct ReplayToken {
    client: ClientId,
    /// The client's name in metrics.
    slug: Arc<str>,
    digest: [u8; 32],
    /// After that the signing time refuses the payload; `None` without one, and it is remembered for
    /// good.
    expires_at: Option<DateTime<Utc>>,
}

impl ReplayToken {
    /// A client's token, to be remembered until it expires.
    pub(super) fn new(client: &Client, token: &str, expires_at: Option<DateTime<Utc>>) -> Self {
        let slug = Arc::clone(&client.tenant.slug);
        Self { client: client.id(), slug, digest: sha256(token), expires_at }
    }

    /// Consumes it in the caller's transaction: unless that is committed, the token stays good. A
    /// concurrent request with the same token waits for its end.
    ///
    /// # Errors
    /// ER336 when it was consumed before and has not expired; the database's.
    pub(super) async fn consume(&self, core: &Core, conn: &mut Connection) -> Result<()> {
        let inserted = sqlx::query!(
            "insert into signature_replay (client_id, token_digest, expires_at) \
             values ($1, $2, coalesce($3, 'infinity'::timestamptz)) \
             on conflict (client_id, token_digest) do update set expires_at = excluded.expires_at \
             where signature_replay.expires_at <= rampart_now()",
            self.client.uuid(),
            &self.digest[..],
            self.expires_at,
        )
        .execute(conn)
        .await?;
        if inserted.rows_affected() == 0 {
            core.metrics.policy_call(PolicyKind::Signature.as_str(), &self.slug, "refused");
            return Err(Error::with_detail(Code::SignatureInvalid, "it was used before"));
        }
        if self.expires_at.is_none() {
            core.metrics.undated_replay_token(&self.slug);
        }
        Ok(())
    }
}

impl Core {
    /// Deletes expired replay tokens; `true` if there may be more.
    pub async fn delete_expired_replay_tokens(&self) -> Result<bool> {
        let deleted = sqlx::query!(
            "delete from signature_replay where (client_id, token_digest) in ( \
                 select client_id, token_digest from signature_replay \
                 where expires_at < rampart_now() limit $1 for update skip locked)",
            DELETE_ROWS_MAX,
        )
        .execute(&self.db)
        .await?;
        Ok(deleted.rows_affected() >= DELETE_ROWS_MAX.unsigned_abs())
    }
}
