//! The OpenAPI document, held against what really passes: every request and answer of a
//! [`Partner`](crate::partner::Partner) is checked, whatever the test is about.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use http::Method;
use jsonschema::Validator;
use rampart_core::api;
use rampart_core::endpoint::openapi::document;
use serde_json::{Value, json};

use crate::answer::Answer;

/// Validators by the JSON pointer of their schema in the document.
static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// The validator of the schema at a JSON pointer of the document.
pub fn validator(pointer: &str) -> Arc<Validator> {
    let mut known = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    let made = known.entry(pointer.to_owned()).or_insert_with(|| Arc::new(compile(pointer)));
    Arc::clone(made)
}

fn compile(pointer: &str) -> Validator {
    let mut schema = document().pointer(pointer).unwrap_or_else(|| panic!("{pointer}")).clone();
    // The schema's references point into the document's components.
    schema["components"] = document()["components"].clone();
    jsonschema::draft202012::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap_or_else(|e| panic!("{pointer} is no JSON schema: {e}"))
}

/// What a value breaks of the schema at a JSON pointer, a line each; empty when it is valid.
pub fn violations(pointer: &str, value: &Value) -> String {
    let validator = validator(pointer);
    let lines = validator.iter_errors(value).map(|e| format!("{} {e}\n", e.instance_path()));
    lines.collect()
}

/// A step of a JSON pointer.
fn step(text: &str) -> String {
    text.replace('~', "~0").replace('/', "~1")
}

/// The JSON pointer of an operation.
pub fn operation(path: &str, method: &Method) -> String {
    format!("/paths/{}/{}", step(path), method.as_str().to_lowercase())
}

/// The JSON pointer of an operation's answer, references followed; `None` for a status that the
/// document does not name.
pub fn answer(operation: &str, status: u16) -> Option<String> {
    let pointer = format!("{operation}/responses/{status}");
    let answer = document().pointer(&pointer)?;
    Some(answer["$ref"].as_str().map_or(pointer, |target| target.trim_start_matches('#').into()))
}

/// The JSON pointer of the content of a request body or an answer, if it is JSON.
pub fn json_content(pointer: &str) -> Option<String> {
    let pointer = format!("{pointer}/content/application~1json");
    document().pointer(&pointer).map(|_| pointer)
}

/// Panics when a request and its answer are not as the document says.
pub fn check(method: &Method, target: (&str, Option<&str>), sent: &[u8], got: &Answer) {
    let (path, query) = target;
    let Some(route) = api::lookup(method, path).filter(|route| route.method == *method) else {
        return;
    };
    let operation = operation(route.path, method);
    let Some(declared) = document().pointer(&operation) else { return };
    let status = got.status();
    let Some(answer) = answer(&operation, status) else {
        panic!("{method} {path} answers {status}, of which the document knows nothing");
    };
    if let Some(content) = json_content(&answer) {
        let broken = violations(&format!("{content}/schema"), &got.json());
        assert!(broken.is_empty(), "{method} {path} {status}:\n{broken}{}", got.text());
    }
    if got.codes().is_empty() {
        check_query(declared, query, &operation);
        check_request(sent, &operation);
    }
}

/// A request that was granted has nothing that the document does not name.
/// A test that sends what is to be ignored names it `unknown…`.
fn check_query(declared: &Value, query: Option<&str>, operation: &str) {
    let parameters = declared["parameters"].as_array().cloned().unwrap_or_default();
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split('=').next().unwrap_or_default();
        let known = parameters.iter().any(|p| p["in"] == "query" && p["name"] == name);
        assert!(known, "{operation} takes a query parameter {name} that is not in the document");
    }
}

fn check_request(sent: &[u8], operation: &str) {
    let Some(content) = json_content(&format!("{operation}/requestBody")) else { return };
    let sent: Value = serde_json::from_slice(sent).unwrap_or_default();
    let schema = format!("{content}/schema");
    let broken = violations(&schema, &sent);
    assert!(broken.is_empty(), "{operation} takes what the document refuses:\n{broken}{sent}");
    let properties = &document().pointer(&schema).unwrap_or(&json!(null))["properties"];
    for name in sent.as_object().into_iter().flatten().map(|(name, _)| name) {
        assert!(
            !properties[name].is_null() || name.starts_with("unknown"),
            "{operation} takes a member {name} that is not in the document"
        );
    }
}
