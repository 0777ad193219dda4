//! Evaluation of a policy on the serving thread: the version for this user, loaded at its first use,
//! behind its breaker, measured, and logged when it fails.

pub(super) mod context;
pub(super) mod redaction;

use std::sync::Arc;
use std::time::Duration;

use rampart_plugins::contract::{CallContext, PolicyKind};
use rampart_plugins::{CallClass, CallReport, Policy};
use serde_json::{Value, json};

use self::context::{Attributes, NS_PER_MS, live_context};
use self::redaction::redacted;
use super::kinds::{CallInputs, PolicyRequest};
use super::shadow;
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::clock::Clock;
use crate::platform::telemetry::{SpanKind, Spans, TraceScope};
use crate::policies::runtime::ActivePolicy;

/// Usable output of a policy.
pub(super) struct Evaluation<T> {
    pub(super) output: T,
    /// The audit record stored beside an offer, a quote or an order; enough to replay the call.
    pub(super) decision: Value,
}

/// A policy gave no usable output. It is counted and logged already.
pub(super) struct PolicyFailure {
    /// True if the operator wants the request refused in this case.
    pub(super) fail_closed: bool,
}

/// A version that serves, and its code, `None` when there is none now. The call has code of its own:
/// the slot's may be dropped for other components before it.
struct ServingVersion {
    version: Arc<ActivePolicy>,
    code: Option<Policy>,
}

impl ServingVersion {
    /// Loads the code unless it is loaded: cheap but at the first use.
    async fn load(core: &Core, policy: &Arc<ActivePolicy>) -> Self {
        let version = policy.serving();
        let now_ms = core.clock.monotonic_ms();
        let code = core.policies.ready(&version.slot, now_ms, &core.db).await;
        Self { version, code }
    }
}

/// Calls the version that serves `subject`; `None` when the built-in rule does.
///
/// When a canary fails, the active version is called.
pub(super) async fn evaluate<R: PolicyRequest>(
    core: &Core,
    client: &Client,
    subject: Option<&[u8]>,
    request: R,
    attributes: &Attributes,
) -> Result<Option<Evaluation<R::Output>>, PolicyFailure> {
    let policies = &client.tenant.policies;
    let (active, rollout) = (policies.get(R::KIND), policies.rollout(R::KIND));
    let mut fail_closed = false;
    if let Some(canary) = rollout.filter(|rollout| rollout.includes(client.id(), subject)) {
        let candidate = ServingVersion::load(core, &canary.policy).await;
        let context = live_context(core, client, attributes);
        let evaluation = call_version(core, client, &candidate, &request, &context, attributes);
        if evaluation.is_some() {
            return Ok(evaluation);
        }
        fail_closed = canary.policy.fail_closed;
        if active.is_none() {
            return Err(PolicyFailure { fail_closed });
        }
    }
    let Some(active) = active else { return Ok(None) };
    let serving = ServingVersion::load(core, active).await;
    let context = live_context(core, client, attributes);
    let evaluation = call_version(core, client, &serving, &request, &context, attributes);
    fail_closed |= active.fail_closed;
    if let Some(shadow) = rollout.filter(|rollout| rollout.canary_percentage.is_none()) {
        let output = evaluation.as_ref().map(|evaluation| evaluation.output.clone());
        shadow::queue_run(core, client, shadow, request, context, attributes, output);
    } else if R::SAMPLED {
        shadow::queue_sample(core, client, active, request, attributes);
    }
    evaluation.map(Some).ok_or(PolicyFailure { fail_closed })
}

