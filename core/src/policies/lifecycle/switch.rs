//! Choice of the serving version. A change is one row lock and one commit; a request keeps the
//! snapshot it started with, so that none is lost.

use rampart_plugins::contract::PolicyKind;
use serde_json::{Value, json};

use super::audit::record_change;
use super::error::LifecycleError;
use super::store::{VersionSummary, delete_rollout, make_active, mark_served};
use super::target::Target;
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::platform::revision;
use crate::policies::signed_change;
use crate::policies::statement::ChangeStatement;
use crate::policies::{keys, manifest};

/// Makes a version the active one. A rollout of its kind ends.
pub async fn activate(
    core: &Core,
    target: Target<'_>,
    version: i64,
) -> Result<VersionSummary, LifecycleError> {
    let mut tx = core.db.begin().await?;
    let found = activate_in(core, &mut tx, target, version).await?;
    tx.commit().await?;
    core.serve_committed().await;
    Ok(found)
}

/// The same in a transaction of the caller, who serves it.
pub async fn activate_in(
    core: &Core,
    conn: &mut Connection,
    target: Target<'_>,
    version: i64,
) -> Result<VersionSummary, LifecycleError> {
    revision::client_changed(conn, target.client).await?;
    target.check_persons(conn).await?;
    let change = ChangeStatement {
        version: Some(version),
        percentage: Some(100),
        ..about(target, "policy.activate")
    };
    signed_change::check(core, conn, target, change).await?;
    let found = find_eligible(core, conn, target, version).await?;
    make_active(conn, target, version).await?;
    record_change(core, conn, target, "policy.activate", json!({ "version": version })).await?;
    Ok(found.summary)
}

/// Starts a canary: the version serves this percentage of the users, 1 to 99; the active version or
/// the built-in rule serves the others. A user served at one percentage is at every larger one.
pub async fn start_canary(
    core: &Core,
    target: Target<'_>,
    version: i64,
    percentage: i16,
) -> Result<VersionSummary, LifecycleError> {
    start_rollout(core, target, version, Some(percentage)).await
}

/// Starts a shadow run: the version gets the requests of the active one, its output is compared and
/// counted, and not used.
pub async fn start_shadow(
    core: &Core,
    target: Target<'_>,
    version: i64,
) -> Result<VersionSummary, LifecycleError> {
    start_rollout(core, target, version, None).await
}

/// A statement about the target's policy.
fn about(target: Target<'_>, action: &str) -> ChangeStatement {
    ChangeStatement {
        action: action.to_owned(),
        partner: Some(target.slug.to_owned()),
        kind: Some(target.kind.as_str().to_owned()),
        ..ChangeStatement::default()
    }
}

async fn start_rollout(
    core: &Core,
    target: Target<'_>,
    version: i64,
    canary_percentage: Option<i16>,
) -> Result<VersionSummary, LifecycleError> {
    let rollout_id = core.clock.uuid().map_err(Error::from)?;
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, target.client).await?;
    let signed_action =
        if canary_percentage.is_some() { "policy.activate" } else { "policy.shadow" };
    let change = ChangeStatement {
        version: Some(version),
        percentage: canary_percentage,
        ..about(target, signed_action)
    };
    signed_change::check(core, &mut tx, target, change).await?;
    let found = find_eligible(core, &mut tx, target, version).await?;
    if found.active {
        return Err(LifecycleError::Conflict("the version is the active one"));
    }
    let no_active = active_version(&mut tx, target).await?.is_none();
    if no_active && canary_percentage.is_none() {
        return Err(LifecycleError::Conflict("there is no active version to compare it with"));
    }
    if no_active && target.kind == PolicyKind::Signature {
        // Offers of one partner under two schemes at once would be of no use.
        return Err(LifecycleError::Conflict("there is no active version to share the users with"));
    }
    let ended = delete_rollout(&mut tx, target).await?;
    // In place of a canary, a shadow changes what is active too.
    if canary_percentage.or_else(|| ended?.canary_percentage).is_some() {
        target.check_persons(&mut tx).await?;
    }
    sqlx::query!(
        "insert into policy_trial (client_id, kind, trial_id, version, share, reason, \
             started_by, started_at) values ($1, $2, $3, $4, $5, $6, $7, $8)",
        target.client.uuid(),
        target.kind.as_str(),
        rollout_id,
        version,
        canary_percentage,
        target.reason,
        target.actor,
        core.clock.now(),
    )
    .execute(&mut *tx)
    .await?;
    if canary_percentage.is_some() {
        mark_served(&mut tx, target, version).await?;
    }
    let action = if canary_percentage.is_some() { "policy.share" } else { "policy.shadow" };
    let detail = json!({"version": version, "percentage": canary_percentage});
    record_change(core, &mut tx, target, action, detail).await?;
    tx.commit().await?;
    core.serve_committed().await;
    Ok(found.summary)
}

