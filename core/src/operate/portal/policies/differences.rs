//! Requests with the outputs of two versions, as a shadow run and a dry run report them.

use maud::{Markup, html};
use serde_json::Value;

use crate::http::html::components::{Column, Tone, badge, table};
use crate::policies::dry_run::comparison::ComparedOutcome;

/// Members of an output that a policy fills from a short list of words, or that are redacted.
const BOUNDED: [&str; 3] = ["verdict", "reason", "failure"];

/// A table of details `{input, active, candidate}` with their outcomes.
pub(super) fn differences_table(caption: &str, rows: &[(ComparedOutcome, &Value)]) -> Markup {
    let columns = [
        Column::Text("Result"),
        Column::Text("Request"),
        Column::Text("Active version"),
        Column::Text("This version"),
    ];
    let row = |(outcome, detail): &(ComparedOutcome, &Value)| {
        vec![
            outcome_badge(*outcome),
            document(&detail["input"], "not shown: it may name a person"),
            document(&output(detail, "active"), "the built-in rule, or a failure"),
            document(&output(detail, "candidate"), "none"),
        ]
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    table(caption, &columns, &rows)
}

/// The outcome that a stored detail of a shadow run shows.
pub(super) fn outcome_of(detail: &Value) -> ComparedOutcome {
    match detail["candidate"].get("failure") {
        Some(_) => ComparedOutcome::Failed,
        None => ComparedOutcome::Different,
    }
}

fn outcome_badge(outcome: ComparedOutcome) -> Markup {
    match outcome {
        ComparedOutcome::Uncompared => badge(Tone::Neutral, "not compared"),
        ComparedOutcome::Same => badge(Tone::Good, "same"),
        ComparedOutcome::Different => badge(Tone::Warning, "different"),
        ComparedOutcome::Failed => badge(Tone::Bad, "failed"),
    }
}

/// An output as it is shown. Where the request may name a person, nothing is that the policy could
/// have copied from it.
fn output(detail: &Value, member: &str) -> Value {
    match (&detail["input"], &detail[member]) {
        (Value::Null, Value::Object(members)) => {
            let bounded = members.iter().filter(|(name, _)| BOUNDED.contains(&name.as_str()));
            Value::Object(bounded.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        (_, output) => output.clone(),
    }
}

fn document(value: &Value, without: &str) -> Markup {
    html! {
        @if value.is_null() { span.hint { (without) } } @else { pre tabindex="0" { (format!("{value:#}")) } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_output_beside_a_hidden_request_has_nothing_of_it() {
        let signed = json!({"verdict": "authentic", "signer": {"replayToken": "Ada"}});
        let detail = json!({"input": null, "active": null, "candidate": signed});
        assert_eq!(output(&detail, "candidate"), json!({"verdict": "authentic"}));
        assert_eq!(output(&detail, "active"), Value::Null);
        let detail = json!({"input": {"country": "DE"}, "candidate": {"rule": "tier-1"}});
        assert_eq!(output(&detail, "candidate"), json!({"rule": "tier-1"}));
    }
}
