//! Verification keys, unsealed for a snapshot.

use std::collections::HashMap;
use std::future::ready;

use chrono::{DateTime, Utc};
use rampart_plugins::contract::Algorithm;
use rampart_plugins::{BoundKey, KeyRing, VerificationKey};
use uuid::Uuid;

use crate::Core;
use crate::platform::db::{BrokenRow, readable};
use crate::platform::error::{Error, Result};

/// Names of the algorithms, as in `wit/signature.wit`.
pub const ALGORITHMS: [(&str, Algorithm); 6] = [
    ("hmac-sha256", Algorithm::HmacSha256),
    ("hmac-sha512", Algorithm::HmacSha512),
    ("ed25519", Algorithm::Ed25519),
    ("rsa-pkcs1-sha256", Algorithm::RsaPkcs1Sha256),
    ("rsa-pss-sha256", Algorithm::RsaPssSha256),
    ("ecdsa-p256-sha256", Algorithm::EcdsaP256Sha256),
];

/// The algorithm of this name.
pub fn algorithm(name: &str) -> Option<Algorithm> {
    ALGORITHMS.iter().find(|(listed, _)| *listed == name).map(|(_, algorithm)| *algorithm)
}

/// The name of an algorithm, as operators write it.
pub fn algorithm_name(algorithm: Algorithm) -> &'static str {
    ALGORITHMS.iter().find(|(_, listed)| *listed == algorithm).map_or("", |(name, _)| name)
}

/// True if whoever knows a key of this algorithm can sign with it.
pub const fn is_secret(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::HmacSha256 | Algorithm::HmacSha512)
}

/// The context that the sealed key of a row is bound to.
pub fn seal_context(client: Uuid, name: &str) -> String {
    format!("verification_key/{client}/{name}")
}

/// The key rings of these clients. A key that cannot be unsealed or parsed is left out and noted:
/// signatures that need it are refused.
pub(crate) async fn load(
    core: &Core,
    ids: &[Uuid],
    broken: &mut Vec<BrokenRow>,
) -> Result<HashMap<Uuid, KeyRing>> {
    let read = |part: Option<Vec<Uuid>>| async move {
        sqlx::query!(
            "select client_id, name, algorithm, sealed, not_before, not_after \
             from verification_key where client_id = any($1)",
            part.as_deref().unwrap_or(ids),
        )
        .fetch_all(&core.db)
        .await
    };
    let rows = readable(read, ready(Ok(ids.to_vec()))).await?;
    for (id, reason) in &rows.broken {
        broken.push(BrokenRow::of_tenant("verification_key", *id, id, reason));
    }
    let mut rings: HashMap<Uuid, Vec<(String, BoundKey)>> = HashMap::new();
    for row in rows.rows {
        match open(core, row.client_id, &row.name, &row.algorithm, &row.sealed) {
            Ok(key) => {
                let (not_before, not_after) = (row.not_before, row.not_after);
                let bound = BoundKey {
                    key,
                    not_before: not_before.map(whole_seconds),
                    not_after: not_after.map(whole_seconds),
                };
                rings.entry(row.client_id).or_default().push((row.name, bound));
            }
            Err(error) => {
                let table = "verification_key";
                broken.push(BrokenRow::of_tenant(table, row.client_id, &row.name, &error));
            }
        }
    }
    Ok(rings.into_iter().map(|(client, keys)| (client, KeyRing::new(keys))).collect())
}

/// Whole seconds since 1970, within the contract's 32 bits.
fn whole_seconds(time: DateTime<Utc>) -> u32 {
    u32::try_from(time.timestamp().max(0)).unwrap_or(u32::MAX)
}

fn open(
    core: &Core,
    client: Uuid,
    name: &str,
    algorithm_name: &str,
    sealed: &[u8],
) -> Result<VerificationKey> {
    let plain = core.cipher(client.into()).open(&seal_context(client, name), sealed)?;
    let text = String::from_utf8(plain).map_err(|e| Error::internal("read a key", e))?;
    let algorithm =
        algorithm(algorithm_name).ok_or_else(|| Error::invariant("know a key's algorithm"))?;
    VerificationKey::parse(algorithm, &text).map_err(|e| Error::internal("read a key", e))
}
