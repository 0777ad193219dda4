//! Verification keys, which a signature policy can name and never read. Sealed at rest.

use chrono::{DateTime, Utc};
use rampart_plugins::VerificationKey;
use rampart_plugins::contract::Algorithm;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::key_name;
use super::lifecycle::error::LifecycleError;
use super::lifecycle::target::{Target, check_persons};
use super::manifest::fingerprint;
use super::signed_change;
use super::statement::{ChangeStatement, SignedChange};
use crate::Core;
use crate::auth::approval::GrantedApproval;
use crate::platform::audit::{self, Entry};
use crate::platform::crypto::Secret;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::revision;
use crate::policies::runtime::{self, ALGORITHMS, seal_context};
use rampart_types::ClientId;

/// Most keys of one partner.
pub const KEYS_MAX: i64 = 100;

/// One key of one partner, with the operator of its change.
#[derive(Clone, Copy)]
pub struct KeyTarget<'a> {
    /// Operator of the change.
    pub actor: &'a str,
    /// Slug of the partner.
    pub slug: &'a str,
    /// The partner.
    pub client: ClientId,
    /// The key's name.
    pub name: &'a str,
    /// The operator's signature, which some partners require.
    pub signed: Option<&'a SignedChange>,
    /// True if a second person has agreed, or none is needed.
    pub is_approved: bool,
    /// The second person's approval, which the change uses up with its record.
    pub approval: Option<&'a GrantedApproval>,
}

/// A key to be stored.
#[derive(Clone, Copy)]
pub struct NewKey<'a> {
    /// Its name in `wit/signature.wit`.
    pub algorithm: &'a str,
    /// The key, secret if its algorithm is symmetric.
    pub key: &'a Secret,
    /// Start and end of its validity, if bounded: outside it the key verifies nothing.
    pub not_before: Option<DateTime<Utc>>,
    /// End of its validity, if it ends.
    pub not_after: Option<DateTime<Utc>>,
}

/// A key as it is listed: without the key.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ListedVerificationKey")]
#[serde(rename_all = "camelCase")]
pub struct ListedKey {
    /// The key's name, which the policy gives.
    pub name: String,
    /// The algorithm that it verifies.
    algorithm: String,
    /// SHA-256 of the PEM, in hex; null for a secret of HMAC, and for a key that cannot be read.
    fingerprint: Option<String>,
    /// From when it is valid; null: always was.
    not_before: Option<DateTime<Utc>>,
    /// Until when it is valid; null: it has no end.
    not_after: Option<DateTime<Utc>>,
    /// When it was set.
    created_at: DateTime<Utc>,
}

