//! Public keys of operators, which sign manifests of partners' policies.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rampart_plugins::VerificationKey;
use rampart_plugins::contract::Algorithm;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::key_name;
use super::lifecycle::error::LifecycleError;
use super::manifest::fingerprint;
use super::signed_change;
use super::statement::{ChangeStatement, SignedChange};
use crate::Core;
use crate::platform::audit::{self, Entry};
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};

/// Most keys of all operators.
pub const KEYS_MAX: i64 = 100;

/// A public key of an operator.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorKey {
    /// The key's name, which signatures give.
    pub name: String,
    /// A PEM `PUBLIC KEY` of Ed25519.
    pub(crate) public_key: String,
    /// SHA-256 of the PEM, in hex.
    pub(crate) fingerprint: String,
    /// The author of the registration.
    pub(crate) created_by: String,
    /// When it was registered.
    pub(crate) created_at: DateTime<Utc>,
}

/// All keys by name.
pub async fn list(core: &Core) -> Result<Vec<OperatorKey>> {
    let keys = sqlx::query_as!(
        OperatorKey,
        "select name, public_key, fingerprint, created_by, created_at from operator_key \
         order by name limit $1",
        KEYS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(keys)
}

/// A public key of an operator that is not registered yet.
#[derive(Clone, Copy, Debug)]
pub struct NewOperatorKey<'a> {
    /// The key's name, which signatures give.
    pub name: &'a str,
    /// A PEM `PUBLIC KEY` of Ed25519.
    pub public_key: &'a str,
}

/// Registers a key. A name keeps its key, so that no operator can be impersonated unnoticed.
///
/// # Errors
/// [`LifecycleError::Invalid`] with the problem, [`LifecycleError::Conflict`] when the name has another key.
pub async fn register(
    core: &Core,
    actor: &str,
    new: NewOperatorKey<'_>,
    signed: Option<&SignedChange>,
) -> Result<(), LifecycleError> {
    let NewOperatorKey { name, public_key } = new;
    key_name::check(name)?;
    if core.policies.root_key(name).is_some() {
        return Err(LifecycleError::Conflict("the name is that of a root key"));
    }
    VerificationKey::parse(Algorithm::Ed25519, public_key)
        .map_err(|problem| LifecycleError::Invalid(format!("publicKey: {problem}")))?;
    let fingerprint = fingerprint(public_key);
    let mut tx = core.db.begin().await?;
    let change = ChangeStatement {
        action: "operator-key.register".to_owned(),
        key: Some(name.to_owned()),
        fingerprint: Some(fingerprint.clone()),
        ..ChangeStatement::default()
    };
    signed_change::check_of_keys(core, &mut tx, signed, change).await?;
    let registered = sqlx::query_scalar!(
        "insert into operator_key (name, public_key, fingerprint, created_by, created_at) \
         select $1, $2, $3, $4, $5 where (select count(*) from operator_key) < $6 \
         on conflict (name) do update set name = excluded.name \
         where operator_key.fingerprint = excluded.fingerprint \
         returning name",
        name,
        public_key,
        fingerprint,
        actor,
        core.clock.now(),
        KEYS_MAX,
    )
    .fetch_optional(&mut *tx)
    .await?;
    if registered.is_none() {
        return Err(LifecycleError::Conflict(
            "the name has another key, or there are 100 keys already",
        ));
    }
    let detail = json!({"name": name, "fingerprint": fingerprint});
    let entry = Entry { actor, action: "operator-key.register", target: name, detail };
    audit::record(&mut tx, core, entry).await?;
    tx.commit().await?;
    Ok(())
}

/// Holds the keys until the transaction ends: one of them can sign what is to need a signature.
///
/// # Errors
/// [`LifecycleError::Conflict`] when there is none, which nobody could register any more.
pub async fn hold(core: &Core, conn: &mut Connection) -> Result<(), LifecycleError> {
    let keys = sqlx::query_scalar!("select name from operator_key for key share")
        .fetch_all(&mut *conn)
        .await?;
    if keys.is_empty() && !core.policies.has_root_key() {
        return Err(LifecycleError::Conflict("no key is registered to sign with"));
    }
    Ok(())
}

/// Removes a key: versions it signed keep serving, and cannot be activated again where a signature
/// is required.
///
/// # Errors
/// [`LifecycleError::NotFound`] when there is none of this name, [`LifecycleError::Conflict`] when it is
/// the last one while a partner's policies must be signed.
pub async fn remove(
    core: &Core,
    actor: &str,
    name: &str,
    signed: Option<&SignedChange>,
) -> Result<(), LifecycleError> {
    let mut tx = core.db.begin().await?;
    let change = ChangeStatement {
        action: "operator-key.remove".to_owned(),
        key: Some(name.to_owned()),
        ..ChangeStatement::default()
    };
    signed_change::check_of_keys(core, &mut tx, signed, change).await?;
    let removed =
        sqlx::query!("delete from operator_key where name = $1", name).execute(&mut *tx).await?;
    if removed.rows_affected() == 0 {
        return Err(LifecycleError::NotFound("operator key"));
    }
    let detail = json!({ "name": name });
    let entry = Entry { actor, action: "operator-key.remove", target: name, detail };
    audit::record(&mut tx, core, entry).await?;
    // Other removals wait for the audit now, and see what this one leaves. Whoever begins to require
    // signatures meanwhile has held the keys first.
    let is_needed = sqlx::query_scalar!(
        r#"
        select not exists (select from operator_key)
            and exists (select from client where policy_signature_required) as "is_needed!"
        "#
    )
    .fetch_one(&mut *tx)
    .await?;
    if is_needed && !core.policies.has_root_key() {
        return Err(LifecycleError::Conflict(
            "it is the last key, and a partner's policies must be signed",
        ));
    }
    tx.commit().await?;
    Ok(())
}

/// A registered key or a root key, to verify with.
pub(super) struct RegisteredKey {
    pub(super) public: Arc<VerificationKey>,
    pub(super) fingerprint: String,
}

/// The key of this name: a root key of the settings, or a registered one.
pub(super) async fn find(
    core: &Core,
    conn: &mut Connection,
    name: &str,
) -> Result<Option<RegisteredKey>> {
    if let Some(root) = core.policies.root_key(name) {
        return Ok(Some(RegisteredKey {
            public: Arc::clone(&root.public),
            fingerprint: root.fingerprint.clone(),
        }));
    }
    let row =
        sqlx::query!("select public_key, fingerprint from operator_key where name = $1", name)
            .fetch_optional(conn)
            .await?;
    let Some(row) = row else { return Ok(None) };
    let public = VerificationKey::parse(Algorithm::Ed25519, &row.public_key)
        .map_err(|error| Error::internal("read an operator's key", error))?;
    Ok(Some(RegisteredKey { public: Arc::new(public), fingerprint: row.fingerprint }))
}

/// True if a key with this fingerprint is registered, by any name, or is a root key.
pub(super) async fn is_registered(
    core: &Core,
    conn: &mut Connection,
    fingerprint: &str,
) -> Result<bool> {
    if core.policies.is_root(fingerprint) {
        return Ok(true);
    }
    let found = sqlx::query_scalar!(
        r#"select exists (select from operator_key where fingerprint = $1) as "found!""#,
        fingerprint,
    )
    .fetch_one(conn)
    .await?;
    Ok(found)
}
