//! Uploads: admission of a component, or of another configuration, as a new version.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use rampart_plugins::Admitted;
use rampart_plugins::contract::{PolicyInfo, PolicyKind};
use serde_json::{Map, Value, json};
use sqlx::PgExecutor;

use super::audit::record_change;
use super::error::LifecycleError;
use super::store::{NewVersion, VersionSummary, make_active};
use super::target::Target;
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::platform::revision;
use crate::policies::evaluate::context::context_at;
use crate::policies::keys;
use crate::policies::manifest::{self, Manifest, SignedManifest};
use crate::policies::runtime::configuration;

/// Settings of a version beside its component; those left out stay as they are.
#[derive(Debug, Default)]
pub struct VersionSettings {
    /// Configuration that each call is given.
    pub config: Option<Map<String, Value>>,
    /// True if a failure refuses the request.
    pub fail_closed: Option<bool>,
}

impl VersionSettings {
    /// Fills what is left out from the current version, if there is one.
    fn completed(&self, current: Option<&Active>) -> (Map<String, Value>, bool) {
        let config = || current.and_then(|current| current.config.as_object());
        let config = self.config.as_ref().or_else(config).cloned().unwrap_or_default();
        let fail_closed = current.is_some_and(|current| current.fail_closed);
        (config, self.fail_closed.unwrap_or(fail_closed))
    }
}

/// Admits a component and makes it the active version.
pub async fn push(
    core: &Core,
    target: Target<'_>,
    component: Bytes,
    settings: VersionSettings,
) -> Result<VersionSummary, LifecycleError> {
    manifest::check_unsigned_allowed(core, target).await?;
    let upload = Upload {
        component: component.into(),
        settings,
        current: active(&core.db, target).await?,
        is_of_current: false,
        manifest: None,
        activate: true,
    };
    upload.store(core, target, "policy.push").await
}

/// Gives the active component another configuration, as a new version.
pub async fn configure(
    core: &Core,
    target: Target<'_>,
    settings: VersionSettings,
) -> Result<VersionSummary, LifecycleError> {
    manifest::check_unsigned_allowed(core, target).await?;
    let current = active(&core.db, target).await?;
    let current = current.ok_or(LifecycleError::NotFound("active policy"))?;
    let component = stored_component(core, &current.digest).await?;
    let upload = Upload {
        component: component.ok_or(LifecycleError::NotFound("component"))?,
        settings,
        current: Some(current),
        is_of_current: true,
        manifest: None,
        activate: true,
    };
    upload.store(core, target, "policy.configure").await
}

/// Input of [`stage`].
#[derive(Debug)]
pub struct StageRequest {
    /// The component; without one, the stored one that the manifest names, or the active one.
    pub component: Option<Vec<u8>>,
    /// Settings of an unsigned upload; a manifest has its own.
    pub settings: VersionSettings,
    /// The manifest and its signature.
    pub signed: Option<SignedManifest>,
    /// True to activate the version at once.
    pub activate: bool,
}

/// Admits a component as a new version, inactive unless it is to be activated at once.
pub async fn stage(
    core: &Core,
    target: Target<'_>,
    request: StageRequest,
) -> Result<VersionSummary, LifecycleError> {
    let StageRequest { component, settings, signed, activate } = request;
    let current = active(&core.db, target).await?;
    let manifest = match signed {
        Some(signed) => {
            let manifest = signed.verify(core, target).await?;
            manifest.check_activation(activate)?;
            Some(manifest)
        }
        None => {
            manifest::check_unsigned_allowed(core, target).await?;
            None
        }
    };
    let digest = match &manifest {
        Some(manifest) => Some(manifest.digest.as_str()),
        None => current.as_ref().map(|current| current.digest.as_str()),
    };
    let is_of_current = component.is_none() && manifest.is_none();
    let component = match (component, digest) {
        (Some(component), _) => Some(component),
        (None, Some(digest)) => stored_component(core, digest).await?,
        (None, None) => None,
    };
    let component = component.ok_or_else(|| {
        LifecycleError::Invalid("component: there is none, and none is stored that is meant".into())
    })?;
    let settings = match &manifest {
        Some(Manifest { config, fail_closed, .. }) => {
            VersionSettings { config: Some(config.clone()), fail_closed: Some(*fail_closed) }
        }
        None => settings,
    };
    let upload = Upload { component, settings, current, is_of_current, manifest, activate };
    let action = if activate { "policy.push" } else { "policy.stage" };
    upload.store(core, target, action).await
}

/// The active version as stored.
struct Active {
    digest: String,
    config: Value,
    fail_closed: bool,
}

