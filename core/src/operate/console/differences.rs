//! Answers of a version on trial that differ from those of the active version, field by field.

use maud::{Markup, html};
use serde_json::Value;

use super::view::{plain, text};
use crate::http::html::components::{Column, dialog, table};

/// A field, with its values in the answers of the active version and of the one on trial.
struct Field {
    path: String,
    active: Value,
    candidate: Value,
}

/// The newest differences of a trial, a table each.
pub(super) fn differences(trial: &Value) -> Markup {
    let version = format!("Version {}", text(trial, "/version"));
    let columns = [Column::Text("Field"), Column::Text("Active version"), Column::Text(&version)];
    let found = trial["differences"].as_array().into_iter().flatten();
    html! {
        @for (number, difference) in (1_usize..).zip(found) {
            @let result = failure(difference).map_or("another answer", |_| "it failed");
            @let rows: Vec<_> = fields(difference).iter().map(row).collect();
            (table(&format!("Difference {number}: {result}"), &columns, &rows))
            @if difference["active"].is_null() {
                p.hint { "The active version has no answer: it failed, or there was none." }
            }
            (request(number, &difference["input"]))
        }
    }
}

fn failure(difference: &Value) -> Option<&Value> {
    difference["candidate"].get("failure")
}

/// The fields that differ; those of the failure alone, if the version on trial has failed.
fn fields(difference: &Value) -> Vec<Field> {
    let mut found = Vec::new();
    match failure(difference) {
        Some(failure) => compare("failure", &Value::Null, failure, &mut found),
        None => compare("", &difference["active"], &difference["candidate"], &mut found),
    }
    found
}

/// Collects the fields below a path whose values differ.
fn compare(path: &str, active: &Value, candidate: &Value, found: &mut Vec<Field>) {
    if active == candidate {
        return;
    }
    let mut parts = names(active);
    let others = names(candidate).into_iter().filter(|name| !parts.contains(name));
    let others: Vec<_> = others.collect();
    parts.extend(others);
    let is_whole = [active, candidate].iter().any(|value| !(value.is_null() || has_parts(value)));
    if is_whole || parts.is_empty() {
        let (active, candidate) = (active.clone(), candidate.clone());
        found.push(Field { path: path.to_owned(), active, candidate });
        return;
    }
    for name in parts {
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        compare(&below, part(active, &name), part(candidate, &name), found);
    }
}

fn has_parts(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// Names of an object's members, or positions of a list's elements.
fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => members.keys().cloned().collect(),
        Value::Array(elements) => (0..elements.len()).map(|index| index.to_string()).collect(),
        _ => Vec::new(),
    }
}

fn part<'a>(value: &'a Value, name: &str) -> &'a Value {
    let found = match value {
        Value::Array(elements) => name.parse().ok().and_then(|index: usize| elements.get(index)),
        other => other.get(name),
    };
    found.unwrap_or(&Value::Null)
}

fn row(field: &Field) -> Vec<Markup> {
    vec![html! { code { (field.path) } }, shown(&field.active), shown(&field.candidate)]
}

fn shown(value: &Value) -> Markup {
    let text = plain(value);
    html! {
        @if value.is_null() { span.hint { "–" } }
        @else if text.is_empty() { code { (value) } }
        @else { (text) }
    }
}

/// The request of a difference, which is not kept where it may name a person.
fn request(number: usize, input: &Value) -> Markup {
    if input.is_null() {
        return html! { p.hint { "Its request is not shown: it may name a person." } };
    }
    let mut fields = Vec::new();
    compare("", &Value::Null, input, &mut fields);
    let members = html! {
        dl {
            @for field in &fields { dt { (field.path) } dd { (shown(&field.candidate)) } }
        }
    };
    dialog(&format!("Request of difference {number}"), &members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(difference: &Value) -> Vec<(String, Value, Value)> {
        let fields = fields(difference).into_iter();
        fields.map(|field| (field.path, field.active, field.candidate)).collect()
    }

    #[test]
    fn only_fields_that_differ_are_told() {
        let active = json!({"lines": [{"code": "a", "charge": {"rate": 1}}], "rule": "r"});
        let lines = json!([{"code": "a", "charge": {"rate": 2}}, {"code": "b", "charge": null}]);
        let difference = json!({"active": active, "candidate": {"lines": lines, "rule": "r"}});
        let expected = [
            ("lines.0.charge.rate".to_owned(), json!(1), json!(2)),
            ("lines.1.code".to_owned(), Value::Null, json!("b")),
        ];
        assert_eq!(told(&difference), expected);
        let difference = json!({"active": null, "candidate": {"rule": "", "lines": []}});
        let expected = [
            ("rule".to_owned(), Value::Null, json!("")),
            ("lines".to_owned(), Value::Null, json!([])),
        ];
        assert_eq!(told(&difference), expected);
        let difference = json!({"active": {"charge": 1}, "candidate": {"charge": {"rate": 1}}});
        assert_eq!(told(&difference), [("charge".to_owned(), json!(1), json!({"rate": 1}))]);
    }

    #[test]
    fn of_a_failure_its_cause_is_told() {
        let failure = json!({"cause": "trap", "message": "<unreachable>"});
        let difference =
            json!({"input": null, "active": {"rule": "r"}, "candidate": {"failure": failure}});
        let page = differences(&json!({"version": 2, "differences": [difference]})).into_string();
        for part in [
            "Difference 1: it failed",
            "<code>failure.cause</code></td><td><span class=\"hint\">–</span></td><td>trap</td>",
            "&lt;unreachable&gt;",
            "it may name a person",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<code>rule</code>"), "{page}");
    }
}
