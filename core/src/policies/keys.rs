//! Verification keys, which a signature policy can name and never read. Sealed at rest.

use rampart_plugins::VerificationKey;
use serde_json::json;

use super::lifecycle::error::LifecycleError;
use crate::Core;
use crate::platform::audit::{self, Entry};
use crate::platform::crypto::Secret;
use crate::platform::revision;
use crate::policies::runtime::{self, ALGORITHMS, seal_context};
use rampart_types::ClientId;

/// Longest name of a key, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Most keys of one partner.
const KEYS_MAX: i64 = 100;

/// Stores a key under this name, replacing another.
///
/// # Errors
/// [`LifecycleError::Invalid`] with the problem, without quoting the key.
pub(crate) async fn put(
    core: &Core,
    actor: &str,
    (client, slug): (ClientId, &str),
    name: &str,
    (algorithm, key): (&str, &Secret),
) -> Result<(), LifecycleError> {
    check_name(name)?;
    let known = runtime::algorithm(algorithm).ok_or_else(|| {
        let names: Vec<_> = ALGORITHMS.iter().map(|(name, _)| *name).collect();
        LifecycleError::Invalid(format!("algorithm: one of {}", names.join(", ")))
    })?;
    VerificationKey::parse(known, key.expose())
        .map_err(|problem| LifecycleError::Invalid(format!("key: {problem}")))?;
    let context = seal_context(client.uuid(), name);
    let sealed = core.keys.seal(&core.clock, &context, key.expose().as_bytes())?;
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, client).await?;
    let others = sqlx::query_scalar!(
        r#"select count(*) as "count!" from verification_key where client_id = $1 and name <> $2"#,
        client.uuid(),
        name,
    )
    .fetch_one(&mut *tx)
    .await?;
    if others >= KEYS_MAX {
        return Err(LifecycleError::Invalid(
            "the partner has 100 verification keys already".into(),
        ));
    }
    sqlx::query!(
        "insert into verification_key (client_id, name, algorithm, sealed, created_at) \
         values ($1, $2, $3, $4, $5) on conflict (client_id, name) do update \
         set algorithm = excluded.algorithm, sealed = excluded.sealed, \
             created_at = excluded.created_at",
        client.uuid(),
        name,
        algorithm,
        sealed,
        core.clock.now(),
    )
    .execute(&mut *tx)
    .await?;
    let detail = json!({"name": name, "algorithm": algorithm});
    let entry = Entry { actor, action: "verification-key.put", target: slug, detail };
    audit::record(&mut tx, &core.clock, entry).await?;
    tx.commit().await?;
    Ok(core.refresh().await?)
}

/// Checks the name of a key.
///
/// # Errors
/// [`LifecycleError::Invalid`] with the allowed form.
pub(super) fn check_name(name: &str) -> Result<(), LifecycleError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    match (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(allowed) {
        true => Ok(()),
        false => Err(LifecycleError::Invalid("name: 1 to 64 of a-z, A-Z, 0-9, -, _ and .".into())),
    }
}

/// Deletes a key: payloads it signed are refused from then on.
///
/// # Errors
/// [`LifecycleError::NotFound`] when there is none of this name.
pub(crate) async fn delete(
    core: &Core,
    actor: &str,
    (client, slug): (ClientId, &str),
    name: &str,
) -> Result<(), LifecycleError> {
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, client).await?;
    let deleted = sqlx::query!(
        "delete from verification_key where client_id = $1 and name = $2",
        client.uuid(),
        name,
    )
    .execute(&mut *tx)
    .await?;
    if deleted.rows_affected() == 0 {
        return Err(LifecycleError::NotFound("verification key"));
    }
    let detail = json!({ "name": name });
    let entry = Entry { actor, action: "verification-key.delete", target: slug, detail };
    audit::record(&mut tx, &core.clock, entry).await?;
    tx.commit().await?;
    Ok(core.refresh().await?)
}
