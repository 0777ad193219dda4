//! Rows of versions and rollouts. Callers hold the row lock of `client_changed`, which serializes
//! changes of policies.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::LifecycleError;
use super::target::Target;
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Error;
use crate::policies::manifest::Manifest;

/// A version, as returned to operators.
#[derive(Debug, JsonSchema, PartialEq, Eq, Serialize)]
#[schemars(rename = "StoredVersion")]
pub struct VersionSummary {
    /// The version's number, which calls name.
    pub(super) version: i64,
    /// SHA-256 of the component, in hex.
    pub(super) digest: String,
    /// `signature`, `fee` or `method-order`.
    pub(super) kind: &'static str,
    /// Size of the component, in bytes.
    pub(super) size: i64,
}

/// A version to insert.
pub(super) struct NewVersion<'a> {
    pub(super) info: Value,
    pub(super) config: Value,
    pub(super) digest: &'a str,
    pub(super) fail_closed: bool,
    pub(super) manifest: Option<&'a Manifest>,
    /// Size of the component.
    pub(super) size_bytes: usize,
    /// Most fuel that a sample burnt at its examination.
    pub(super) fuel: u64,
}

impl NewVersion<'_> {
    /// Inserts it with the next number, inactive.
    ///
    /// # Errors
    /// [`LifecycleError::Conflict`] when the manifest names another number.
    pub(super) async fn insert(
        self,
        core: &Core,
        conn: &mut Connection,
        target: Target<'_>,
    ) -> Result<VersionSummary, LifecycleError> {
        let kind = target.kind.as_str();
        let size = i64::try_from(self.size_bytes)
            .map_err(|e| Error::internal("measure a component", e))?;
        let version = sqlx::query_scalar!(
            "insert into policy_version (client_id, kind, version, digest, size, info, config, \
                 fail_closed, active, reason, manifest, signed_by, signed_with, created_by, \
                 created_at, sample_fuel, has_served) \
             select $1, $2, coalesce(max(version), 0) + 1, $3, $4, $5, $6, $7, false, $8, $9, \
                 $10, $11, $12, $13, $14, false \
             from policy_version where client_id = $1 and kind = $2 \
             returning version",
            target.client.uuid(),
            kind,
            self.digest,
            size,
            self.info,
            self.config,
            self.fail_closed,
            target.reason,
            self.manifest.map(|manifest| manifest.text.as_str()),
            self.manifest.map(|manifest| manifest.signer.as_str()),
            self.manifest.map(|manifest| manifest.fingerprint.as_str()),
            target.actor,
            core.clock.now(),
            i64::try_from(self.fuel).unwrap_or(i64::MAX),
        )
        .fetch_one(conn)
        .await?;
        if self.manifest.is_some_and(|manifest| manifest.version != version) {
            return Err(LifecycleError::Conflict("the manifest's version is not the next one"));
        }
        Ok(VersionSummary { version, digest: self.digest.to_owned(), kind, size })
    }
}

/// Makes a version the active one for all users. A rollout of its kind ends.
pub(super) async fn make_active(
    conn: &mut Connection,
    target: Target<'_>,
    version: i64,
) -> Result<(), LifecycleError> {
    delete_rollout(conn, target).await?;
    sqlx::query!(
        "update policy_version set active = false where client_id = $1 and kind = $2 and active",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update policy_version set active = true, rolled_back = false, has_served = true, \
         activation = ( \
             select coalesce(max(activation), 0) + 1 from policy_version \
             where client_id = $1 and kind = $2) \
         where client_id = $1 and kind = $2 and version = $3",
        target.client.uuid(),
        target.kind.as_str(),
        version,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Notes that a version answers users from now on: it is kept for good, because their decisions name
/// it.
///
/// # Errors
/// The database's.
pub(super) async fn mark_served(
    conn: &mut Connection,
    target: Target<'_>,
    version: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "update policy_version set has_served = true \
         where client_id = $1 and kind = $2 and version = $3",
        target.client.uuid(),
        target.kind.as_str(),
        version,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A rollout that has ended.
pub(super) struct EndedRollout {
    pub(super) version: i64,
    pub(super) canary_percentage: Option<i16>,
}

/// Deletes the rollout of this kind with its differences.
pub(super) async fn delete_rollout(
    conn: &mut Connection,
    target: Target<'_>,
) -> Result<Option<EndedRollout>, LifecycleError> {
    let ended = sqlx::query!(
        "delete from policy_trial where client_id = $1 and kind = $2 \
         returning trial_id, version, share",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(ended) = ended else { return Ok(None) };
    sqlx::query!(
        "delete from policy_difference where client_id = $1 and trial_id = $2",
        target.client.uuid(),
        ended.trial_id,
    )
    .execute(conn)
    .await?;
    Ok(Some(EndedRollout { version: ended.version, canary_percentage: ended.share }))
}
