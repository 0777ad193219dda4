//! API keys: `rk_test_<id>_<secret>` or `rk_live_…`. They are shown once and stored as a digest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{ApiKey, Mode, Scope};
use crate::Core;
use crate::platform::clock::Clock;
use crate::platform::crypto::{Secret, sha256};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::revision;
use rampart_types::{ApiKeyId, ClientId};

/// Most live keys of one tenant.
pub(crate) const KEYS_MAX: i64 = 100;
/// Most revoked keys of one tenant that stay, the last ones: every edge reads over them when it loads
/// the tenant.
const REVOKED_MAX: i64 = 1_000;
/// Random bytes of a key's secret: 256 bits.
const SECRET_BYTES: usize = 32;

/// A newly generated key. Its text exists here only.
#[derive(Debug)]
pub struct NewApiKey {
    /// Its id.
    pub id: ApiKeyId,
    /// The id part of the text, stored in clear.
    pub public_id: String,
    /// The stored digest of the secret.
    pub secret_digest: [u8; 32],
    /// The complete key, to be shown once.
    pub text: Secret,
    /// Its display name.
    pub name: String,
    /// Permitted scopes; empty for all.
    pub scopes: Vec<Scope>,
    /// CIDR networks from which it is accepted; empty for all.
    pub allowed_addresses: Vec<String>,
    /// Subject of the TLS certificate that its senders need.
    pub certificate_subject: Option<String>,
    /// Time of expiry.
    pub expires_at: Option<DateTime<Utc>>,
}

impl NewApiKey {
    /// Stores the key.
    pub(crate) async fn insert(
        &self,
        conn: &mut Connection,
        client: ClientId,
        now: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        let scopes: Vec<_> = self.scopes.iter().map(|s| s.as_str().to_owned()).collect();
        sqlx::query!(
            "insert into api_key (client_id, api_key_id, public_id, secret_digest, name, scopes, \
             allowed_addresses, expires_at, created_at, certificate_subject) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            client.uuid(),
            self.id.uuid(),
            self.public_id,
            &self.secret_digest[..],
            self.name,
            &scopes,
            &self.allowed_addresses,
            self.expires_at,
            now,
            self.certificate_subject,
        )
        .execute(conn)
        .await?;
        Ok(())
    }
}