/// Ends a shadow run or a canary: the active version, or the built-in rule, serves everybody.
pub async fn end_rollout(core: &Core, target: Target<'_>) -> Result<(), LifecycleError> {
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, target.client).await?;
    target.check_persons(&mut tx).await?;
    signed_change::check(core, &mut tx, target, about(target, "policy.end-trial")).await?;
    let ended = delete_rollout(&mut tx, target).await?.ok_or(LifecycleError::NotFound("trial"))?;
    let detail = json!({"version": ended.version, "percentage": ended.canary_percentage});
    record_change(core, &mut tx, target, "policy.end-trial", detail).await?;
    tx.commit().await?;
    core.serve_committed().await;
    Ok(())
}

/// Rolls back one step: from a canary to the active version for everybody; otherwise to the version
/// that was active before the active one, or to the last one after a removal. The version rolled
/// back from is skipped from then on, so that the next step goes further. A rollout ends.
///
/// # Errors
/// When no earlier version may begin to serve; the active one, which a canary gives way to, always may.
pub async fn roll_back(core: &Core, target: Target<'_>) -> Result<VersionSummary, LifecycleError> {
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, target.client).await?;
    target.check_persons(&mut tx).await?;
    signed_change::check(core, &mut tx, target, about(target, "policy.rollback")).await?;
    let step = step_back(core, &mut tx, target).await?;
    delete_rollout(&mut tx, target).await?;
    if !step.is_from_canary {
        replace_active(&mut tx, target, step.to).await?;
    }
    let found = find(&mut tx, target, step.to).await?;
    let detail = json!({"from": step.from, "to": step.to});
    record_change(core, &mut tx, target, "policy.rollback", detail).await?;
    tx.commit().await?;
    core.serve_committed().await;
    Ok(found.summary)
}

