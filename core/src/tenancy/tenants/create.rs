//! Creation of a tenant with one credential of each kind.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::api_keys::NewApiKey;
use super::load::secret_context;
use super::{ApiKey, Mode};
use crate::Core;
use crate::platform::clock::Clock;
use crate::platform::crypto::Secret;
use crate::platform::crypto::tenant_key::TenantCipher;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::revision;
use crate::tenancy::tenant_keys::NewTenantKey;
use rampart_types::ClientId;

/// Prefix of a webhook secret, before the standard base64 of the key (Standard Webhooks).
pub(crate) const WEBHOOK_SECRET_PREFIX: &str = "whsec_";
/// Random bytes of every secret: 256 bits.
const SECRET_BYTES: usize = 32;

/// A tenant that is not stored yet. Its secrets exist here only in clear.
#[derive(Debug)]
pub struct NewTenant {
    /// Its id.
    pub id: ClientId,
    /// Its slug.
    pub slug: String,
    /// Name that users see.
    pub name: String,
    /// Test or live.
    pub mode: Mode,
    /// Password for `/authenticate`.
    pub password: Secret,
    /// First API key.
    pub api_key: NewApiKey,
    /// Secret that signs offers.
    pub signing_secret: Secret,
    /// Secret that signs deliveries.
    pub webhook_secret: Secret,
    /// Networks from which its credentials are accepted; empty for all.
    pub allowed_addresses: Vec<String>,
    stored: Vec<StoredSecret>,
    /// The key that has sealed them; without one, the master key has.
    key: Option<NewTenantKey>,
}

/// A secret in its stored form.
#[derive(Debug)]
pub struct StoredSecret {
    pub(crate) id: Uuid,
    pub(crate) kind: SecretKind,
    pub(crate) password_hash: Option<String>,
    pub(crate) sealed: Option<Vec<u8>>,
}

/// The kinds of secrets; a partner has one current of each, and a previous one during a rotation.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    schemars::JsonSchema,
    serde::Deserialize,
    serde::Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum SecretKind {
    /// The password of `authenticate`; stored as an argon2id hash.
    Password,
    /// Signs the client's offers.
    Signing,
    /// Signs callbacks to the partner.
    Webhook,
}

rampart_types::named_values! {
    pub SecretKind {
        Password = "password",
        Signing = "signing",
        Webhook = "webhook",
    }
}

impl SecretKind {
    /// Generates a secret of this kind, as shown to the operator.
    pub fn generate(self, clock: &Clock) -> Result<Secret> {
        let bytes: [u8; SECRET_BYTES] = clock.random_bytes()?;
        Ok(Secret::new(match self {
            Self::Webhook => format!("{WEBHOOK_SECRET_PREFIX}{}", STANDARD.encode(bytes)),
            Self::Password | Self::Signing => URL_SAFE_NO_PAD.encode(bytes),
        }))
    }
}

impl StoredSecret {
    /// Hashes or seals a secret for its row.
    pub async fn new(
        core: &Core,
        client: ClientId,
        cipher: &TenantCipher<'_>,
        kind: SecretKind,
        secret: &Secret,
    ) -> Result<Self> {
        let id = core.clock.uuid()?;
        let (mut password_hash, mut sealed) = (None, None);
        if kind == SecretKind::Password {
            password_hash = Some(core.passwords.hash(secret.clone()).await?);
        } else {
            let context = secret_context(client.uuid(), id);
            sealed = Some(cipher.seal(&context, secret.expose().as_bytes())?);
        }
        Ok(Self { id, kind, password_hash, sealed })
    }

    /// Stores it as the current secret.
    pub async fn insert(
        &self,
        conn: &mut Connection,
        client: ClientId,
        now: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        sqlx::query!(
            "insert into client_secret \
             (client_id, secret_id, kind, password_hash, sealed, created_at) \
             values ($1, $2, $3, $4, $5, $6)",
            client.uuid(),
            self.id,
            self.kind.as_str(),
            self.password_hash,
            self.sealed,
            now,
        )
        .execute(conn)
        .await?;
        Ok(())
    }
}

impl NewTenant {
    /// Generates the tenant's credentials.
    pub async fn generate(core: &Core, slug: String, name: String, mode: Mode) -> Result<Self> {
        let id = ClientId::from(core.clock.uuid()?);
        let [password, signing_secret, webhook_secret] = [
            SecretKind::Password.generate(&core.clock)?,
            SecretKind::Signing.generate(&core.clock)?,
            SecretKind::Webhook.generate(&core.clock)?,
        ];
        let key = NewTenantKey::generate(core, id)?;
        let own = key.as_ref().map(NewTenantKey::key);
        let cipher = &TenantCipher::new(&core.keys, &core.clock, own);
        let stored = vec![
            StoredSecret::new(core, id, cipher, SecretKind::Password, &password).await?,
            StoredSecret::new(core, id, cipher, SecretKind::Signing, &signing_secret).await?,
            StoredSecret::new(core, id, cipher, SecretKind::Webhook, &webhook_secret).await?,
        ];
        let api_key = ApiKey::generate(&core.clock, mode)?;
        let allowed_addresses = Vec::new();
        Ok(Self {
            id,
            slug,
            name,
            mode,
            password,
            api_key,
            signing_secret,
            webhook_secret,
            allowed_addresses,
            stored,
            key,
        })
    }

    /// Stores the tenant, its key, its secrets and its first API key.
    pub async fn insert(
        &self,
        conn: &mut Connection,
        now: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        let revision = revision::next_client_revision(conn).await?;
        sqlx::query!(
            "insert into client \
             (client_id, slug, name, mode, username, revision, created_at, allowed_addresses) \
             values ($1, $2, $3, $4, $2, $5, $6, $7)",
            self.id.uuid(),
            self.slug,
            self.name,
            self.mode.as_str(),
            revision,
            now,
            &self.allowed_addresses,
        )
        .execute(&mut *conn)
        .await?;
        if let Some(key) = &self.key {
            key.insert(conn, self.id).await?;
        }
        for secret in &self.stored {
            secret.insert(conn, self.id, now).await?;
        }
        self.api_key.insert(conn, self.id, now).await
    }
}
