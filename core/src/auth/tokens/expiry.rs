//! Deletes refresh tokens that have expired, and the logins that have none left.

use crate::Core;
use crate::platform::error::Result;
use crate::platform::sweeps::{DELETED_MAX, delete_expired};
use rampart_types::ClientId;

impl Core {
    /// Deletes expired refresh tokens, and families without any left: one run of a worker. True if
    /// there may be more.
    ///
    /// # Errors
    /// When the database cannot be written; the next run continues.
    pub async fn delete_expired_refresh_tokens(&self) -> Result<bool> {
        let clients = sqlx::query_scalar!(
            "select c.client_id from client c cross join lateral ( \
                 (select 1 from refresh_token t \
                 where t.client_id = c.client_id and t.expires_at <= rampart_now() limit 1) \
                 union all \
                 (select 1 from refresh_family f \
                 where f.client_id = c.client_id and f.expires_at <= rampart_now() limit 1) \
                 limit 1) due",
        )
        .fetch_all(&self.db)
        .await?;
        let delete = |client| self.delete_expired_refresh_tokens_of(client);
        delete_expired(&self.metrics, "refresh tokens", clients, delete).await
    }

    async fn delete_expired_refresh_tokens_of(&self, client: ClientId) -> Result<bool> {
        let tokens = sqlx::query!(
            "delete from refresh_token where client_id = $1 and token_digest in ( \
                 select token_digest from refresh_token \
                 where client_id = $1 and expires_at <= rampart_now() \
                 limit $2 for update skip locked)",
            client.uuid(),
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        let families = sqlx::query!(
            "delete from refresh_family f where f.client_id = $1 and f.family_id in ( \
                 select family_id from refresh_family \
                 where client_id = $1 and expires_at <= rampart_now() \
                 limit $2 for update skip locked) \
             and not exists (select from refresh_token t \
                 where t.client_id = $1 and t.family_id = f.family_id)",
            client.uuid(),
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        let most = tokens.rows_affected().max(families.rows_affected());
        Ok(most >= DELETED_MAX.unsigned_abs())
    }
}
