//! What a policy answers, as JSON, with what the answer cost.

use rampart_plugins::contract::{CallContext, ConfigEntry, FeeKind, Level, Verdict};
use rampart_plugins::{Called, Charge, FeeSchedule, KeyRing, LogLine, Policy, Ranking};
use serde_json::{Map, Value, json};

use super::question::Question;
use crate::policies::{keys, signature};
use crate::types::JsonDecimal;

/// Asks the policy: `{decision, failure, fuel, memoryBytes, log, logDropped}`, with a null in the
/// place of `decision` or `failure`. `None` when the question is for another kind of policy.
pub(in crate::policies) fn ask(
    policy: &Policy,
    context: &CallContext,
    config: &[ConfigEntry],
    question: &Question,
    keys: &KeyRing,
) -> Option<Map<String, Value>> {
    Some(match (policy, question) {
        (Policy::Fee(policy), Question::Fee(request)) => {
            written(policy.price(context, config, request), fees)
        }
        (Policy::MethodOrder(policy), Question::MethodOrder(request)) => {
            written(policy.rank(context, config, request), order)
        }
        (Policy::Signature(policy), Question::Signature(payload)) => {
            written(policy.verify(context, config, payload, keys), verdict)
        }
        _ => return None,
    })
}

fn written<T>(called: Called<T>, write: impl FnOnce(T) -> Value) -> Map<String, Value> {
    let (decision, failure) = match called.outcome {
        Ok(answer) => (write(answer), Value::Null),
        Err(failure) => {
            let cause = failure.cause.as_str();
            (Value::Null, json!({"cause": cause, "message": failure.message}))
        }
    };
    let line = |line: LogLine| json!({"level": level(line.level), "text": line.text});
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