/// The version that a rollback leads to by what is stored now; `None` where it is refused.
///
/// # Errors
/// When the database cannot be read.
pub async fn rollback_target(core: &Core, target: Target<'_>) -> Result<Option<i64>> {
    let mut conn = core.db.acquire().await?;
    match step_back(core, &mut conn, target).await {
        Ok(step) => Ok(Some(step.to)),
        Err(LifecycleError::Internal(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

/// The step that a rollback takes.
struct StepBack {
    /// The version that serves no more; `None` after a removal.
    from: Option<i64>,
    to: i64,
    /// True if `to` is the active version already, which a canary gives way to.
    is_from_canary: bool,
}

/// The step back from what serves now, without a lock.
///
/// # Errors
/// When no earlier version may begin to serve; the active one, which a canary gives way to, always may.
async fn step_back(
    core: &Core,
    conn: &mut Connection,
    target: Target<'_>,
) -> Result<StepBack, LifecycleError> {
    let canary = sqlx::query_scalar!(
        "select version from policy_trial \
         where client_id = $1 and kind = $2 and share is not null",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let active = active_version(conn, target).await?;
    match (canary, active) {
        // It serves already, and would serve on at the end of the canary.
        (Some(from), Some(to)) => Ok(StepBack { from: Some(from), to, is_from_canary: true }),
        (Some(_), None) => {
            let reason = "only the built-in rule is behind the trial: end it";
            Err(LifecycleError::Conflict(reason))
        }
        (None, from) => {
            let to = previous_version(core, conn, target).await?;
            Ok(StepBack { from, to, is_from_canary: false })
        }
    }
}

/// The version that was active before the active one, or the last one after a removal.
///
/// # Errors
/// [`LifecycleError::Conflict`] when there is none; those of [`check_eligible`].
async fn previous_version(
    core: &Core,
    conn: &mut Connection,
    target: Target<'_>,
) -> Result<i64, LifecycleError> {
    let previous = sqlx::query!(
        "select version, signed_with, info from policy_version \
         where client_id = $1 and kind = $2 and not active and not rolled_back \
             and activation < coalesce((select activation from policy_version \
                 where client_id = $1 and kind = $2 and active), $3) \
         order by activation desc limit 1",
        target.client.uuid(),
        target.kind.as_str(),
        i64::MAX,
    )
    .fetch_optional(&mut *conn)
    .await?
    .ok_or(LifecycleError::Conflict("there is no previous version"))?;
    check_eligible(core, conn, target, previous.signed_with.as_deref(), &previous.info).await?;
    Ok(previous.version)
}

/// Makes an earlier version the active one in place of the one that is rolled back from.
async fn replace_active(
    conn: &mut Connection,
    target: Target<'_>,
    version: i64,
) -> Result<(), LifecycleError> {
    sqlx::query!(
        "update policy_version set active = false, rolled_back = true \
         where client_id = $1 and kind = $2 and active",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update policy_version set active = true \
         where client_id = $1 and kind = $2 and version = $3",
        target.client.uuid(),
        target.kind.as_str(),
        version,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Goes back to the built-in rule. A rollout ends.
pub async fn remove(core: &Core, target: Target<'_>) -> Result<(), LifecycleError> {
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, target.client).await?;
    target.check_persons(&mut tx).await?;
    signed_change::check(core, &mut tx, target, about(target, "policy.remove")).await?;
    let ended = delete_rollout(&mut tx, target).await?;
    let active = sqlx::query_scalar!(
        "update policy_version set active = false \
         where client_id = $1 and kind = $2 and active returning version",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    let version = active
        .or(ended.map(|ended| ended.version))
        .ok_or(LifecycleError::NotFound("active policy"))?;
    record_change(core, &mut tx, target, "policy.remove", json!({ "version": version })).await?;
    tx.commit().await?;
    core.serve_committed().await;
    Ok(())
}

/// A stored version.
struct FoundVersion {
    summary: VersionSummary,
    active: bool,
    /// Fingerprint of the key that has signed it.
    signed_with: Option<String>,
    /// Its description of itself.
    info: Value,
}

/// The version, if it exists. Its row is locked: the deletion of those that never served comes before it,
/// or passes it over.
async fn find(
    conn: &mut Connection,
    target: Target<'_>,
    version: i64,
) -> Result<FoundVersion, LifecycleError> {
    let row = sqlx::query!(
        "select digest, size, active, signed_with, info from policy_version \
         where client_id = $1 and kind = $2 and version = $3 for no key update",
        target.client.uuid(),
        target.kind.as_str(),
        version,
    )
    .fetch_optional(conn)
    .await?
    .ok_or(LifecycleError::NotFound("version"))?;
    let kind = target.kind.as_str();
    let summary = VersionSummary { version, digest: row.digest, kind, size: row.size };
    let (signed_with, info) = (row.signed_with, row.info);
    Ok(FoundVersion { summary, active: row.active, signed_with, info })
}

/// The same, if it may begin to serve.
async fn find_eligible(
    core: &Core,
    conn: &mut Connection,
    target: Target<'_>,
    version: i64,
) -> Result<FoundVersion, LifecycleError> {
    let found = find(&mut *conn, target, version).await?;
    check_eligible(core, conn, target, found.signed_with.as_deref(), &found.info).await?;
    Ok(found)
}

/// Checks that a stored version may begin to serve: signed where it must be, and with the keys that it
/// names.
///
/// # Errors
/// Those of both checks.
async fn check_eligible(
    core: &Core,
    conn: &mut Connection,
    target: Target<'_>,
    signed_with: Option<&str>,
    info: &Value,
) -> Result<(), LifecycleError> {
    manifest::check_stored_signature(core, conn, target, signed_with).await?;
    keys::check_named(conn, target, info).await
}

async fn active_version(
    conn: &mut Connection,
    target: Target<'_>,
) -> Result<Option<i64>, LifecycleError> {
    let version = sqlx::query_scalar!(
        "select version from policy_version where client_id = $1 and kind = $2 and active",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(version)
}