async fn active(executor: impl PgExecutor<'_>, target: Target<'_>) -> Result<Option<Active>> {
    let active = sqlx::query_as!(
        Active,
        "select digest, config, fail_closed from policy_version \
         where client_id = $1 and kind = $2 and active",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .fetch_optional(executor)
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

/// A requested version, not examined yet.
struct Upload {
    component: Vec<u8>,
    settings: VersionSettings,
    /// The version that was active when the upload began.
    current: Option<Active>,
    /// True if the component is that version's.
    is_of_current: bool,
    /// The manifest, if signed; its signature is verified.
    manifest: Option<Manifest>,
    activate: bool,
}

impl Upload {
    /// Examines the component with its configuration, and stores what passes.
    async fn store(
        mut self,
        core: &Core,
        target: Target<'_>,
        action: &'static str,
    ) -> Result<VersionSummary, LifecycleError> {
        let (config, fail_closed) = self.settings.completed(self.current.as_ref());
        if fail_closed && target.kind == PolicyKind::MethodOrder {
            let reason =
                "failClosed: a method-order policy always falls back to the built-in order";
            return Err(LifecycleError::Invalid(reason.to_owned()));
        }
        let component = mem::take(&mut self.component);
        let (admitted, component) = admit(core, target, component, config.clone()).await?;
        if self.manifest.as_ref().is_some_and(|manifest| manifest.digest != admitted.digest) {
            return Err(LifecycleError::Invalid(
                "manifest: its digest is not the component's".to_owned(),
            ));
        }
        let mut tx = core.db.begin().await?;
        sqlx::query!(
            "insert into policy_component (digest, component, created_at) values ($1, $2, $3) \
             on conflict (digest) do update set created_at = excluded.created_at",
            admitted.digest,
            &*component,
            core.clock.now(),
        )
        .execute(&mut *tx)
        .await?;
        // The row lock of the revision serializes concurrent pushes from here on.
        revision::client_changed(&mut tx, target.client).await?;
        self.check_current(&mut tx, target, &admitted.digest).await?;
        match &self.manifest {
            // Its key may have been removed during the examination.
            Some(Manifest { fingerprint, .. }) => {
                manifest::check_stored_signature(core, &mut tx, target, Some(fingerprint)).await?;
            }
            None => manifest::check_unsigned_allowed_in(core, &mut tx, target).await?,
        }
        let version = NewVersion {
            info: configuration::info_as_json(&admitted.info),
            config: config.into(),
            digest: &admitted.digest,
            fail_closed,
            manifest: self.manifest.as_ref(),
            size_bytes: component.len(),
            fuel: admitted.fuel,
        };
        let stored = version.insert(core, &mut tx, target).await?;
        if self.activate {
            target.check_persons(&mut tx).await?;
            let info = configuration::info_as_json(&admitted.info);
            keys::check_named(&mut tx, target, &info).await?;
            make_active(&mut tx, target, stored.version).await?;
        }
        let detail = json!({
            "version": stored.version,
            "digest": stored.digest,
            "failClosed": fail_closed,
            "fuel": admitted.fuel,
            "signedBy": self.manifest.as_ref().map(|manifest| manifest.signer.as_str()),
        });
        record_change(core, &mut tx, target, action, detail).await?;
        tx.commit().await?;
        // Held until the reload has found it, so that it is not compiled again. The code of a version that
        // serves nobody yet would only take the place of another's.
        let slot = self.activate.then(|| core.policies.admitted(admitted.policy));
        core.serve_committed().await;
        drop(slot);
        Ok(stored)
    }

    /// Checks that the active version still gives the upload what it gave at the beginning: the settings
    /// that are left out, and the component of this digest where that is its own.
    async fn check_current(
        &self,
        conn: &mut Connection,
        target: Target<'_>,
        digest: &str,
    ) -> Result<(), LifecycleError> {
        let current = active(conn, target).await?;
        let is_other = |current: &Active| current.digest != digest;
        let completed = self.settings.completed(current.as_ref());
        if self.is_of_current && current.as_ref().is_none_or(is_other)
            || completed != self.settings.completed(self.current.as_ref())
        {
            let reason = "another version was activated meanwhile: see its settings, and try again";
            return Err(LifecycleError::Conflict(reason));
        }
        Ok(())
    }
}

/// Runs the admission off the serving threads.
async fn admit(
    core: &Core,
    target: Target<'_>,
    component: Vec<u8>,
    config: Map<String, Value>,
) -> Result<(Admitted, Arc<[u8]>), LifecycleError> {
    let engine = core.policies.engine.clone();
    let stored: Arc<[u8]> = component.as_slice().into();
    let kind = target.kind;
    let now = u32::try_from(core.clock.unix_seconds()).unwrap_or(u32::MAX);
    let seed = core.clock.uuid().map_err(Error::from)?.to_string();
    let context = context_at(target.slug, now, &seed);
    let examine = move || {
        let configure = move |info: &PolicyInfo| configuration::entries(&info.config, &config);
        engine.admit_with(kind, component, context, configure)
    };
    let admitted = core.policies.admissions.run(examine).await?;
    let admitted = admitted.map_err(LifecycleError::Rejected)?;
    Ok((admitted, stored))
}