/// The partner's keys, by name.
pub async fn list(core: &Core, client: ClientId) -> Result<Vec<ListedKey>> {
    let rows = sqlx::query!(
        "select name, algorithm, sealed, not_before, not_after, created_at \
         from verification_key where client_id = $1 order by name limit $2",
        client.uuid(),
        KEYS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    let listed = rows.into_iter().map(|row| ListedKey {
        fingerprint: public_fingerprint(core, client, &row.name, &row.algorithm, &row.sealed),
        name: row.name,
        algorithm: row.algorithm,
        not_before: row.not_before,
        not_after: row.not_after,
        created_at: row.created_at,
    });
    Ok(listed.collect())
}

/// The fingerprint of a public key. There is none of a secret, which could be guessed by it.
fn public_fingerprint(
    core: &Core,
    client: ClientId,
    name: &str,
    algorithm: &str,
    sealed: &[u8],
) -> Option<String> {
    if runtime::is_secret(runtime::algorithm(algorithm)?) {
        return None;
    }
    let key = core.cipher(client).open(&seal_context(client.uuid(), name), sealed).ok()?;
    String::from_utf8(key).ok().map(|pem| fingerprint(&pem))
}

/// Checks that the partner has every key that a policy names in its description of itself.
///
/// # Errors
/// [`LifecycleError::Invalid`] with the first name of which there is no key, or one that has expired.
pub(super) async fn check_named(
    conn: &mut Connection,
    target: Target<'_>,
    info: &Value,
) -> Result<(), LifecycleError> {
    let named = info["keys"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let named: Vec<String> = named.map(str::to_owned).collect();
    let missing = sqlx::query_scalar!(
        r#"
        select named as "named!" from unnest($2::text[]) named
        where not exists (select from verification_key k where k.client_id = $1
            and k.name = named and (k.not_after is null or k.not_after > rampart_now()))
        limit 1
        "#,
        target.client.uuid(),
        &named,
    )
    .fetch_optional(conn)
    .await?;
    match missing {
        Some(name) => Err(LifecycleError::Invalid(format!(
            "the policy names the verification key `{name}`, which the partner does not have"
        ))),
        None => Ok(()),
    }
}

/// Checks a key that is to be stored under this name, and gives its algorithm.
///
/// # Errors
/// [`LifecycleError::Invalid`] with the problem, without quoting the key.
pub fn check(name: &str, new: NewKey<'_>) -> Result<Algorithm, LifecycleError> {
    let NewKey { algorithm, key, not_before, not_after } = new;
    if not_before.zip(not_after).is_some_and(|(from, to)| from >= to) {
        return Err(LifecycleError::Invalid("notAfter: it is not after notBefore".into()));
    }
    key_name::check(name)?;
    let known = runtime::algorithm(algorithm).ok_or_else(|| {
        let names: Vec<_> = ALGORITHMS.iter().map(|(name, _)| *name).collect();
        LifecycleError::Invalid(format!("algorithm: one of {}", names.join(", ")))
    })?;
    VerificationKey::parse(known, key.expose())
        .map_err(|problem| LifecycleError::Invalid(format!("key: {problem}")))?;
    Ok(known)
}

/// Stores a key under this name, replacing another.
///
/// # Errors
/// Those of [`check`]; [`LifecycleError::Conflict`] where the change must be signed or approved and
/// is not.
pub async fn put(
    core: &Core,
    target: KeyTarget<'_>,
    new: NewKey<'_>,
) -> Result<(), LifecycleError> {
    let KeyTarget { client, name, signed, is_approved, .. } = target;
    check(name, new)?;
    let NewKey { algorithm, key, not_before, not_after } = new;
    let context = seal_context(client.uuid(), name);
    let sealed = core.cipher(client).seal(&context, key.expose().as_bytes())?;
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, client).await?;
    check_persons(&mut tx, client, is_approved).await?;
    let change = ChangeStatement {
        fingerprint: Some(fingerprint(key.expose())),
        algorithm: Some(algorithm.to_owned()),
        not_before,
        not_after,
        ..change_of("verification-key.put", target)
    };
    signed_change::check_of_partner(core, &mut tx, client, signed, change).await?;
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
        "insert into verification_key (client_id, name, algorithm, sealed, created_at, not_before, \
             not_after) \
         values ($1, $2, $3, $4, $5, $6, $7) on conflict (client_id, name) do update \
         set algorithm = excluded.algorithm, sealed = excluded.sealed, \
             created_at = excluded.created_at, not_before = excluded.not_before, \
             not_after = excluded.not_after",
        client.uuid(),
        name,
        algorithm,
        sealed,
        core.clock.now(),
        not_before,
        not_after,
    )
    .execute(&mut *tx)
    .await?;
    let detail = json!({"name": name, "algorithm": algorithm, "notBefore": not_before,
        "notAfter": not_after});
    record_change(core, &mut tx, target, "verification-key.put", detail).await?;
    tx.commit().await?;
    core.serve_committed().await;
    Ok(())
}

/// Records a change of a key in the audit. A second person's approval of it is used up.
async fn record_change(
    core: &Core,
    conn: &mut Connection,
    target: KeyTarget<'_>,
    action: &'static str,
    detail: Value,
) -> Result<()> {
    if let Some(approval) = target.approval {
        approval.spend(conn, core, target.actor).await?;
    }
    let entry = Entry { actor: target.actor, action, target: target.slug, detail };
    audit::record(conn, core, entry).await
}

/// The statement about a change of this key.
fn change_of(action: &str, target: KeyTarget<'_>) -> ChangeStatement {
    ChangeStatement {
        action: action.to_owned(),
        partner: Some(target.slug.to_owned()),
        key: Some(target.name.to_owned()),
        ..ChangeStatement::default()
    }
}

/// Deletes a key: payloads it signed are refused from then on.
///
/// # Errors
/// [`LifecycleError::NotFound`] when there is none of this name, [`LifecycleError::Conflict`] where
/// the change must be signed or approved and is not.
pub async fn delete(core: &Core, target: KeyTarget<'_>) -> Result<(), LifecycleError> {
    let KeyTarget { client, name, signed, is_approved, .. } = target;
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, client).await?;
    check_persons(&mut tx, client, is_approved).await?;
    let change = change_of("verification-key.delete", target);
    signed_change::check_of_partner(core, &mut tx, client, signed, change).await?;
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
    record_change(core, &mut tx, target, "verification-key.delete", detail).await?;
    tx.commit().await?;
    core.serve_committed().await;
    Ok(())
}
