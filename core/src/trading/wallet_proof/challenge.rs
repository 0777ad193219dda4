//! The message that a wallet's holder signs: of one order and its user, good once and for a time.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};

use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::sweeps::DELETED_MAX;
use rampart_types::{OrderKey, UserId};

/// Lifetime of a message, in seconds.
const LIFETIME_SECONDS: i64 = 900;
/// Time for which a message that is shown is good at least, in seconds; after that another one is made.
const LEFT_SECONDS_MIN: i64 = 300;

/// A message to sign.
#[derive(Debug)]
pub(crate) struct Challenge {
    pub(crate) nonce: String,
    /// One line of ASCII, so that every wallet signs the same bytes.
    pub(crate) message: String,
    pub(crate) expires_at: DateTime<Utc>,
}

impl Challenge {
    /// The order's message, made anew where it was used, ends soon or is another user's.
    pub(crate) async fn current(
        conn: &mut Connection,
        core: &Core,
        OrderKey { client, order }: OrderKey,
        user: Option<UserId>,
        wallet: &str,
    ) -> Result<Self> {
        let nonce = nonce(core)?;
        let of_user = user.map_or_else(String::new, |user| format!(" of user {user}"));
        let text = format!(
            "I own the wallet {wallet} and receive the coins of order {order}{of_user} there. \
             Nonce {nonce}, valid until "
        );
        sqlx::query!(
            "insert into wallet_challenge (client_id, order_id, user_id, nonce, message, expires_at) \
             select $1, $2, $3, $4, $5::text || to_char(ends_at at time zone 'UTC', \
                 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') || '.', ends_at \
             from (select rampart_now() + $6::bigint * interval '1 second') e (ends_at) \
             on conflict (client_id, order_id) do update set user_id = excluded.user_id, \
                 nonce = excluded.nonce, message = excluded.message, \
                 expires_at = excluded.expires_at, used_at = null \
             where wallet_challenge.used_at is not null \
                 or wallet_challenge.user_id is distinct from excluded.user_id \
                 or wallet_challenge.expires_at < rampart_now() + $7::bigint * interval '1 second'",
            client.uuid(),
            order.number(),
            user.map(UserId::uuid),
            nonce,
            text,
            LIFETIME_SECONDS,
            LEFT_SECONDS_MIN,
        )
        .execute(&mut *conn)
        .await?;
        let challenge = sqlx::query_as!(
            Challenge,
            "select nonce, message, expires_at from wallet_challenge \
             where client_id = $1 and order_id = $2",
            client.uuid(),
            order.number(),
        )
        .fetch_one(conn)
        .await?;
        Ok(challenge)
    }

    /// Uses the order's message and returns it, in the caller's transaction; `None` if it has another
    /// nonce, was used, has expired, or was shown to another user than the order's.
    pub(crate) async fn redeem(
        conn: &mut Connection,
        key: OrderKey,
        nonce: &str,
    ) -> Result<Option<String>> {
        let message = sqlx::query_scalar!(
            "update wallet_challenge w set used_at = rampart_now() from buy_order o \
             where w.client_id = $1 and w.order_id = $2 and w.nonce = $3 and w.used_at is null \
                 and w.expires_at > rampart_now() \
                 and o.client_id = w.client_id and o.order_id = w.order_id \
                 and w.user_id is not distinct from o.user_id \
             returning w.message",
            key.client.uuid(),
            key.order.number(),
            nonce,
        )
        .fetch_optional(conn)
        .await?;
        Ok(message)
    }
}

impl Core {
    /// Deletes messages that have expired, whether one was signed or not: its proof has it. One run of a
    /// worker; `true` if there may be more.
    ///
    /// # Errors
    /// When the database cannot be written; the next run continues.
    pub async fn delete_expired_wallet_challenges(&self) -> Result<bool> {
        let deleted = sqlx::query!(
            "delete from wallet_challenge where (client_id, order_id) in ( \
                 select client_id, order_id from wallet_challenge \
                 where expires_at <= rampart_now() \
                 order by expires_at limit $1 for update skip locked)",
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        Ok(deleted.rows_affected() >= DELETED_MAX.unsigned_abs())
    }
}

/// 128 random bits.
fn nonce(core: &Core) -> Result<String> {
    let bits = [core.clock.random_u64()?, core.clock.random_u64()?];
    Ok(URL_SAFE_NO_PAD.encode(bits.map(u64::to_be_bytes).concat()))
}
