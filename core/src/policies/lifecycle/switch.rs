//! Which version serves whom. A change is one row lock and one commit; requests go on with the
//! snapshot that they started with, so that none is lost.

use rampart_plugins::contract::PolicyKind;
use serde_json::json;
use sqlx::PgConnection;

use super::store::{drop_trial, switch_to};
use super::{Activated, NotDone, Target, audited};
use crate::Core;
use crate::platform::error::{Error, Result};
use crate::platform::revision;
use crate::policies::manifest;

/// Makes a version the active one. A trial of its kind ends.
pub(crate) async fn activate(
    core: &Core,
    target: Target<'_>,
    version: i64,
) -> Result<Activated, NotDone> {
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, target.client).await?;
    let found = find(core, &mut tx, target, version).await?;
    switch_to(&mut tx, target, version).await?;
    audited(core, &mut tx, target, "policy.activate", json!({ "version": version })).await?;
    tx.commit().await?;
    core.refresh().await?;
    Ok(found.answer)
}

/// Lets a version answer this share of the users, in percent from 1 to 99, and the active version,
/// or the built-in rule, the others. A user who is in at one share stays in at a larger one.
pub(crate) async fn share(
    core: &Core,
    target: Target<'_>,
    version: i64,
    percentage: i16,
) -> Result<Activated, NotDone> {
    begin_trial(core, target, version, Some(percentage)).await
}

/// Lets a version run in the shadow of the active one: on what that one is asked, its answers
/// compared and counted, and used for nothing.
pub(crate) async fn shadow(
    core: &Core,
    target: Target<'_>,
    version: i64,
) -> Result<Activated, NotDone> {
    begin_trial(core, target, version, None).await
}

async fn begin_trial(
    core: &Core,
    target: Target<'_>,
    version: i64,
    share: Option<i16>,
) -> Result<Activated, NotDone> {
    let trial_id = core.clock.uuid().map_err(Error::from)?;
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, target.client).await?;
    let found = find(core, &mut tx, target, version).await?;
    if found.active {
        return Err(NotDone::Conflict("the version is the active one"));
    }
    let beside_nothing = active_version(&mut tx, target).await?.is_none();
    if beside_nothing && share.is_none() {
        return Err(NotDone::Conflict("there is no active version to compare it with"));
    }
    if beside_nothing && target.kind == PolicyKind::Signature {
        // Half of a partner's offers under another scheme is nobody's wish.
        return Err(NotDone::Conflict("there is no active version to share the users with"));
    }
    drop_trial(&mut tx, target).await?;
    sqlx::query!(
        "insert into policy_trial (client_id, kind, trial_id, version, share, reason, \
             started_by, started_at) values ($1, $2, $3, $4, $5, $6, $7, $8)",
        target.client.uuid(),
        target.kind.as_str(),
        trial_id,
        version,
        share,
        target.reason,
        target.actor,
        core.clock.now(),
    )
    .execute(&mut *tx)
    .await?;
    let action = if share.is_some() { "policy.share" } else { "policy.shadow" };
    let detail = json!({"version": version, "percentage": share});
    audited(core, &mut tx, target, action, detail).await?;
    tx.commit().await?;
    core.refresh().await?;
    Ok(found.answer)
}

/// Ends a shadow run or a share; the active version, or the built-in rule, serves everybody.
pub(crate) async fn end_trial(core: &Core, target: Target<'_>) -> Result<(), NotDone> {
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, target.client).await?;
    let ended = drop_trial(&mut tx, target).await?.ok_or(NotDone::Missing("trial"))?;
    let detail = json!({"version": ended.version, "percentage": ended.share});
    audited(core, &mut tx, target, "policy.end-trial", detail).await?;
    tx.commit().await?;
    core.refresh().await?;
    Ok(())
}

/// One step back. From a share, to the active version for everybody. Otherwise to the version that
/// was active before the active one, or to the last one after a removal; the version that is left
/// is nobody's previous one any more, so that the next step back goes further. A trial ends.
pub(crate) async fn roll_back(core: &Core, target: Target<'_>) -> Result<Activated, NotDone> {
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, target.client).await?;
    let ended = drop_trial(&mut tx, target).await?;
    let shared = ended.filter(|ended| ended.share.is_some()).map(|ended| ended.version);
    let active = active_version(&mut tx, target).await?;
    let (from, to) = match (shared, active) {
        (Some(shared), Some(active)) => (Some(shared), active),
        (Some(_), None) => {
            let reason = "only the built-in rule is behind the trial: end it";
            return Err(NotDone::Conflict(reason));
        }
        (_, active) => (active, previous(&mut tx, target).await?),
    };
    let found = find(core, &mut tx, target, to).await?;
    let detail = json!({"from": from, "to": to});
    audited(core, &mut tx, target, "policy.rollback", detail).await?;
    tx.commit().await?;
    core.refresh().await?;
    Ok(found.answer)
}

/// Puts the version before the active one in its place.
async fn previous(conn: &mut PgConnection, target: Target<'_>) -> Result<i64, NotDone> {
    let left = sqlx::query_scalar!(
        "update policy_version set active = false, rolled_back = true \
         where client_id = $1 and kind = $2 and active returning activation",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    sqlx::query_scalar!(
        "update policy_version set active = true \
         where client_id = $1 and kind = $2 and activation = \
             (select max(activation) from policy_version where client_id = $1 and kind = $2 \
              and not rolled_back and activation < $3) \
         returning version",
        target.client.uuid(),
        target.kind.as_str(),
        left.flatten().unwrap_or(i64::MAX),
    )
    .fetch_optional(conn)
    .await?
    .ok_or(NotDone::Conflict("there is no previous version"))
}

/// Goes back to the built-in rule. A trial ends.
pub(crate) async fn remove(core: &Core, target: Target<'_>) -> Result<(), NotDone> {
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, target.client).await?;
    let ended = drop_trial(&mut tx, target).await?;
    let active = sqlx::query_scalar!(
        "update policy_version set active = false \
         where client_id = $1 and kind = $2 and active returning version",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    let version =
        active.or(ended.map(|ended| ended.version)).ok_or(NotDone::Missing("active policy"))?;
    audited(core, &mut tx, target, "policy.remove", json!({ "version": version })).await?;
    tx.commit().await?;
    core.refresh().await?;
    Ok(())
}

/// A version that may serve.
struct Found {
    answer: Activated,
    active: bool,
}

/// The version, if it exists and is signed where it must be.
async fn find(
    core: &Core,
    conn: &mut PgConnection,
    target: Target<'_>,
    version: i64,
) -> Result<Found, NotDone> {
    let row = sqlx::query!(
        "select digest, size, active, signed_with from policy_version \
         where client_id = $1 and kind = $2 and version = $3",
        target.client.uuid(),
        target.kind.as_str(),
        version,
    )
    .fetch_optional(&mut *conn)
    .await?
    .ok_or(NotDone::Missing("version"))?;
    manifest::check_stored(core, conn, target, row.signed_with.as_deref()).await?;
    let kind = target.kind.as_str();
    let answer = Activated { version, digest: row.digest, kind, size: row.size };
    Ok(Found { answer, active: row.active })
}

async fn active_version(
    conn: &mut PgConnection,
    target: Target<'_>,
) -> Result<Option<i64>, NotDone> {
    let version = sqlx::query_scalar!(
        "select version from policy_version where client_id = $1 and kind = $2 and active",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(version)
}
