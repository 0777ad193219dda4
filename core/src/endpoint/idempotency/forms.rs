//! Forms of pages that count once. One that is sent again soon, as by a double click, gets the
//! result of the first: both are a row beside those of the `Idempotency-Key`, and end as they do.

use super::row_name;
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::platform::rate_limit::Quota;
use rampart_types::ClientId;

/// Time that a form counts once and its result is kept, in seconds: ten minutes, more than a double
/// click or a reload after a lost answer needs. Short, because the result may be a secret.
const KEPT_SECONDS: i32 = 10 * 60;

/// A form that was sent.
#[derive(Debug)]
pub struct FormUse {
    /// Partner of the page.
    pub client: ClientId,
    /// Path of its route.
    pub route: &'static str,
    /// Tells the form from every other one, of other sessions too.
    pub key: String,
}

impl FormUse {
    /// The rate of a form that is counted and has no row here: once in the same time.
    pub(crate) const QUOTA: Quota = Quota::new(1, KEPT_SECONDS.unsigned_abs(), 1);

    /// Uses the form up, in the transaction of its effect and before it. `None` the first time, and
    /// again ten minutes later; else what [`FormUse::keep`] has kept, which may be nothing. Of two at
    /// once, the second one waits for the first to commit.
    pub async fn begin(&self, core: &Core, tx: &mut Connection) -> Result<Option<String>> {
        let used = sqlx::query!(
            "insert into idempotency_key \
                 (client_id, route, key, body_digest, claimed_at, expires_at) \
             values ($1, $2, $3, $4, now(), now() + make_interval(secs => $5::int)) \
             on conflict (client_id, route, key) do update set \
                 claimed_at = excluded.claimed_at, expires_at = excluded.expires_at, body = null \
             where idempotency_key.expires_at <= excluded.claimed_at",
            self.client.uuid(),
            self.route,
            self.key,
            self.key.as_bytes(),
            KEPT_SECONDS,
        )
        .execute(&mut *tx)
        .await?;
        if used.rows_affected() == 1 {
            return Ok(None);
        }
        Ok(Some(self.result(core, tx).await?.unwrap_or_default()))
    }

    /// What [`FormUse::keep`] has kept of a form that was sent within ten minutes, which may be
    /// nothing; `None` if it was not sent.
    pub async fn result(&self, core: &Core, conn: &mut Connection) -> Result<Option<String>> {
        let kept = sqlx::query_scalar!(
            "select body from idempotency_key \
             where client_id = $1 and route = $2 and key = $3 and expires_at > now()",
            self.client.uuid(),
            self.route,
            self.key,
        )
        .fetch_optional(conn)
        .await?;
        let Some(kept) = kept else { return Ok(None) };
        let Some(sealed) = kept else { return Ok(Some(String::new())) };
        let result = core.cipher(self.client).open(&self.context(), &sealed)?;
        let result = String::from_utf8(result);
        result.map(Some).map_err(|_| Error::invariant("read the result of a form"))
    }

    /// Keeps the result for whoever sends the form again, in the same transaction.
    pub async fn keep(&self, core: &Core, tx: &mut Connection, result: &str) -> Result<()> {
        let sealed = core.cipher(self.client).seal(&self.context(), result.as_bytes())?;
        sqlx::query!(
            "update idempotency_key set body = $4 \
             where client_id = $1 and route = $2 and key = $3",
            self.client.uuid(),
            self.route,
            self.key,
            sealed,
        )
        .execute(tx)
        .await?;
        Ok(())
    }

    /// Lets the form be used again, if nothing was kept: its effect failed.
    pub async fn release(&self, conn: &mut Connection) -> Result<()> {
        sqlx::query!(
            "delete from idempotency_key \
             where client_id = $1 and route = $2 and key = $3 and body is null",
            self.client.uuid(),
            self.route,
            self.key,
        )
        .execute(conn)
        .await?;
        Ok(())
    }

    fn context(&self) -> String {
        row_name(self.client, self.route, &self.key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_form_without_a_row_counts_again_when_one_with_a_row_does() {
        let kept = Duration::from_secs(KEPT_SECONDS.unsigned_abs().into());
        assert_eq!(FormUse::QUOTA.bucket_idle(Duration::ZERO), kept);
    }
}
