//! Dry runs: the active policy asked by an operator. Nothing is stored, and nothing of it counts
//! for the breaker or the metrics of live calls.

mod question;

use std::time::Duration;

use rampart_plugins::contract::{CallContext, FeeKind, Level, Verdict};
use rampart_plugins::{Called, Charge, FeeSchedule, Policy, Ranking};
use serde_json::{Map, Value, json};

use self::question::Question;
use super::lifecycle::{NotDone, Target};
use super::{keys, signature};
use crate::Core;
use crate::error::{Error, Result};
use crate::types::JsonDecimal;

/// What the policy decides for `input`, with its cost and its log; a malfunction is an answer too.
/// Members that `input` leaves out take ordinary values.
pub(crate) async fn dry_run(
    core: &Core,
    target: Target<'_>,
    input: Value,
) -> Result<Value, NotDone> {
    core.refresh().await?;
    let snapshot = core.snapshots.current();
    let tenant = snapshot.tenants.get(&target.client).ok_or(NotDone::Missing("partner"))?;
    let active = tenant.policies.get(target.kind).ok_or(NotDone::Missing("active policy"))?;
    let policy = active.policy().ok_or(NotDone::Missing("compiled policy on this edge"))?;
    let question = Question::read(target.kind, input, &snapshot.catalogue)
        .map_err(|problem| NotDone::Unfit(format!("input: {problem}")))?;
    let context = CallContext {
        partner: target.slug.to_owned(),
        request_id: core.clock.uuid().map_err(Error::from)?.to_string(),
        now: u32::try_from(core.clock.unix_seconds()).unwrap_or(u32::MAX),
        rehearsal: true,
        attributes: Vec::new(),
    };
    let (policy, config) = (policy.clone(), active.config.clone());
    let (keys, clock) = (tenant.policies.verification_keys.clone(), core.clock.clone());
    let run = move || {
        let started = clock.monotonic_ns();
        let answer = match (&policy, &question) {
            (Policy::Fee(policy), Question::Fee(request)) => {
                Some(written(policy.price(&context, &config, request), fees))
            }
            (Policy::MethodOrder(policy), Question::MethodOrder(request)) => {
                Some(written(policy.rank(&context, &config, request), order))
            }
            (Policy::Signature(policy), Question::Signature(payload)) => {
                Some(written(policy.verify(&context, &config, payload, &keys), verdict))
            }
            _ => None,
        };
        (answer, Duration::from_nanos(clock.monotonic_ns().saturating_sub(started)))
    };
    let (answer, took) = tokio::task::spawn_blocking(run)
        .await
        .map_err(|error| Error::internal("run a policy", error))?;
    let mut answer = answer.ok_or_else(|| Error::broken("ask a policy of its own kind"))?;
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    answer.insert("time".into(), json!({ "microseconds": micros }));
    answer.insert("version".into(), active.version.into());
    answer.insert("digest".into(), active.digest().into());
    Ok(Value::Object(answer))
}

fn written<T>(called: Called<T>, write: impl FnOnce(T) -> Value) -> Map<String, Value> {
    let (decision, failure) = match called.outcome {
        Ok(answer) => (write(answer), Value::Null),
        Err(failure) => {
            let cause = failure.cause.as_str();
            (Value::Null, json!({"cause": cause, "message": failure.message}))
        }
    };
    let line =
        |line: rampart_plugins::LogLine| json!({"level": level(line.level), "text": line.text});
    let log: Vec<_> = called.log.into_iter().map(line).collect();
    Map::from_iter([
        ("decision".to_owned(), decision),
        ("failure".to_owned(), failure),
        ("fuel".to_owned(), called.fuel.into()),
        ("memoryBytes".to_owned(), called.memory_bytes.into()),
        ("log".to_owned(), log.into()),
        ("logDropped".to_owned(), called.log_dropped.into()),
    ])
}

const fn level(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
    }
}

fn fees(schedule: FeeSchedule) -> Value {
    let charge = |charge: Charge| match charge {
        Charge::Flat(amount) => json!({ "flat": JsonDecimal(amount) }),
        Charge::Rate { ppm, at_least, at_most } => json!({
            "rate": ppm,
            "atLeast": at_least.map(JsonDecimal),
            "atMost": at_most.map(JsonDecimal),
        }),
    };
    let kind = |kind| match kind {
        FeeKind::Partner => "partner",
        FeeKind::PaymentMethod => "payment-method",
    };
    let lines = schedule.lines.into_iter().map(
        |line| json!({"kind": kind(line.kind), "code": line.code, "charge": charge(line.charge)}),
    );
    json!({
        "lines": lines.collect::<Vec<_>>(),
        "spread": schedule.spread_ppm,
        "rule": schedule.rule,
    })
}

fn order(ranking: Ranking) -> Value {
    let shown = ranking.shown.into_iter().map(|p| json!({"id": p.id, "badge": p.badge}));
    json!({"shown": shown.collect::<Vec<_>>(), "rule": ranking.rule})
}

/// The window of time and the reuse of the token are not judged: both belong to a live request.
fn verdict(verdict: Verdict) -> Value {
    match verdict {
        Verdict::Rejected(rejection) => json!({
            "verdict": "rejected",
            "reason": signature::rejection_name(rejection),
        }),
        Verdict::Authentic(signer) => json!({
            "verdict": "authentic",
            "signer": {
                "key": signer.key,
                "algorithm": keys::algorithm_name(signer.algorithm),
                "signedAt": signer.signed_at,
                "replayToken": signer.replay_token,
            },
        }),
    }
}
