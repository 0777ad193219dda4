//! The OpenAPI document as HTML: a table of contents, operations by tag, schemas.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use super::curl;
use super::schema::{kind, table};
use super::walk;

/// The page's style sheet; its digest is part of the content security policy.
pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}\
body{margin:0;display:grid;grid-template-columns:20rem minmax(0,60rem);gap:2rem;padding:0 1.5rem}\
nav{position:sticky;top:0;box-sizing:border-box;height:100vh;overflow:auto;font-size:.875rem;padding:1rem 0}\
nav ul{list-style:none;padding:0;margin:0 0 1rem}\
nav a{text-decoration:none;color:inherit}\
article{border-top:1px solid #8886;padding:1rem 0}\
h3{margin:0}\
code,pre{font:.875em/1.5 ui-monospace,monospace;overflow-wrap:anywhere}\
pre{background:#8882;padding:.75rem;border-radius:.375rem;overflow:auto;white-space:pre-wrap}\
table{border-collapse:collapse;width:100%;font-size:.9rem}\
th,td{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;border-top:1px solid #8884}\
th{font-weight:normal;white-space:nowrap}\
summary{cursor:pointer;margin:.5rem 0}\
.method{font-weight:bold;text-transform:uppercase;margin-right:.5rem}\
:focus-visible{outline:3px solid #f9ab00;outline-offset:2px}\
@media(max-width:60rem){body{display:block}nav{position:static;height:auto}}";

/// JSON pointer to an example of a complete error.
const ENVELOPE: &str = "/components/responses/TooMany/content/application~1json/example";

/// An operation with its method and path.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    is: &'a Value,
}

impl Operation<'_> {
    fn id(&self) -> &str {
        self.is["operationId"].as_str().unwrap_or_default()
    }
}

/// The operations of the document's `paths`, or of its `webhooks`.
fn operations<'a>(document: &'a Value, kind: &str) -> Vec<Operation<'a>> {
    let paths = document[kind].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.map(move |(method, is)| Operation { method, path, is })
        })
        .collect()
}

/// The page.
pub(super) fn render(document: &Value) -> Markup {
    let (operations, sent) = (operations(document, "paths"), operations(document, "webhooks"));
    let domains: Vec<_> = document["tags"].as_array().into_iter().flatten().collect();
    let of = |tag: &Value| {
        operations.iter().filter(|o| o.is["tags"][0] == tag["name"]).collect::<Vec<_>>()
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Rampart API" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                nav aria-label="Contents" {
                    p { a href="#top" { "Start" } }
                    p { a href="#walk" { "From nothing to a completed order" } }
                    @for tag in &domains {
                        strong { (text(&tag["name"])) }
                        ul {
                            @for operation in of(tag) {
                                li { a href={ "#" (operation.id()) } {
                                    (text(&operation.is["summary"]))
                                } }
                            }
                        }
                    }
                    strong { "What you receive" }
                    ul {
                        @for operation in &sent {
                            li { a href={ "#" (operation.id()) } { (text(&operation.is["summary"])) } }
                        }
                    }
                    p { a href="#codes" { "Error codes" } }
                    p { a href="#schemas" { "Schemas" } }
                }
                main {
                    (introduction(document))
                    @for tag in &domains {
                        h2 { (text(&tag["name"])) }
                        p { (text(&tag["description"])) }
                        @for operation in of(tag) { (article(document, operation)) }
                    }
                    h2 { "What you receive" }
                    @for operation in &sent { (webhook(operation)) }
                    (error_codes(document))
                    (schemas(document))
                }
            }
        }
    }
}

fn introduction(document: &Value) -> Markup {
    let schemes = document["components"]["securitySchemes"].as_object().into_iter().flatten();
    let shared = document["components"]["responses"].as_object().into_iter().flatten();
    let (versions, title) = (&document["info"]["version"], &document["info"]["title"]);
    let operations = operations(document, "paths");
    let summary = |id: &str| {
        let named = operations.iter().find(|operation| operation.id() == id);
        named.and_then(|operation| operation.is["summary"].as_str()).unwrap_or_default()
    };
    html! {
        h1 id="top" { (text(title)) " API " (text(versions)) }
        (paragraphs(&document["info"]["description"]))
        p {
            "The same as a document for tools: " a href="/openapi.json" { code { "/openapi.json" } }
            ". In the examples " code { "$BASE" } " is the address of this page without "
            code { "/docs" } "."
        }
        h2 { "Credentials" }
        table {
            @for (name, scheme) in schemes {
                tr {
                    th scope="row" { (name) }
                    td { code { (scheme["name"].as_str().unwrap_or("Authorization: Bearer")) } }
                    td { (text(&scheme["description"])) }
                }
            }
        }
        (walk::render(summary))
        h2 { "Errors that any request can meet" }
        table {
            @for (name, answer) in shared {
                tr {
                    th scope="row" { (status(document, name)) " " (codes(answer)) }
                    td { (text(&answer["description"])) }
                }
            }
        }
        p { "The envelope is the same for every error:" }
        pre { code { (pretty(document.pointer(ENVELOPE).unwrap_or(&Value::Null))) } }
    }
}

