//! What operators do with a partner's policy. Whatever is refused has changed nothing; whatever is
//! done is audited with its reason and seen by every edge within a second.
//!
//! - here: uploads, which only add a version
//! - `store`: a version's row, and which one is active
//! - `switch`: which version serves whom: activate, share, shadow, roll back, remove

mod store;
mod switch;

use std::sync::Arc;

use bytes::Bytes;
use rampart_plugins::Admitted;
use rampart_plugins::contract::PolicyKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sqlx::PgConnection;

use self::store::Version;
pub(crate) use self::switch::{activate, end_trial, remove, roll_back, shadow, share};
use super::manifest;
use super::manifest::{Manifest, Signed};
use crate::Core;
use crate::platform::audit::{self, Entry};
use crate::platform::error::{Error, Result};
use crate::platform::revision;
use crate::policies::runtime::configuration;
use rampart_types::ClientId;

/// Longest reason, in characters.
pub(crate) const REASON_CHARS_MAX: usize = 500;

/// One kind of policy of one partner, and who wants something of it, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) actor: &'a str,
    pub(crate) slug: &'a str,
    pub(crate) client: ClientId,
    pub(crate) kind: PolicyKind,
    /// The operator's words, for the history; at most [`REASON_CHARS_MAX`].
    pub(crate) reason: Option<&'a str>,
}

/// A stored version of a policy.
#[derive(Debug, JsonSchema, PartialEq, Eq, Serialize)]
#[schemars(rename = "StoredVersion")]
pub struct Activated {
    version: i64,
    /// SHA-256 of the component, in hex.
    digest: String,
    /// `signature`, `fee` or `method-order`.
    kind: &'static str,
    /// Of the component, in bytes.
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
    manifest::check_unsigned(core, target).await?;
    let (config, fail_closed) = match active(core, target).await? {
        Some(now) => now.updated(settings),
        None => (settings.config.unwrap_or_default(), settings.fail_closed.unwrap_or(false)),
    };
    let (component, proof) = (component.into(), None);
    let upload = Upload { component, config, fail_closed, proof, activate: true };
    upload.store(core, target, "policy.push").await
}

/// Gives the active component another configuration, as a new version.
pub(crate) async fn configure(
    core: &Core,
    target: Target<'_>,
    settings: Settings,
) -> Result<Activated, NotDone> {
    manifest::check_unsigned(core, target).await?;
    let now = active(core, target).await?.ok_or(NotDone::Missing("active policy"))?;
    let component = stored_component(core, &now.digest).await?;
    let component = component.ok_or(NotDone::Missing("component"))?;
    let (config, fail_closed) = now.updated(settings);
    let upload = Upload { component, config, fail_closed, proof: None, activate: true };
    upload.store(core, target, "policy.configure").await
}

/// What [`stage`] is given.
#[derive(Debug)]
pub(crate) struct Staging {
    /// The component; without one, the stored one that the manifest names, or the active one.
    pub(crate) component: Option<Vec<u8>>,
    /// What an unsigned upload sets beside it; a manifest says this itself.
    pub(crate) settings: Settings,
    /// The manifest and its signature.
    pub(crate) signed: Option<Signed>,
    /// Whether it is the active version at once.
    pub(crate) activate: bool,
}

