//! Comparisons: a version's outputs for recorded requests beside those of the active version. The
//! details have the form of a shadow run's differences, and no more of a request.

use std::sync::Arc;

use rampart_plugins::FailureKind;
use rampart_plugins::contract::CallContext;
use serde_json::{Value, json};

use super::{LoadedVersion, recorded};
use crate::Core;
use crate::platform::keyed_semaphore::KeyedPermit;
use crate::policies::evaluate::context::context_at;
use crate::policies::kinds::AnyRequest;
use crate::policies::lifecycle::error::LifecycleError;
use crate::policies::lifecycle::target::Target;
use rampart_types::ClientId;

/// The outputs of a version beside those of the active one.
#[derive(Debug)]
pub struct Comparison {
    /// The active version; `None` with the built-in rule, whose outputs are not compared.
    pub active: Option<i64>,
    /// By request, newest first.
    pub requests: Vec<ComparedRequest>,
}

/// One recorded request and both outputs.
#[derive(Debug)]
pub struct ComparedRequest {
    /// Comparison of both outputs.
    pub outcome: ComparedOutcome,
    /// `input`, `active` and `candidate`, as of a shadow run.
    pub detail: Value,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedOutcome {
    /// There is no active version.
    Uncompared,
    /// The outputs are equal.
    Same,
    /// They differ, or only the active version failed.
    Different,
    /// The version failed.
    Failed,
}

/// Runs a version and the active one on the recorded requests, at most 100.
///
/// # Errors
/// [`LifecycleError::NotFound`] without the version, [`LifecycleError::Conflict`] while nothing is
/// recorded or another comparison of this partner runs on this edge.
pub async fn compare(
    core: &Core,
    target: Target<'_>,
    version: i64,
) -> Result<Comparison, LifecycleError> {
    let busy = "another dry run of yours is under way: wait for its end";
    let staff_permit = core.policies.staff_dry_runs.try_acquire(target.client);
    let staff_permit = staff_permit.ok_or(LifecycleError::Conflict(busy))?;
    core.refresh().await?;
    let candidate = LoadedVersion::find(core, target, Some(version)).await?;
    let active = match LoadedVersion::find(core, target, None).await {
        Ok(active) => Some(active),
        Err(LifecycleError::NotFound(_)) => None,
        Err(error) => return Err(error),
    };
    let catalogue = Arc::clone(&core.snapshots.current().catalogue);
    let requests = recorded::requests(core, target, &catalogue).await?;
    let now = u32::try_from(core.clock.unix_seconds()).unwrap_or(u32::MAX);
    let active_version = active.as_ref().map(|active| active.version);
    let compared = ComparedVersions {
        partner: target.slug.to_owned(),
        kind: target.kind.as_str(),
        now,
        active,
        candidate,
        _permit: staff_permit,
    };
    let run = move |index: usize, request: AnyRequest| compared.compare(index, &request);
    let requests = core.policies.dry_runs.run_each(requests, run).await?;
    Ok(Comparison { active: active_version, requests })
}

/// The versions of a comparison, and the context of their calls.
struct ComparedVersions {
    partner: String,
    kind: &'static str,
    now: u32,
    active: Option<LoadedVersion>,
    candidate: LoadedVersion,
    /// Held until the last run ends, also when nobody waits for it any more.
    _permit: KeyedPermit<ClientId>,
}

impl ComparedVersions {
    /// Calls both versions with a request.
    fn compare(&self, index: usize, request: &AnyRequest) -> ComparedRequest {
        let context = context_at(&self.partner, self.now, &format!("{} {index}", self.kind));
        let active = self.active.as_ref().map(|active| output(active, request, &context));
        let (digest, candidate) = output(&self.candidate, request, &context);
        let outcome = match (&digest, &active) {
            (None, _) => ComparedOutcome::Failed,
            (Some(_), None) => ComparedOutcome::Uncompared,
            (digest, Some((of_active, _))) if digest == of_active => ComparedOutcome::Same,
            (Some(_), Some(_)) => ComparedOutcome::Different,
        };
        let active = active.map(|(_, json)| json);
        let detail =
            json!({"input": request.reported_input(), "active": active, "candidate": candidate});
        ComparedRequest { outcome, detail }
    }
}

/// The output with its digest, which a failure has none of.
fn output(
    version: &LoadedVersion,
    request: &AnyRequest,
    context: &CallContext,
) -> (Option<String>, Value) {
    let failure = |kind: FailureKind, message: &str| json!({"failure": {"cause": kind.as_str(), "message": message}});
    match version.call_recorded(request, context).map(|report| report.outcome) {
        Some(Ok(output)) => (Some(output.digest), output.json),
        Some(Err(failed)) => (None, failure(failed.kind, &failed.message)),
        None => (None, failure(FailureKind::Capacity, "it is of another kind")),
    }
}