/// The status under which operations refer to a shared response.
fn status<'a>(document: &'a Value, name: &str) -> &'a str {
    let target = format!("#/components/responses/{name}");
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(_, methods)| methods.as_object().into_iter().flatten());
    let mut answers =
        operations.flat_map(|(_, is)| is["responses"].as_object().into_iter().flatten());
    answers.find(|(_, answer)| answer["$ref"] == target).map_or("", |(status, _)| status)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn article(document: &Value, operation: &Operation<'_>) -> Markup {
    let Operation { method, path, is } = operation;
    html! {
        article id=(operation.id()) {
            h3 { (text(&is["summary"])) }
            p { span.method { (method) } code { (path) } }
            (paragraphs(&is["description"]))
            p { "Credentials: " (ways_in(is)) }
            (taken(is))
            h4 { "Example" }
            pre { code { (curl::command(method, path, is)) } }
            @for (status, answer) in is["responses"].as_object().into_iter().flatten() {
                (response(document, status, answer))
            }
        }
    }
}

/// A request that the partner receives.
fn webhook(operation: &Operation<'_>) -> Markup {
    let is = operation.is;
    let example = &is["requestBody"]["content"]["application/json"]["example"];
    html! {
        article id=(operation.id()) {
            h3 { (text(&is["summary"])) }
            p { span.method { (operation.method) } "at the address that you have registered" }
            (paragraphs(&is["description"]))
            (taken(is))
            h4 { "Example" }
            pre { code { (pretty(example)) } }
        }
    }
}

/// Parameters and body.
fn taken(operation: &Value) -> Markup {
    let body = &operation["requestBody"]["content"]["application/json"];
    html! {
        @if let Some(parameters) = operation["parameters"].as_array() {
            h4 { "Parameters" }
            table {
                @for parameter in parameters {
                    tr {
                        th scope="row" { code { (text(&parameter["name"])) } }
                        td { (text(&parameter["in"])) ": " (kind(&parameter["schema"])) }
                        td { (text(&parameter["description"])) }
                    }
                }
            }
        }
        @if body.is_object() { h4 { "Body" } (table(&body["schema"])) }
    }
}

fn ways_in(operation: &Value) -> Markup {
    let ways: Vec<_> = operation["security"].as_array().into_iter().flatten().collect();
    html! {
        @if ways.is_empty() { "none" }
        @for (index, way) in ways.into_iter().enumerate() {
            @if index > 0 { ", or " }
            @let names: Vec<_> = way.as_object().into_iter().flatten().map(|(n, _)| n.as_str()).collect();
            (names.join(" with "))
        }
    }
}

/// A success in full, an error by its codes. Errors shared by all operations are in the
/// introduction.
fn response(document: &Value, status: &str, answer: &Value) -> Markup {
    let content = &answer["content"]["application/json"];
    if answer["$ref"].is_string() {
        return html! {};
    }
    let about = html! { strong { (status) } " " (text(&answer["description"])) };
    if status >= "400" && content["schema"]["properties"]["errors"].is_object() {
        let catalogue = document["components"]["schemas"]["Code"]["oneOf"].as_array();
        let known = |code: &Value| catalogue?.iter().find(|known| known["const"] == *code);
        return html! {
            details {
                summary { (about) }
                table {
                    @for code in names(answer) {
                        @let known = known(code).unwrap_or(&Value::Null);
                        tr {
                            th scope="row" { code { (text(code)) } }
                            td { (text(&known["title"])) }
                            td { (text(&known["description"])) }
                        }
                    }
                }
            }
        };
    }
    html! {
        p { (about) }
        @if content["schema"].is_object() {
            @if content["schema"]["properties"].is_object() { (table(&content["schema"])) }
            @else { p { (kind(&content["schema"])) } }
        }
        @if !content["example"].is_null() { pre { code { (pretty(&content["example"])) } } }
    }
}

fn names(answer: &Value) -> &[Value] {
    let pointer = "/content/application~1json/schema/properties/errors/propertyNames/enum";
    answer.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn codes(answer: &Value) -> Markup {
    html! { @for code in names(answer) { code { (text(code)) } " " } }
}

/// Every code, each under its own fragment: `documentation` of an error links to it.
fn error_codes(document: &Value) -> Markup {
    let catalogue = document["components"]["schemas"]["Code"]["oneOf"].as_array();
    html! {
        h2 id="codes" { "Error codes" }
        table {
            @for code in catalogue.into_iter().flatten() {
                tr id=(text(&code["const"])) {
                    th scope="row" { code { (text(&code["const"])) } }
                    td { (text(&code["title"])) }
                    td { (text(&code["description"])) }
                }
            }
        }
    }
}

fn schemas(document: &Value) -> Markup {
    let schemas = document["components"]["schemas"].as_object().into_iter().flatten();
    html! {
        h2 id="schemas" { "Schemas" }
        @for (name, schema) in schemas {
            article id={ "schema-" (name) } {
                h3 { (name) }
                p { (text(&schema["description"])) }
                (table(schema))
            }
        }
    }
}

/// A text of the document.
pub(super) fn text(value: &Value) -> Markup {
    words(value.as_str().unwrap_or_default())
}

/// A text of several paragraphs.
fn paragraphs(value: &Value) -> Markup {
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