/// Admits a component as a new version, which serves nobody unless it is to be active at once.
pub(crate) async fn stage(
    core: &Core,
    target: Target<'_>,
    staging: Staging,
) -> Result<Activated, NotDone> {
    let Staging { component, settings, signed, activate } = staging;
    let now = active(core, target).await?;
    let proof = match signed {
        Some(signed) => Some(signed.proven(core, target).await?),
        None => {
            manifest::check_unsigned(core, target).await?;
            None
        }
    };
    let digest = match (&proof, &now) {
        (Some(manifest), _) => Some(manifest.digest.as_str()),
        (None, now) => now.as_ref().map(|now| now.digest.as_str()),
    };
    let component = match (component, digest) {
        (Some(component), _) => Some(component),
        (None, Some(digest)) => stored_component(core, digest).await?,
        (None, None) => None,
    };
    let component = component.ok_or_else(|| {
        NotDone::Unfit("component: there is none, and none is stored that is meant".into())
    })?;
    let (config, fail_closed) = match (&proof, now) {
        (Some(manifest), _) => (manifest.config.clone(), manifest.fail_closed),
        (None, Some(now)) => now.updated(settings),
        (None, None) => {
            (settings.config.unwrap_or_default(), settings.fail_closed.unwrap_or(false))
        }
    };
    let upload = Upload { component, config, fail_closed, proof, activate };
    let action = if activate { "policy.push" } else { "policy.stage" };
    upload.store(core, target, action).await
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

async fn stored_component(core: &Core, digest: &str) -> Result<Option<Vec<u8>>> {
    let component =
        sqlx::query_scalar!("select component from policy_component where digest = $1", digest)
            .fetch_optional(&core.db)
            .await?;
    Ok(component)
}

/// A version that was asked for, not examined yet.
struct Upload {
    component: Vec<u8>,
    config: Map<String, Value>,
    fail_closed: bool,
    /// The manifest whose signature was found good.
    proof: Option<Manifest>,
    activate: bool,
}

impl Upload {
    /// Examines the component with its configuration, and stores what passes.
    async fn store(
        self,
        core: &Core,
        target: Target<'_>,
        action: &'static str,
    ) -> Result<Activated, NotDone> {
        if self.fail_closed && target.kind == PolicyKind::MethodOrder {
            let reason =
                "failClosed: a method-order policy always falls back to the built-in order";
            return Err(NotDone::Unfit(reason.to_owned()));
        }
        let (admitted, component) =
            admit(core, target.kind, self.component, self.config.clone()).await?;
        if self.proof.as_ref().is_some_and(|manifest| manifest.digest != admitted.digest) {
            return Err(NotDone::Unfit("manifest: its digest is not the component's".to_owned()));
        }
        let mut tx = core.db.begin().await?;
        sqlx::query!(
            "insert into policy_component (digest, component, created_at) values ($1, $2, $3) \
             on conflict (digest) do nothing",
            admitted.digest,
            &*component,
            core.clock.now(),
        )
        .execute(&mut *tx)
        .await?;
        // From here on the counter's row lock makes two pushes at once follow each other.
        revision::client_changed(&mut tx, target.client).await?;
        let version = Version {
            info: configuration::info_as_json(&admitted.info),
            config: self.config.into(),
            digest: &admitted.digest,
            fail_closed: self.fail_closed,
            proof: self.proof.as_ref(),
            bytes: component.len(),
        };
        let stored = version.insert(core, &mut tx, target).await?;
        if self.activate {
            store::switch_to(&mut tx, target, stored.version).await?;
        }
        let detail = json!({
            "version": stored.version,
            "digest": stored.digest,
            "failClosed": self.fail_closed,
            "fuel": admitted.fuel,
            "signedBy": self.proof.as_ref().map(|manifest| manifest.signer.as_str()),
        });
        audited(core, &mut tx, target, action, detail).await?;
        tx.commit().await?;
        // Held until the reload has taken it, so that it is not compiled again.
        let slot = core.policies.admitted(admitted.policy);
        core.refresh().await?;
        drop(slot);
        Ok(stored)
    }
}

/// Runs the admission off the serving threads.
async fn admit(
    core: &Core,
    kind: PolicyKind,
    component: Vec<u8>,
    config: Map<String, Value>,
) -> Result<(Admitted, Arc<[u8]>), NotDone> {
    let _place = core.policies.admission_permit().await?;
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

/// Leaves the audit row of a change: `detail` with its kind, and with the reason if there is one.
async fn audited(
    core: &Core,
    conn: &mut PgConnection,
    target: Target<'_>,
    action: &'static str,
    mut detail: Value,
) -> Result<()> {
    if let Value::Object(members) = &mut detail {
        members.retain(|_, value| !value.is_null());
        members.insert("kind".to_owned(), target.kind.as_str().into());
        if let Some(reason) = target.reason {
            members.insert("reason".to_owned(), reason.into());
        }
    }
    let entry = Entry { actor: target.actor, action, target: target.slug, detail };
    audit::record(conn, &core.clock, entry).await
}