/// Stores a new key, unless the tenant has [`KEYS_MAX`] live ones: false. Revoked ones beyond
/// [`REVOKED_MAX`] are deleted.
///
/// # Errors
/// When the database cannot be written.
pub async fn issue(
    conn: &mut Connection,
    client: ClientId,
    key: &NewApiKey,
    now: DateTime<Utc>,
) -> Result<bool> {
    // First the counter: its row lock makes two issues at once follow each other.
    revision::client_changed(conn, client).await?;
    let live = sqlx::query_scalar!(
        r#"select count(*) as "count!" from api_key where client_id = $1 and revoked_at is null"#,
        client.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    if live >= KEYS_MAX {
        return Ok(false);
    }
    sqlx::query!(
        "delete from api_key where client_id = $1 and api_key_id in ( \
             select api_key_id from api_key where client_id = $1 and revoked_at is not null \
             order by revoked_at desc, api_key_id offset $2 limit $2)",
        client.uuid(),
        REVOKED_MAX,
    )
    .execute(&mut *conn)
    .await?;
    key.insert(conn, client, now).await?;
    Ok(true)
}

/// Revokes a live key; false when there is none of this id.
///
/// # Errors
/// When the database cannot be written.
pub async fn revoke(
    conn: &mut Connection,
    client: ClientId,
    key: ApiKeyId,
    now: DateTime<Utc>,
) -> Result<bool> {
    let revoked = sqlx::query!(
        "update api_key set revoked_at = $3 \
         where client_id = $1 and api_key_id = $2 and revoked_at is null",
        client.uuid(),
        key.uuid(),
        now,
    )
    .execute(&mut *conn)
    .await?;
    if revoked.rows_affected() == 0 {
        return Ok(false);
    }
    revision::client_changed(conn, client).await?;
    Ok(true)
}

/// A live API key, without its secret.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ApiKey")]
#[serde(rename_all = "camelCase")]
pub struct LiveApiKey {
    /// The key's id, which its revocation names.
    pub id: Uuid,
    /// Name for people.
    pub name: String,
    /// Its rights, such as `orders:read`; `*` is everything.
    pub scopes: Vec<String>,
    /// Networks from which it is accepted, in CIDR notation; any if empty.
    pub allowed_addresses: Vec<String>,
    /// Subject of the TLS client certificate that comes with it, if one is needed.
    pub(crate) certificate_subject: Option<String>,
    /// When it ends; null: it has no end.
    pub expires_at: Option<DateTime<Utc>>,
    /// Time of its last use; null before the first.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// The live keys of a tenant, oldest first.
///
/// # Errors
/// When the database cannot be read.
pub async fn live(conn: &mut Connection, client: ClientId) -> Result<Vec<LiveApiKey>> {
    let keys = sqlx::query_as!(
        LiveApiKey,
        "select api_key_id as id, name, scopes, allowed_addresses, certificate_subject, \
         expires_at, last_used_at \
         from api_key where client_id = $1 and revoked_at is null order by created_at",
        client.uuid(),
    )
    .fetch_all(conn)
    .await?;
    Ok(keys)
}

impl ApiKey {
    /// Generates a key. Its public id is its id in hexadecimal.
    ///
    /// # Errors
    /// Without entropy.
    pub fn generate(clock: &Clock, mode: Mode) -> Result<NewApiKey> {
        let id = clock.uuid()?;
        let public_id = id.simple().to_string();
        let secret = URL_SAFE_NO_PAD.encode(clock.random_bytes::<SECRET_BYTES>()?);
        let text = Secret::new(format!("rk_{}_{public_id}_{secret}", mode.as_str()));
        Ok(NewApiKey {
            id: ApiKeyId::from(id),
            secret_digest: sha256(&secret),
            public_id,
            text,
            name: String::new(),
            scopes: Vec::new(),
            allowed_addresses: Vec::new(),
            certificate_subject: None,
            expires_at: None,
        })
    }

    /// Mode, public id and secret of a key's text; `None` when it is malformed.
    pub fn split(text: &str) -> Option<(Mode, &str, &str)> {
        let (mode, rest) = text.strip_prefix("rk_")?.split_once('_')?;
        let mode = [Mode::Test, Mode::Live].into_iter().find(|known| known.as_str() == mode)?;
        let (id, secret) = rest.split_once('_')?;
        (!id.is_empty() && !secret.is_empty()).then_some((mode, id, secret))
    }
}

/// Last uses of keys, collected in memory and written by a worker, so that requests do not wait.
/// Bounded by the number of live keys.
#[derive(Debug, Default)]
pub struct ApiKeyUses(Mutex<HashMap<ApiKeyId, ClientId>>);

impl ApiKeyUses {
    /// Records a use of the key.
    pub fn record(&self, key: &Arc<ApiKey>) {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        uses.insert(key.id, key.client);
    }

    fn take(&self) -> HashMap<ApiKeyId, ClientId> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Core {
    /// Writes the uses recorded since the last call.
    ///
    /// # Errors
    /// When the database cannot be written; these uses are lost.
    pub async fn write_api_key_uses(&self) -> Result<()> {
        let (keys, clients): (Vec<_>, Vec<_>) =
            self.api_key_uses.take().into_iter().map(|(k, c)| (k.uuid(), c.uuid())).unzip();
        if keys.is_empty() {
            return Ok(());
        }
        sqlx::query!(
            "update api_key set last_used_at = rampart_now() from ( \
                 select client_id, api_key_id from api_key \
                 where (client_id, api_key_id) in (select * from unnest($1::uuid[], $2::uuid[])) \
                 for update skip locked) as used \
             where api_key.client_id = used.client_id and api_key.api_key_id = used.api_key_id",
            &clients,
            &keys,
        )
        .execute(&self.db)
        .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_splits_into_its_stored_parts() {
        let generated = ApiKey::generate(&Clock::system(), Mode::Test).unwrap();
        let (mode, id, secret) = ApiKey::split(generated.text.expose()).unwrap();
        assert_eq!(mode, Mode::Test);
        assert_eq!((id, sha256(secret)), (generated.public_id.as_str(), generated.secret_digest));
        for bad in ["", "rk_test_", "rk_test_a", "rk_test__b", "rk_prod_a_b", "sk_test_a_b"] {
            assert!(ApiKey::split(bad).is_none(), "{bad}");
        }
    }
}