/// Calls one version; `None` is a failure.
fn call_version<R: PolicyRequest>(
    core: &Core,
    client: &Client,
    ServingVersion { version: active, code }: &ServingVersion,
    request: &R,
    context: &CallContext,
    attributes: &Attributes,
) -> Option<Evaluation<R::Output>> {
    let Some(policy) = code else {
        count_outcome(core, client, active.kind, "load");
        return None;
    };
    let started = core.clock.monotonic_ns();
    let budget = &client.tenant.policies.fuel;
    if !budget.allows(started / NS_PER_MS, core.settings.policy.fuel_per_second_max) {
        count_outcome(core, client, active.kind, "budget");
        return None;
    }
    if !active.breaker.allows(started / NS_PER_MS) {
        count_outcome(core, client, active.kind, "breaker");
        return None;
    }
    let keys = &client.tenant.policies.verification_keys;
    let inputs = CallInputs { context, config: &active.config, keys };
    let kind = active.kind.as_str();
    let spans = Spans::begin(SpanKind::Internal, || format!("policy {kind}").into());
    let processor_ns = Clock::thread_ns();
    let report = request.call(CallClass::Live, policy, inputs)?;
    let CallReport { outcome, fuel, log, log_dropped, .. } = report;
    let ended = core.clock.monotonic_ns();
    budget.burn(fuel, Clock::thread_ns().saturating_sub(processor_ns));
    if !log.is_empty() || log_dropped > 0 {
        shadow::queue_log(core, client, active, log, log_dropped);
    }
    let meters = active.meters.get_or_init(|| core.metrics.policy_meters(kind));
    meters.cost(Duration::from_nanos(ended.saturating_sub(started)), fuel);
    let failure = outcome.as_ref().err().map(|failure| failure.kind);
    end_spans(spans, active, fuel, failure.map(|kind| kind.as_str()));
    let opened = active.breaker.record(started / NS_PER_MS, ended / NS_PER_MS, failure);
    match outcome {
        Ok(output) => {
            count_outcome(core, client, active.kind, R::outcome(&output));
            let input = request.stored_input(core, client);
            let decision = decision::<R>(active, context, attributes, &output, fuel, input);
            Some(Evaluation { output, decision })
        }
        Err(failure) => {
            count_outcome(core, client, active.kind, failure.kind.as_str());
            let now_ms = ended / NS_PER_MS;
            if let Some(suppressed) = active.log_throttle.try_log(now_ms, opened) {
                tracing::warn!(
                    request_id = &*client.request_id,
                    trace_id = TraceScope::current().trace_id(),
                    partner = &*client.tenant.slug,
                    kind,
                    version = active.version,
                    cause = failure.kind.as_str(),
                    message = redacted(&failure.message),
                    fuel,
                    breaker_opened = opened,
                    not_logged = suppressed,
                    "a policy call failed"
                );
            }
            None
        }
    }
}

/// Ends the spans of a call.
fn end_spans(mut spans: Spans, active: &ActivePolicy, fuel: u64, failure: Option<&'static str>) {
    spans.describe(|span| {
        span.set_number("rampart.policy.version", active.version);
        span.set_number("rampart.policy.fuel", fuel);
        if let Some(failure) = failure {
            span.fail(failure);
        }
    });
}

/// The audit record of a call: version, rule, cost, digest of the output and stored input.
fn decision<R: PolicyRequest>(
    active: &ActivePolicy,
    context: &CallContext,
    attributes: &Attributes,
    output: &R::Output,
    fuel: u64,
    input: Value,
) -> Value {
    if R::KIND == PolicyKind::MethodOrder {
        return Value::Null;
    }
    let mut decision = json!({
        "kind": active.kind.as_str(),
        "version": active.version,
        "digest": active.digest(),
        "rule": R::rule(output),
        "fuel": fuel,
        "answer": R::output_digest(output),
        "now": context.now,
        "requestId": context.request_id,
    });
    if !input.is_null() {
        decision["input"] = input;
    }
    if !attributes.is_empty() {
        decision["attributes"] = json!(attributes);
    }
    decision
}

/// Counts one outcome of a call.
pub(super) fn count_outcome(core: &Core, client: &Client, kind: PolicyKind, outcome: &'static str) {
    core.metrics.policy_call(kind.as_str(), &client.tenant.slug, outcome);
}
