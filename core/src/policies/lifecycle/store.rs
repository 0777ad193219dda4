//! The row of a version, and which one is active. All of it happens behind `client_changed`, whose
//! row lock makes changes of policies follow each other.

use serde_json::Value;
use sqlx::PgConnection;

use super::{Activated, NotDone, Target};
use crate::Core;
use crate::platform::error::Error;
use crate::policies::manifest::Manifest;

/// A version to be.
pub(super) struct Version<'a> {
    pub(super) info: Value,
    pub(super) config: Value,
    pub(super) digest: &'a str,
    pub(super) fail_closed: bool,
    pub(super) proof: Option<&'a Manifest>,
    /// Size of the component.
    pub(super) bytes: usize,
}

impl Version<'_> {
    /// Takes the next number. It is not active yet.
    ///
    /// # Errors
    /// [`NotDone::Conflict`] when the manifest names another number.
    pub(super) async fn insert(
        self,
        core: &Core,
        conn: &mut PgConnection,
        target: Target<'_>,
    ) -> Result<Activated, NotDone> {
        let kind = target.kind.as_str();
        let size =
            i64::try_from(self.bytes).map_err(|e| Error::internal("measure a component", e))?;
        let version = sqlx::query_scalar!(
            "insert into policy_version (client_id, kind, version, digest, size, info, config, \
                 fail_closed, active, reason, manifest, signed_by, signed_with, created_by, \
                 created_at) \
             select $1, $2, coalesce(max(version), 0) + 1, $3, $4, $5, $6, $7, false, $8, $9, \
                 $10, $11, $12, $13 \
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
            self.proof.map(|manifest| manifest.text.as_str()),
            self.proof.map(|manifest| manifest.signer.as_str()),
            self.proof.map(|manifest| manifest.fingerprint.as_str()),
            target.actor,
            core.clock.now(),
        )
        .fetch_one(conn)
        .await?;
        if self.proof.is_some_and(|manifest| manifest.version != version) {
            return Err(NotDone::Conflict("the manifest's version is not the next one"));
        }
        Ok(Activated { version, digest: self.digest.to_owned(), kind, size })
    }
}

/// Makes a version the active one, of all users: a trial of its kind ends.
pub(super) async fn switch_to(
    conn: &mut PgConnection,
    target: Target<'_>,
    version: i64,
) -> Result<(), NotDone> {
    drop_trial(conn, target).await?;
    sqlx::query!(
        "update policy_version set active = false where client_id = $1 and kind = $2 and active",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update policy_version set active = true, rolled_back = false, activation = ( \
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

/// A trial that has ended.
pub(super) struct Ended {
    pub(super) version: i64,
    pub(super) share: Option<i16>,
}

/// Ends the trial of this kind, with its differences.
pub(super) async fn drop_trial(
    conn: &mut PgConnection,
    target: Target<'_>,
) -> Result<Option<Ended>, NotDone> {
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
    Ok(Some(Ended { version: ended.version, share: ended.share }))
}
