//! What operators do with a partner's policy. Whatever is refused has changed nothing; whatever is
//! done is audited and seen by every edge within a second.

use std::sync::Arc;

use bytes::Bytes;
use rampart_plugins::Admitted;
use rampart_plugins::contract::PolicyKind;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sqlx::PgConnection;

use super::configuration;
use crate::Core;
use crate::audit::{self, Entry};
use crate::changes;
use crate::error::{Error, Result};
use crate::types::ClientId;

/// One kind of policy of one partner, and who wants something of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) actor: &'a str,
    pub(crate) slug: &'a str,
    pub(crate) client: ClientId,
    pub(crate) kind: PolicyKind,
}

/// The version that is active now.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Activated {
    version: i64,
    digest: String,
    kind: &'static str,
    size: i64,
}

/// Why nothing was done.
#[derive(Debug)]
pub(crate) enum NotDone {
    /// The component, or what was said about it, does not fit; the reason for the operator.
    Unfit(String),
    /// There is nothing to do it to.
    Missing(&'static str),
    /// The state forbids it.
    Conflict(&'static str),
    /// Our own fault.
    Failed(Error),
}

impl From<Error> for NotDone {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<sqlx::Error> for NotDone {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// What an operator sets beside the component; what is left out stays as it is.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) config: Option<Map<String, Value>>,
    pub(crate) fail_closed: Option<bool>,
}

/// Admits a component and makes it the active version.
pub(crate) async fn push(
    core: &Core,
    target: Target<'_>,
    component: Bytes,
    settings: Settings,
) -> Result<Activated, NotDone> {
    let (config, fail_closed) = match active(core, target).await? {
        Some(now) => now.updated(settings),
        None => (settings.config.unwrap_or_default(), settings.fail_closed.unwrap_or(false)),
    };
    activate(core, target, component.into(), config, fail_closed, "policy.push").await
}

/// Gives the active component another configuration, as a new version.
pub(crate) async fn configure(
    core: &Core,
    target: Target<'_>,
    settings: Settings,
) -> Result<Activated, NotDone> {
    let now = active(core, target).await?.ok_or(NotDone::Missing("active policy"))?;
    let component =
        sqlx::query_scalar!("select component from policy_component where digest = $1", now.digest)
            .fetch_one(&core.db)
            .await?;
    let (config, fail_closed) = now.updated(settings);
    activate(core, target, component, config, fail_closed, "policy.configure").await
}

/// Goes back to the version before the active one, or to the last one after a removal. The version
/// that is left is nobody's previous one any more: the next step back goes further.
pub(crate) async fn roll_back(core: &Core, target: Target<'_>) -> Result<Activated, NotDone> {
    let mut tx = core.db.begin().await?;
    changes::client_changed(&mut tx, target.client).await?;
    let left = sqlx::query_scalar!(
        "update policy_version set active = false, rolled_back = true \
         where client_id = $1 and kind = $2 and active returning version",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    let row = sqlx::query!(
        "update policy_version set active = true \
         where client_id = $1 and kind = $2 and version = \
             (select max(version) from policy_version where client_id = $1 and kind = $2 \
              and not rolled_back and version < $3) \
         returning version, digest, size",
        target.client.uuid(),
        target.kind.as_str(),
        left.unwrap_or(i64::MAX),
    )
    .fetch_optional(&mut *tx)
    .await?
    .ok_or(NotDone::Conflict("there is no previous version"))?;
    let kind = target.kind.as_str();
    let detail = json!({"kind": kind, "from": left, "to": row.version});
    audited(core, &mut tx, target, "policy.rollback", detail).await?;
    tx.commit().await?;
    core.refresh().await?;
    Ok(Activated { version: row.version, digest: row.digest, kind, size: row.size })
}

/// Goes back to the built-in rule.
pub(crate) async fn remove(core: &Core, target: Target<'_>) -> Result<(), NotDone> {
    let mut tx = core.db.begin().await?;
    changes::client_changed(&mut tx, target.client).await?;
    let version = sqlx::query_scalar!(
        "update policy_version set active = false \
         where client_id = $1 and kind = $2 and active returning version",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .fetch_optional(&mut *tx)
    .await?
    .ok_or(NotDone::Missing("active policy"))?;
    let detail = json!({"kind": target.kind.as_str(), "version": version});
    audited(core, &mut tx, target, "policy.remove", detail).await?;
    tx.commit().await?;
    core.refresh().await?;
    Ok(())
}

/// The active version as stored.
struct Active {
    digest: String,
    config: Value,
    fail_closed: bool,
}

impl Active {
    fn updated(&self, settings: Settings) -> (Map<String, Value>, bool) {
        let kept = || self.config.as_object().cloned().unwrap_or_default();
        let fail_closed = settings.fail_closed.unwrap_or(self.fail_closed);
        (settings.config.unwrap_or_else(kept), fail_closed)
    }
}

async fn active(core: &Core, target: Target<'_>) -> Result<Option<Active>> {
    let active = sqlx::query_as!(
        Active,
        "select digest, config, fail_closed from policy_version \
         where client_id = $1 and kind = $2 and active",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .fetch_optional(&core.db)
    .await?;
    Ok(active)
}

/// Examines the component with its configuration, and stores and activates what passes.
async fn activate(
    core: &Core,
    target: Target<'_>,
    component: Vec<u8>,
    config: Map<String, Value>,
    fail_closed: bool,
    action: &'static str,
) -> Result<Activated, NotDone> {
    if fail_closed && target.kind == PolicyKind::MethodOrder {
        let reason = "failClosed: a method-order policy always falls back to the built-in order";
        return Err(NotDone::Unfit(reason.to_owned()));
    }
    let (admitted, component) = admit(core, target.kind, component, config.clone()).await?;
    let (info, digest) = (configuration::info_as_json(&admitted.info), admitted.digest);
    let mut tx = core.db.begin().await?;
    sqlx::query!(
        "insert into policy_component (digest, component, created_at) values ($1, $2, $3) \
         on conflict (digest) do nothing",
        digest,
        &*component,
        core.clock.now(),
    )
    .execute(&mut *tx)
    .await?;
    // From here on the counter's row lock makes two pushes at once follow each other.
    changes::client_changed(&mut tx, target.client).await?;
    let version = Version { info, config: config.into(), digest: &digest, fail_closed };
    let activated = version.insert(core, &mut tx, target, component.len()).await?;
    let detail = json!({
        "kind": activated.kind,
        "version": activated.version,
        "digest": digest,
        "failClosed": fail_closed,
        "fuel": admitted.fuel,
    });
    audited(core, &mut tx, target, action, detail).await?;
    tx.commit().await?;
    // Held until the reload has taken it, so that it is not compiled again.
    let slot = core.policies.admitted(admitted.policy);
    core.refresh().await?;
    drop(slot);
    Ok(activated)
}

/// Runs the admission off the serving threads.
async fn admit(
    core: &Core,
    kind: PolicyKind,
    component: Vec<u8>,
    config: Map<String, Value>,
) -> Result<(Admitted, Arc<[u8]>), NotDone> {
    let _place = core.policies.admission_place().await?;
    let engine = core.policies.engine.clone();
    let kept: Arc<[u8]> = component.as_slice().into();
    let examine = move || {
        engine
            .admit_with(kind, component, move |info| configuration::entries(&info.config, &config))
    };
    let admitted = tokio::task::spawn_blocking(examine)
        .await
        .map_err(|error| Error::internal("examine a component", error))?
        .map_err(|rejection| NotDone::Unfit(rejection.to_string()))?;
    Ok((admitted, kept))
}

/// A version to be.
struct Version<'a> {
    info: Value,
    config: Value,
    digest: &'a str,
    fail_closed: bool,
}

impl Version<'_> {
    /// Takes the next number and the place of the active version.
    async fn insert(
        self,
        core: &Core,
        conn: &mut PgConnection,
        target: Target<'_>,
        bytes: usize,
    ) -> Result<Activated> {
        let kind = target.kind.as_str();
        let size = i64::try_from(bytes).map_err(|e| Error::internal("measure a component", e))?;
        sqlx::query!(
            "update policy_version set active = false \
             where client_id = $1 and kind = $2 and active",
            target.client.uuid(),
            kind,
        )
        .execute(&mut *conn)
        .await?;
        let version = sqlx::query_scalar!(
            "insert into policy_version (client_id, kind, version, digest, size, info, config, \
                 fail_closed, active, created_by, created_at) \
             select $1, $2, coalesce(max(version), 0) + 1, $3, $4, $5, $6, $7, true, $8, $9 \
             from policy_version where client_id = $1 and kind = $2 \
             returning version",
            target.client.uuid(),
            kind,
            self.digest,
            size,
            self.info,
            self.config,
            self.fail_closed,
            target.actor,
            core.clock.now(),
        )
        .fetch_one(conn)
        .await?;
        Ok(Activated { version, digest: self.digest.to_owned(), kind, size })
    }
}

async fn audited(
    core: &Core,
    conn: &mut PgConnection,
    target: Target<'_>,
    action: &'static str,
    detail: Value,
) -> Result<()> {
    let entry = Entry { actor: target.actor, action, target: target.slug, detail };
    audit::record(conn, &core.clock, entry).await
}
