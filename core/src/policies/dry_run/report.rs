//! The report of a dry run: output, cost and log as JSON, redacted for a recorded request.

use rampart_plugins::contract::{CallContext, ConfigEntry, Level};
use rampart_plugins::{CallReport, Failure, KeyRing, LogLine, Policy};
use serde_json::{Map, Value, json};

use crate::policies::evaluate::redaction::{redacted, redacted_answer};
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

/// The report of a call with a recorded request, which may name a person: its words are redacted, and so is
/// the answer where the request is not shown.
pub(super) fn redacted_report(
    request: &AnyRequest,
    report: CallReport<ReportedOutput>,
) -> CallReport<ReportedOutput> {
    let is_hidden = request.reported_input().is_null();
    let outcome = match report.outcome {
        Ok(ReportedOutput { rule, digest, json }) => {
            let json = if is_hidden { redacted_answer(json) } else { json };
            Ok(ReportedOutput { rule, digest, json })
        }
        Err(Failure { kind, message }) => Err(Failure { kind, message: redacted(&message) }),
    };
    let line = |LogLine { level, text }: LogLine| LogLine { level, text: redacted(&text) };
    let log = report.log.into_iter().map(line).collect();
    CallReport { outcome, log, ..report }
}

/// The report as JSON, in the form of [`call`].
pub(super) fn as_json(report: CallReport<ReportedOutput>) -> Map<String, Value> {
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

#[cfg(test)]
mod tests {
    use rampart_plugins::FailureKind;
    use rampart_plugins::contract::PolicyKind;

    use super::*;
    use crate::policies::kinds;
    use crate::trading::catalogue::Catalogue;

    fn recorded(kind: PolicyKind, outcome: Result<ReportedOutput, Failure>) -> Map<String, Value> {
        let request = kinds::read(kind, kinds::ALONE, json!({}), &Catalogue::default()).unwrap();
        let log = vec![LogLine { level: Level::Warn, text: "of jo@example.com".to_owned() }];
        let report = CallReport { outcome, fuel: 1, memory_bytes: 2, log, log_dropped: 3 };
        as_json(redacted_report(&request, report))
    }

    #[test]
    fn a_report_about_a_recorded_request_names_nobody() {
        let whole = json!({"verdict": "authentic", "signer": {"replayToken": "Ada"}});
        let output = || ReportedOutput {
            rule: "authentic".to_owned(),
            digest: "00".to_owned(),
            json: whole.clone(),
        };
        let hidden = recorded(PolicyKind::Signature, Ok(output()));
        assert_eq!(hidden["decision"], json!({"verdict": "authentic"}));
        assert_eq!(hidden["log"], json!([{"level": "warn", "text": "of …"}]));
        assert_eq!((&hidden["fuel"], &hidden["logDropped"]), (&json!(1), &json!(3)));
        let shown = recorded(PolicyKind::Fee, Ok(output()));
        assert_eq!(shown["decision"], whole);
        let message = "internal: jo@example.com".to_owned();
        let failure = Failure { kind: FailureKind::Error, message };
        let failed = recorded(PolicyKind::Fee, Err(failure));
        assert_eq!(failed["failure"], json!({"cause": "error", "message": "internal: …"}));
    }
}
