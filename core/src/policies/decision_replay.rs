//! Replay of an order's decisions: the same component with the same configuration and request must
//! give the same output for the same fuel.

use rampart_plugins::contract::{CallContext, PolicyKind};
use serde::Deserialize;
use serde_json::{Value, json};

use super::dry_run::LoadedVersion;
use super::evaluate::context::Attributes;
use super::kinds::{self, AnyRequest};
use super::lifecycle::error::LifecycleError;
use super::lifecycle::target::Target;
use crate::Core;
use crate::tenancy::tenants::Tenant;

/// A stored decision of a policy. Records of the host, such as a clamped built-in fee, do not parse.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    kind: String,
    version: i64,
    digest: String,
    rule: String,
    fuel: u64,
    answer: Option<String>,
    now: Option<u32>,
    request_id: Option<String>,
    input: Option<Value>,
    #[serde(default)]
    attributes: Attributes,
}

/// Stored and replayed decisions of a tenant's order. A signature is verified with the tenant's
/// current keys; a payload that a master key has sealed which is gone is reported as a failure, and so is
/// a version that is gone, or another one by now.
///
/// # Errors
/// When the database cannot be read.
pub async fn replay(
    core: &Core,
    tenant: &Tenant,
    decisions: &Value,
) -> Result<Value, LifecycleError> {
    let mut replayed = Vec::new();
    for stored in decisions.as_array().into_iter().flatten() {
        let Ok(decision) = Decision::deserialize(stored) else { continue };
        let Some(kind) = PolicyKind::from_name(&decision.kind) else { continue };
        let (client, slug) = (tenant.id, &*tenant.slug);
        let target = Target {
            actor: "",
            slug,
            client,
            kind,
            reason: None,
            signed: None,
            is_approved: false,
            approval: None,
        };
        replayed.push(decision.replay(core, target).await?);
    }
    let same = replayed.iter().all(|decision| decision["same"] == true);
    Ok(json!({"same": same, "decisions": replayed}))
}

impl Decision {
    async fn replay(self, core: &Core, target: Target<'_>) -> Result<Value, LifecycleError> {
        let report = |same: bool, now: Value| {
            json!({
                "kind": self.kind,
                "version": self.version,
                "digest": self.digest,
                "same": same,
                "then": {"rule": self.rule, "fuel": self.fuel, "answer": self.answer},
                "now": now,
            })
        };
        let failure = |reason: &str| Ok(report(false, json!({"failure": reason})));
        let (Some(input), Some(now), Some(request_id)) = (&self.input, self.now, &self.request_id)
        else {
            return failure("the question was not kept");
        };
        let attributes = self.attributes.clone();
        let opened = kinds::read_stored(core, target.client, target.kind, input, attributes);
        let request = match opened {
            Ok(request) => request,
            Err(error) => {
                tracing::warn!(%error, partner = target.slug, "a recorded question does not open");
                return failure("the question does not open any more");
            }
        };
        let loaded = match LoadedVersion::find(core, target, Some(self.version)).await {
            Ok(loaded) if loaded.digest() == self.digest => loaded,
            Ok(_) => return failure("the version has another component now"),
            Err(LifecycleError::NotFound(_)) => return failure("the version is stored no more"),
            Err(LifecycleError::Invalid(reason)) => return failure(&reason),
            Err(error) => return Err(error),
        };
        let context = CallContext {
            partner: target.slug.to_owned(),
            request_id: request_id.clone(),
            now,
            rehearsal: false,
            attributes: Vec::new(),
        };
        let run = move || call(&loaded, &request, &context);
        let now = core.policies.dry_runs.run(run).await?;
        let same = now["answer"].is_string()
            && now["answer"].as_str() == self.answer.as_deref()
            && now["fuel"] == self.fuel;
        Ok(report(same, now))
    }
}

fn call(loaded: &LoadedVersion, request: &AnyRequest, context: &CallContext) -> Value {
    let Some(report) = loaded.call_recorded(request, context) else { return Value::Null };
    match report.outcome {
        Ok(output) => json!({
            "rule": output.rule,
            "fuel": report.fuel,
            "answer": output.digest,
            "decision": output.json,
        }),
        Err(failure) => json!({
            "fuel": report.fuel,
            "failure": format!("{}: {}", failure.kind.as_str(), failure.message),
        }),
    }
}
