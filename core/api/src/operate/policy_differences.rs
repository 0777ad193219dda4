//! Answers of a version of a policy beside those of the active version, field by field, as pages show
//! the details `{input, active, candidate}` of a shadow run and of a dry run.

use maud::{Markup, html};
use serde_json::Value;

use crate::http::html::components::{Column, dialog, empty_state, table};
use crate::policies::dry_run::comparison::ComparedOutcome;

/// A value within an answer or a request.
#[derive(PartialEq)]
struct Field<'a> {
    path: String,
    value: &'a Value,
}

/// The newest differences of a trial.
pub(super) fn differences(details: &[Value]) -> Markup {
    let outcome = |detail: &Value| match detail["candidate"].get("failure") {
        Some(_) => ComparedOutcome::Failed,
        None => ComparedOutcome::Different,
    };
    html! {
        @if details.is_empty() {
            (empty_state("No difference.", "Answers that differ are shown here, the newest 20."))
        }
        @for (number, detail) in (1_usize..).zip(details) {
            (comparison(number, outcome(detail), detail))
        }
    }
}

/// A table of the fields whose values differ, of all fields if none do, and the request.
pub(super) fn comparison(number: usize, outcome: ComparedOutcome, detail: &Value) -> Markup {
    let outcome = match outcome {
        ComparedOutcome::Uncompared => "not compared",
        ComparedOutcome::Same => "same",
        ComparedOutcome::Different => "different",
        ComparedOutcome::Failed => "failed",
    };
    let columns = ["Field", "Active version", "Tried version"].map(Column::Text);
    html! {
        (table(&format!("Request {number}: {outcome}"), &columns, &rows(detail)))
        @if detail["active"].is_null() {
            p.hint { "The active version has no answer: it failed, or there was none." }
        }
        (request(number, &detail["input"]))
    }
}

fn rows(detail: &Value) -> Vec<Vec<Markup>> {
    let (active, candidate) = (fields(detail, "active"), fields(detail, "candidate"));
    let added = candidate.iter().filter(|field| at(&active, &field.path).is_none());
    let paths = active.iter().chain(added).map(|field| field.path.as_str());
    let is_shown = |path: &&str| active == candidate || at(&active, path) != at(&candidate, path);
    let row = |path: &str| {
        vec![html! { code { (path) } }, shown(at(&active, path)), shown(at(&candidate, path))]
    };
    paths.filter(is_shown).map(row).collect()
}

/// The fields of an answer.
fn fields<'a>(detail: &'a Value, member: &str) -> Vec<Field<'a>> {
    let mut found = Vec::new();
    collect(String::new(), &detail[member], &mut found);
    found
}

/// Collects the values below a path.
fn collect<'a>(path: String, value: &'a Value, found: &mut Vec<Field<'a>>) {
    let below = |name: &str| match &*path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::Null => {}
        Value::Object(members) if !members.is_empty() => {
            members.iter().for_each(|(name, value)| collect(below(name), value, found));
        }
        Value::Array(elements) if !elements.is_empty() => {
            let elements = elements.iter().enumerate();
            elements.for_each(|(index, value)| collect(below(&index.to_string()), value, found));
        }
        _ => found.push(Field { path, value }),
    }
}

fn at<'a>(fields: &[Field<'a>], path: &str) -> Option<&'a Value> {
    fields.iter().find(|field| field.path == path).map(|field| field.value)
}

fn shown(value: Option<&Value>) -> Markup {
    match value {
        None => html! { span.hint { "–" } },
        Some(Value::String(text)) if !text.is_empty() => html! { (text) },
        Some(value) => html! { (value) },
    }
}

/// The request of a comparison, which is not kept where it may name a person.
fn request(number: usize, input: &Value) -> Markup {
    if input.is_null() {
        let hint = "Its request is not shown, nor its traces: it may name a person.";
        return html! { p.hint { (hint) } };
    }
    let mut fields = Vec::new();
    collect(String::new(), input, &mut fields);
    let members = html! {
        dl { @for field in &fields { dt { (field.path) } dd { (shown(Some(field.value))) } } }
    };
    dialog(&format!("Input of request {number}"), &members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The cells of a detail's rows.
    fn told(detail: &Value) -> Vec<[String; 3]> {
        let text = |cell: Markup| cell.into_string().replace("<span class=\"hint\">–</span>", "–");
        let cells = |row: Vec<Markup>| row.into_iter().map(text).collect::<Vec<_>>();
        rows(detail).into_iter().map(|row| cells(row).try_into().unwrap()).collect()
    }

    #[test]
    fn only_fields_that_differ_are_told() {
        let active = json!({"lines": [{"code": "a", "charge": {"rate": 1}}], "rule": "r"});
        let lines = json!([{"code": "a", "charge": {"rate": 2}}, {"code": "b", "charge": null}]);
        let other = json!({"lines": lines, "rule": "r"});
        let detail = json!({"input": {}, "active": active, "candidate": other});
        let rate = ["<code>lines.0.charge.rate</code>", "1", "2"];
        assert_eq!(told(&detail), [rate, ["<code>lines.1.code</code>", "–", "b"]]);
        let empty = json!({"rule": "", "lines": []});
        let detail = json!({"input": {}, "active": null, "candidate": empty});
        let rule = ["<code>rule</code>", "–", "&quot;&quot;"];
        assert_eq!(told(&detail), [rule, ["<code>lines</code>", "–", "[]"]]);
        let detail = json!({"input": {}, "active": {"rule": "r"}, "candidate": {"rule": "r"}});
        assert_eq!(told(&detail), [["<code>rule</code>", "r", "r"]], "nothing differs");
    }

    #[test]
    fn an_answer_is_shown_beside_a_hidden_request() {
        let signed = json!({"verdict": "authentic"});
        let failure = json!({"failure": {"cause": "trap", "message": "<unreachable>"}});
        let detail = json!({"input": null, "active": signed, "candidate": failure});
        let page = differences(&[detail]).into_string();
        for part in [
            "Request 1: failed",
            "<code>verdict</code></td><td>authentic</td>",
            "<code>failure.cause</code></td><td><span class=\"hint\">–</span></td><td>trap</td>",
            "&lt;unreachable&gt;",
            "it may name a person",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
