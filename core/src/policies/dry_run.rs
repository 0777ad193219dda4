//! Dry runs: calls of a version by an operator. Nothing is stored, and neither the breaker nor the
//! metrics of live calls count them.
//!
//! `report` is the JSON form of a call, also of test vectors; `recorded`: recorded requests of live
//! calls; `comparison`: both versions on them.

pub mod comparison;
mod recorded;
pub(super) mod report;

use std::sync::Arc;
use std::time::Duration;

use rampart_plugins::contract::{CallContext, ConfigEntry};
use rampart_plugins::{CallReport, KeyRing, Policy};
use serde_json::{Map, Value, json};

use super::evaluate::context::context_at;
use super::kinds::{self, AnyRequest, CallInputs, ReportedOutput};
use super::lifecycle::error::LifecycleError;
use super::lifecycle::target::Target;
use crate::Core;
use crate::policies::runtime::TenantPolicies;
use crate::policies::runtime::configuration;

/// Most requests of one dry run.
pub(crate) const REQUESTS_MAX: usize = 1_000;

/// Input of a dry run.
#[derive(Debug)]
pub enum DryRunInput {
    /// One request, in the operator's JSON.
    Single(Value),
    /// Several requests, at most [`REQUESTS_MAX`].
    Batch(Vec<Value>),
    /// Recorded requests of live calls of this kind.
    Recorded,
}

/// Decisions of a version with their cost and log; a failure is reported too. `version` defaults to
/// the active one, `now` to the current time. Members missing from an input have defaults.
///
/// A single request gives one report, a batch a list, which is the same on every edge for the same
/// `now`.
pub async fn dry_run(
    core: &Core,
    target: Target<'_>,
    version: Option<i64>,
    now: Option<u32>,
    input: DryRunInput,
) -> Result<Value, LifecycleError> {
    core.refresh().await?;
    let loaded = LoadedVersion::find(core, target, version).await?;
    let catalogue = Arc::clone(&core.snapshots.current().catalogue);
    let read = |path: &str, input| {
        kinds::read(target.kind, path, input, &catalogue).map_err(LifecycleError::Invalid)
    };
    let is_recorded = matches!(input, DryRunInput::Recorded);
    let (is_single, requests) = match input {
        DryRunInput::Single(input) => (true, vec![read(kinds::ALONE, input)?]),
        DryRunInput::Batch(inputs) if inputs.len() > REQUESTS_MAX => {
            return Err(LifecycleError::Invalid(format!("inputs: at most {REQUESTS_MAX}")));
        }
        DryRunInput::Batch(inputs) => {
            let read = |(index, input)| read(&format!("inputs[{index}]"), input);
            (false, inputs.into_iter().enumerate().map(read).collect::<Result<_, _>>()?)
        }
        DryRunInput::Recorded => (false, recorded::requests(core, target, &catalogue).await?),
    };
    let (version, digest) = (loaded.version, loaded.digest().to_owned());
    let now = now.unwrap_or_else(|| u32::try_from(core.clock.unix_seconds()).unwrap_or(u32::MAX));
    let (partner, kind) = (target.slug.to_owned(), target.kind.as_str());
    let clock = core.clock.clone();
    let run = move |index: usize, request: AnyRequest| {
        let started = clock.monotonic_ns();
        let context = context_at(&partner, now, &format!("{kind} {index}"));
        let report = match is_recorded {
            true => loaded.call_recorded(&request, &context).map(report::as_json),
            false => loaded.report(&request, &context),
        };
        let report = report.unwrap_or_default();
        (report, Duration::from_nanos(clock.monotonic_ns().saturating_sub(started)))
    };
    let mut reports = core.policies.dry_runs.run_each(requests, run).await?;
    if !is_single {
        let decisions: Vec<_> = reports.into_iter().map(|(report, _)| report).collect();
        return Ok(json!({"version": version, "digest": digest, "decisions": decisions}));
    }
    let (mut report, elapsed) = reports.pop().unwrap_or_default();
    let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    report.insert("time".into(), json!({ "microseconds": micros }));
    report.insert("version".into(), version.into());
    report.insert("digest".into(), digest.into());
    Ok(Value::Object(report))
}

/// A version loaded for dry runs.
pub(super) struct LoadedVersion {
    version: i64,
    policy: Policy,
    config: Vec<ConfigEntry>,
    keys: KeyRing,
}

impl LoadedVersion {
    /// The version, compiled; defaults to the active one.
    ///
    /// # Errors
    /// [`LifecycleError::NotFound`] when there is none, [`LifecycleError::Invalid`] when it exceeds this edge's limits.
    pub(super) async fn find(
        core: &Core,
        target: Target<'_>,
        version: Option<i64>,
    ) -> Result<Self, LifecycleError> {
        let snapshot = core.snapshots.current();
        let tenant =
            snapshot.tenants.get(&target.client).ok_or(LifecycleError::NotFound("partner"))?;
        let TenantPolicies { verification_keys, .. } = &tenant.policies;
        let keys = verification_keys.clone();
        let in_use = match version {
            None => Some(
                tenant
                    .policies
                    .get(target.kind)
                    .ok_or(LifecycleError::NotFound("active policy"))?,
            ),
            Some(version) => tenant.policies.version(target.kind, version),
        };
        let Some(in_use) = in_use else {
            return Self::load(core, target, version.unwrap_or_default(), keys).await;
        };
        let digest = in_use.digest().to_owned();
        let policy = core.policies.compiled(target.kind, &digest, &core.db).await?;
        let policy = policy.map_err(LifecycleError::Invalid)?;
        let config = in_use.config.clone();
        Ok(Self { version: in_use.version, policy, config, keys })
    }

    /// An inactive version, compiled for the dry run.
    async fn load(
        core: &Core,
        target: Target<'_>,
        version: i64,
        keys: KeyRing,
    ) -> Result<Self, LifecycleError> {
        let row = sqlx::query!(
            "select digest, info, config from policy_version \
             where client_id = $1 and kind = $2 and version = $3",
            target.client.uuid(),
            target.kind.as_str(),
            version,
        )
        .fetch_optional(&core.db)
        .await?
        .ok_or(LifecycleError::NotFound("version"))?;
        let config = configuration::entries_of_stored(&row.info, &row.config)
            .map_err(LifecycleError::Invalid)?;
        let policy = core.policies.compiled_apart(target.kind, &row.digest, &core.db).await?;
        Ok(Self { version, policy: policy.map_err(LifecycleError::Invalid)?, config, keys })
    }

    /// Calls it with an operator's own request, for a report; `None` for a policy of another kind.
    fn report(&self, request: &AnyRequest, context: &CallContext) -> Option<Map<String, Value>> {
        report::call(&self.policy, context, &self.config, request, &self.keys)
    }

    /// Calls it with a recorded request, of which the report is redacted; `None` for a policy of another
    /// kind. Blocks: not for a serving thread.
    pub(super) fn call_recorded(
        &self,
        request: &AnyRequest,
        context: &CallContext,
    ) -> Option<CallReport<ReportedOutput>> {
        let inputs = CallInputs { context, config: &self.config, keys: &self.keys };
        let report = request.call(&self.policy, inputs)?;
        Some(report::redacted_report(request, report))
    }

    /// SHA-256 of its component, in lower-case hex.
    pub(super) fn digest(&self) -> &str {
        self.policy.digest()
    }
}
