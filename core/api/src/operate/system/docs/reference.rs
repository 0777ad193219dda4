//! The pages of operations, of models and of error codes, from the OpenAPI document.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use serde_json::Value;

use super::samples;
use super::schema::{kind, table};
use super::try_it;
use crate::endpoint::Route;
use crate::operate::sandbox::scenarios::provoking;
use crate::platform::error::Code;

/// The codes of an answer that is an error.
const CODES: &str = "/content/application~1json/schema/properties/errors/propertyNames/enum";

/// An operation with its method and path.
pub(super) struct Operation<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) is: &'a Value,
}

impl Operation<'_> {
    /// Its name, which is that of its page.
    pub(super) fn id(&self) -> &str {
        self.is["operationId"].as_str().unwrap_or_default()
    }

    /// Its effect, in a few words.
    pub(super) fn summary(&self) -> &str {
        self.is["summary"].as_str().unwrap_or_default()
    }
}

/// The operations of the document, in its order.
pub(super) fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.map(move |(method, is)| Operation { method, path, is })
        })
        .collect()
}

/// The page of an operation.
pub(super) fn operation(document: &Value, operation: &Operation<'_>) -> Markup {
    let Operation { method, path, is } = operation;
    let body = &is["requestBody"]["content"]["application/json"];
    html! {
        h1 { (operation.summary()) }
        p { span.method { (method) } code { (path) } }
        (paragraphs(&is["description"]))
        p { "Credentials: " (credentials(is)) }
        @if let Some(parameters) = is["parameters"].as_array() {
            h2 id="parameters" { "Parameters" }
            div.wide { table {
                thead { tr { th { "Name" } th { "Values" } th { "Meaning" } } }
                @for parameter in parameters {
                    tr {
                        th scope="row" { code { (text(&parameter["name"])) } }
                        td {
                            (text(&parameter["in"])) ": " (kind(&parameter["schema"]))
                            @if parameter["required"] != true { i { ", optional" } }
                        }
                        td { (text(&parameter["description"])) }
                    }
                }
            } }
        }
        @if body.is_object() {
            h2 id="body" { "Body" }
            div.wide { (table(target(document, &body["schema"]))) }
        }
        h2 id="examples" { "Examples" }
        @for (index, (language, code)) in samples::all(method, path, is).iter().enumerate() {
            details open[index == 0] {
                summary { (language) }
                pre tabindex="0" { code { (code) } }
            }
        }
        (try_it::form(method, path, is))
        h2 id="answers" { "Answers" }
        @for (status, answer) in is["responses"].as_object().into_iter().flatten() {
            (response(document, status, target(document, answer)))
        }
    }
}

/// The schema or answer, or the one that it refers to.
fn target<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

fn credentials(operation: &Value) -> Markup {
    let ways: Vec<_> = operation["x-credentials"].as_array().into_iter().flatten().collect();
    html! {
        @if ways.is_empty() { "none" }
        @for (index, way) in ways.into_iter().enumerate() {
            @if index > 0 { ", or " }
            @for (index, (name, _)) in way.as_object().into_iter().flatten().enumerate() {
                @if index > 0 { " with " }
                a href="/docs/authentication" { (name) }
            }
        }
    }
}

/// One status: a success in full, an error by its codes.
fn response(document: &Value, status: &str, answer: &Value) -> Markup {
    let content = &answer["content"]["application/json"];
    let codes = answer.pointer(CODES).and_then(Value::as_array);
    let schema = target(document, &content["schema"]);
    html! {
        h3 { (status) }
        p { (text(&answer["description"])) }
        @if let Some(codes) = codes {
            div.wide { table {
                @for code in Code::ALL.iter().filter(|code| codes.iter().any(|one| *one == code.as_str())) {
                    tr {
                        th scope="row" {
                            a href={ "/docs/errors#" (code.as_str()) } { (code.as_str()) }
                        }
                        td { (words(code.message())) }
                        td { (words(code.solution())) }
                    }
                }
            } }
        } @else {
            @if content["schema"].is_object() { div.wide { (table(schema)) } }
            @if !content["example"].is_null() {
                pre tabindex="0" { code { (samples::pretty(&content["example"])) } }
            }
        }
    }
}

/// Every schema under its name.
pub(super) fn models(document: &Value) -> Markup {
    let schemas = document["components"]["schemas"].as_object().into_iter().flatten();
    html! {
        h1 { "Models" }
        p { "The forms of bodies and answers that have names." }
        @for (name, schema) in schemas {
            @if name != "ErrorCode" {
                h2 id=(name) { (name) }
                p { (text(&schema["description"])) }
                div.wide { (table(schema)) }
            } @else {
                h2 id=(name) { (name) }
                p { (text(&schema["description"])) " " a href="/docs/errors" { "Error codes" } }
            }
        }
    }
}

/// The statuses of the answers that a code stands in, by code.
fn statuses<'a>(
    document: &'a Value,
    operations: &[Operation<'a>],
) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut known: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for operation in operations {
        for (status, answer) in operation.is["responses"].as_object().into_iter().flatten() {
            let codes = target(document, answer).pointer(CODES).and_then(Value::as_array);
            for code in codes.into_iter().flatten().filter_map(Value::as_str) {
                known.entry(code).or_default().insert(status.as_str());
            }
        }
    }
    known
}

/// Every code with its cause and cure, each under an anchor of its name.
pub(super) fn errors(document: &Value, endpoints: &[Route]) -> Markup {
    let operations = operations(document);
    let statuses = statuses(document, &operations);
    let listed = |code: Code| {
        let join = |all: &BTreeSet<&str>| all.iter().copied().collect::<Vec<_>>().join(", ");
        statuses.get(code.as_str()).map_or_else(|| code.status().to_string(), join)
    };
    html! {
        h1 { "Errors" }
        p {
            "Errors come in one envelope, keyed by code; a request that is wrong in several ways is "
            "told all of them at once. Tell codes apart in programs, never messages. "
            code { "field" } " names the member, " code { "solution" } " may name the bound."
        }
        @for code in Code::ALL {
            section id=(code.as_str()) {
                h2 { (code.as_str()) }
                p { strong { (code.message()) } " " (code.solution()) }
                p.quiet {
                    "Status " (listed(*code))
                    @if code.retryable() { ". The same request may succeed later" }
                    "."
                    @let declaring = endpoints.iter().filter(|route| route.errors.contains(code));
                    @for (index, route) in declaring.enumerate() {
                        @if index == 0 { " Answered by " } @else { ", " }
                        (link(&operations, route))
                    }
                }
                @for (mistake, request) in provoking(*code) {
                    p.quiet { "In the sandbox: " (words(mistake)) " " code { (request) } }
                }
            }
        }
    }
}

/// A link to the page of an endpoint.
fn link(operations: &[Operation<'_>], route: &Route) -> Markup {
    let method = route.method.as_str().to_lowercase();
    let found = operations.iter().find(|one| one.path == route.path && one.method == method);
    html! {
        @if let Some(operation) = found {
            a href={ "/docs/" (operation.id()) } { (operation.id()) }
        }
    }
}

/// A text of the document.
pub(super) fn text(value: &Value) -> Markup {
    words(value.as_str().unwrap_or_default())
}

/// A text of several paragraphs.
pub(super) fn paragraphs(value: &Value) -> Markup {
    let text = value.as_str().unwrap_or_default();
    html! { @for paragraph in text.split("\n\n").filter(|text| !text.is_empty()) { p { (words(paragraph)) } } }
}

/// The document's subset of CommonMark: text, and `code` between backticks.
pub(super) fn words(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
