//! Replay of an order's decisions: the same component with the same configuration and request must
//! give the same output for the same fuel.

use std::sync::Arc;

use rampart_plugins::contract::{CallContext, PolicyKind};
use serde::Deserialize;
use serde_json::{Value, json};

use super::dry_run::LoadedVersion;
use super::dry_run::request::DryRunRequest;
use super::lifecycle::error::LifecycleError;
use super::lifecycle::target::Target;
use super::request::{PolicyRequest, open_payload};
use crate::Core;
use crate::platform::error::Error;
use rampart_types::ClientId;

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
}

/// Stored and replayed decisions of an order. A signature is verified with the partner's current
/// keys.
///
/// # Errors
/// When the database cannot be read, or a payload cannot be opened.
pub(crate) async fn replay(
    core: &Core,
    (client, slug): (ClientId, &str),
    decisions: &Value,
) -> Result<Value, LifecycleError> {
    let mut replayed = Vec::new();
    for stored in decisions.as_array().into_iter().flatten() {
        let Ok(decision) = Decision::deserialize(stored) else { continue };
        let Some(kind) = PolicyKind::from_name(&decision.kind) else { continue };
        let target = Target { actor: "", slug, client, kind, reason: None };
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
        let (Some(input), Some(now), Some(request_id)) = (&self.input, self.now, &self.request_id)
        else {
            return Ok(report(false, json!({"failure": "the question was not kept"})));
        };
        let request = stored_request(core, target, input)?;
        let loaded = LoadedVersion::find(core, target, Some(self.version)).await?;
        if loaded.digest() != self.digest {
            return Err(Error::broken("find the component that decided").into());
        }
        let context = CallContext {
            partner: target.slug.to_owned(),
            request_id: request_id.clone(),
            now,
            rehearsal: true,
            attributes: Vec::new(),
        };
        let _permit = core.policies.dry_run_permit().await?;
        let run = move || match &request {
            DryRunRequest::Fee(request) => call(&loaded, request, &context),
            DryRunRequest::MethodOrder(request) => call(&loaded, request, &context),
            DryRunRequest::Signature(request) => call(&loaded, request, &context),
        };
        let now = tokio::task::spawn_blocking(run)
            .await
            .map_err(|error| Error::internal("run a policy", error))?;
        let same = now["answer"].is_string()
            && now["answer"].as_str() == self.answer.as_deref()
            && now["fuel"] == self.fuel;
        Ok(report(same, now))
    }
}

fn stored_request(
    core: &Core,
    target: Target<'_>,
    input: &Value,
) -> Result<DryRunRequest, LifecycleError> {
    if target.kind == PolicyKind::Signature {
        let payload = open_payload(core, target.client, input.as_str().unwrap_or_default())?;
        return Ok(DryRunRequest::Signature(payload));
    }
    let catalogue = Arc::clone(&core.snapshots.current().catalogue);
    let read = DryRunRequest::read(target.kind, input.clone(), &catalogue);
    read.map_err(|_| Error::broken("read a stored request").into())
}

fn call<R: PolicyRequest>(loaded: &LoadedVersion, request: &R, context: &CallContext) -> Value {
    let Some(report) = loaded.call(request, context) else { return Value::Null };
    match report.outcome {
        Ok(output) => json!({
            "rule": R::rule(&output),
            "fuel": report.fuel,
            "answer": R::output_digest(&output),
            "decision": R::output_as_json(&output),
        }),
        Err(failure) => json!({
            "fuel": report.fuel,
            "failure": format!("{}: {}", failure.kind.as_str(), failure.message),
        }),
    }
}
