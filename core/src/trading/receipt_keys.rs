//! The keys that sign receipts: made on first need, published before they sign, published for good.

mod key;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

pub use self::key::{ReceiptKey, seal_context};
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};

/// Seconds for which verifiers may keep the published keys. A key signs that much after it was
/// published, but for the first.
pub const PUBLISHED_SECONDS: u16 = 300;
/// Most keys that are published, the newest: one a day for ten years.
const KEYS_MAX: i64 = 3_650;

/// A key that is published.
#[derive(Debug)]
pub struct PublishedKey {
    /// Its thumbprint.
    pub key_id: String,
    pub(crate) public_key: Vec<u8>,
    /// True for the one that signs now.
    pub signs: bool,
    /// Time from which it signs, until a later one does.
    pub signs_from: DateTime<Utc>,
    /// Time at which it was made.
    pub created_at: DateTime<Utc>,
}

/// The key that signs now; the first one is made when there is none.
///
/// # Errors
/// When the database cannot be used, or the key was sealed by another master key.
pub(crate) async fn signing(core: &Core) -> Result<ReceiptKey> {
    if let Some(key) = current(core).await? {
        return Ok(key);
    }
    make_first(core).await?;
    current(core).await?.ok_or_else(|| Error::invariant("read the first key for receipts"))
}

/// Every key, newest first; the first one is made when there is none, so that nobody keeps an
/// empty list while it begins to sign.
pub async fn published(core: &Core) -> Result<Vec<PublishedKey>> {
    let keys = list(core).await?;
    if !keys.is_empty() {
        return Ok(keys);
    }
    make_first(core).await?;
    list(core).await
}

/// Makes the next key in the caller's transaction. It signs once whoever keeps the published ones has
/// to look again. Of rotations at the same time one makes a key.
pub async fn rotate(conn: &mut Connection, core: &Core) -> Result<()> {
    let key = ReceiptKey::generate(core)?;
    sqlx::query!(
        "insert into receipt_key (generation, key_id, public_key, sealed, signs_from, created_at) \
         select coalesce(max(generation), 0) + 1, $1, $2, $3, \
             rampart_now() + make_interval(secs => $4::integer), rampart_now() \
         from receipt_key on conflict (generation) do nothing",
        key.id(),
        key.public(),
        key.sealed(core)?,
        i32::from(PUBLISHED_SECONDS),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Makes the first key, which signs at once; of several edges that do so together, one makes it.
async fn make_first(core: &Core) -> Result<()> {
    let key = ReceiptKey::generate(core)?;
    sqlx::query!(
        "insert into receipt_key (generation, key_id, public_key, sealed, signs_from, created_at) \
         values (1, $1, $2, $3, rampart_now(), rampart_now()) on conflict (generation) do nothing",
        key.id(),
        key.public(),
        key.sealed(core)?,
    )
    .execute(&core.db)
    .await?;
    Ok(())
}

async fn current(core: &Core) -> Result<Option<ReceiptKey>> {
    let row = sqlx::query!(
        "select key_id, sealed from receipt_key where signs_from <= rampart_now() \
         order by generation desc limit 1",
    )
    .fetch_optional(&core.db)
    .await?;
    row.map(|row| ReceiptKey::open(core, &row.key_id, &row.sealed)).transpose()
}

async fn list(core: &Core) -> Result<Vec<PublishedKey>> {
    let keys = sqlx::query_as!(
        PublishedKey,
        r#"
        select key_id, public_key, signs_from, created_at,
            coalesce(generation = (select max(generation) from receipt_key
                where signs_from <= rampart_now()), false) as "signs!"
        from receipt_key order by generation desc limit $1
        "#,
        KEYS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(keys)
}

/// A published key as a JSON Web Key (RFC 7517, RFC 8037).
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "SigningKey")]
pub struct JsonWebKey {
    /// `OKP`.
    kty: &'static str,
    /// `Ed25519`.
    crv: &'static str,
    /// The public key in base64url.
    x: String,
    /// The key's id, as in the header of what it signed.
    kid: String,
    /// `EdDSA`.
    alg: &'static str,
    /// `sig`.
    #[serde(rename = "use")]
    usage: &'static str,
}
