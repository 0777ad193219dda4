//! The report of a dry run: output, cost and log as JSON.

use rampart_plugins::contract::{CallContext, ConfigEntry, Level};
use rampart_plugins::{CallReport, KeyRing, LogLine, Policy};
use serde_json::{Map, Value, json};

use crate::policies::kinds::{AnyRequest, CallInputs, ReportedOutput};

/// Calls the policy: `{decision, failure, fuel, memoryBytes, log, logDropped}`, one of `decision` and
/// `failure` being null. `None` when the request is for another kind of policy.
///
/// Blocks: not for a serving thread.
pub(crate) fn call(
    policy: &Policy,
    context: &CallContext,
    config: &[ConfigEntry],
    request: &AnyRequest,
    keys: &KeyRing,
) -> Option<Map<String, Value>> {
    let inputs = CallInputs { context, config, keys };
    request.call(policy, inputs).map(as_json)
}

fn as_json(report: CallReport<ReportedOutput>) -> Map<String, Value> {
    let (decision, failure) = match report.outcome {
        Ok(output) => (output.json, Value::Null),
        Err(failure) => {
            let cause = failure.kind.as_str();
            (Value::Null, json!({"cause": cause, "message": failure.message}))
        }
    };
    let line = |line: LogLine| json!({"level": level(line.level), "text": line.text});
    let log: Vec<_> = report.log.into_iter().map(line).collect();
    Map::from_iter([
        ("decision".to_owned(), decision),
        ("failure".to_owned(), failure),
        ("fuel".to_owned(), report.fuel.into()),
        ("memoryBytes".to_owned(), report.memory_bytes.into()),
        ("log".to_owned(), log.into()),
        ("logDropped".to_owned(), report.log_dropped.into()),
    ])
}

/// A level's name.
pub(crate) const fn level(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
    }
}
