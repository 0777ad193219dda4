//! What a policy answers, as JSON, with what the answer cost.

use rampart_plugins::contract::{CallContext, ConfigEntry, Level};
use rampart_plugins::{CallClass, CallReport, KeyRing, LogLine, Policy};
use serde_json::{Map, Value, json};

use super::question::Question;
use crate::policies::ask::{Ask, Told};

/// Asks the policy: `{decision, failure, fuel, memoryBytes, log, logDropped}`, with a null in the
/// place of `decision` or `failure`. `None` when the question is for another kind of policy.
///
/// Blocks: not for a serving thread.
pub(in crate::policies) fn ask(
    policy: &Policy,
    context: &CallContext,
    config: &[ConfigEntry],
    question: &Question,
    keys: &KeyRing,
) -> Option<Map<String, Value>> {
    let told = Told { context, config, keys };
    match question {
        Question::Fee(question) => asked(policy, question, told),
        Question::MethodOrder(question) => asked(policy, question, told),
        Question::Signature(question) => asked(policy, question, told),
    }
}

fn asked<Q: Ask>(policy: &Policy, question: &Q, told: Told<'_>) -> Option<Map<String, Value>> {
    question.ask(CallClass::Background, policy, told).map(written::<Q>)
}

fn written<Q: Ask>(called: CallReport<Q::Answer>) -> Map<String, Value> {
    let (decision, failure) = match called.outcome {
        Ok(answer) => (Q::answer_as_json(&answer), Value::Null),
        Err(failure) => {
            let cause = failure.kind.as_str();
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
