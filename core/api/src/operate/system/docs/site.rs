//! Every page and file of the documentation, made once.

use std::collections::HashMap;

use bytes::Bytes;
use http::HeaderValue;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::guides::{self, GUIDES};
use super::layout::{Contents, frame};
use super::postman;
use super::reference::{self, Operation, paragraphs, text, words};
use crate::endpoint::router::ServedApi;
use crate::http::reply::entity_tag;
use crate::platform::error::Code;

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// Pages that list all there is of a kind: name and title.
const REFERENCE: [(&str, &str); 2] = [("errors", "Errors"), ("models", "Models")];

/// A page or a file.
#[derive(Clone)]
pub(super) struct File {
    pub(super) media_type: &'static str,
    pub(super) content: Bytes,
    pub(super) tag: HeaderValue,
}

impl File {
    fn new(media_type: &'static str, content: impl Into<Bytes>) -> Self {
        let content = content.into();
        Self { media_type, tag: entity_tag(&content), content }
    }
}

/// The documentation of an API.
pub(super) struct Site {
    /// By name; the start page has none.
    files: HashMap<String, File>,
}

impl Site {
    /// Writes every page.
    pub(super) fn new(api: &ServedApi) -> Self {
        let document = api.document();
        let operations = reference::operations(document);
        let contents = contents(document, &operations);
        let mut files = HashMap::new();
        let mut page = |name: &str, title: &str, main: &Markup| {
            let page = frame(name, title, &contents, main);
            files.insert(name.to_owned(), File::new(HTML, page));
        };
        page("", "Documentation", &start(document, &operations));
        for guide in &GUIDES {
            page(guide.name, guide.title, &guides::render(guide));
        }
        for operation in &operations {
            page(operation.id(), operation.summary(), &reference::operation(document, operation));
        }
        page("errors", "Errors", &reference::errors(document, api.endpoints));
        page("models", "Models", &reference::models(document));
        let collection = postman::collection(document).to_string();
        files.insert("postman.json".to_owned(), File::new(JSON, collection));
        let index = index(document, &operations).to_string();
        files.insert("index.json".to_owned(), File::new(JSON, index));
        let summary = llms(document, &operations);
        files.insert("llms.txt".to_owned(), File::new(TEXT, summary));
        Self { files }
    }

    /// A page or file by its name.
    pub(super) fn file(&self, name: &str) -> Option<File> {
        self.files.get(name).cloned()
    }

    /// Every name with its file.
    #[cfg(test)]
    pub(super) fn files(&self) -> impl Iterator<Item = (&String, &File)> {
        self.files.iter()
    }
}

/// The operations by their tags, which are in the document's order.
fn by_tag<'a>(
    document: &'a Value,
    operations: &'a [Operation<'a>],
) -> impl Iterator<Item = (&'a Value, Vec<&'a Operation<'a>>)> {
    let tags = document["tags"].as_array().into_iter().flatten();
    tags.map(|tag| {
        let here = operations.iter().filter(|one| one.is["tags"][0] == tag["name"]);
        (tag, here.collect())
    })
}

fn contents<'a>(document: &'a Value, operations: &'a [Operation<'a>]) -> Contents<'a> {
    let guides = GUIDES.iter().map(|guide| (guide.name, guide.title)).collect();
    let mut contents = vec![("Guides", guides), ("Reference", REFERENCE.to_vec())];
    contents.extend(by_tag(document, operations).map(|(tag, here)| {
        let pages = here.iter().map(|one| (one.id(), one.summary())).collect();
        (tag["name"].as_str().unwrap_or_default(), pages)
    }));
    contents
}

/// The start page: introduction, and the index that is searched.
fn start(document: &Value, operations: &[Operation<'_>]) -> Markup {
    html! {
        h1 { (text(&document["info"]["title"])) " API" }
        (paragraphs(&document["info"]["description"]))
        p {
            "Begin with " a href="/docs/start" { "five minutes" } ". For tools: "
            a href="/openapi.json" { "OpenAPI" } ", " a href="/docs/postman.json" { "Postman" } ", "
            a href="/llms.txt" { "llms.txt" } ", " a href="/docs/index.json" { "index" } "."
        }
        h2 { "Index" }
        label hidden { "Search" input id="search" type="search" autocomplete="off"; }
        p id="found" role="status" {}
        ul id="index" {
            @for guide in &GUIDES {
                li { a href={ "/docs/" (guide.name) } { (guide.title) } }
                @for section in guide.sections() {
                    li {
                        a href={ "/docs/" (guide.name) "#" (section.anchor) } { (section.title) } " "
                        (guide.title)
                    }
                }
            }
            @for (page, title) in REFERENCE {
                li { a href={ "/docs/" (page) } { (title) } }
            }
            @for operation in operations {
                li {
                    a href={ "/docs/" (operation.id()) } { (operation.summary()) } " "
                    code { (operation.method.to_uppercase()) " " (operation.path) } " "
                    (operation.id())
                }
            }
            @for model in models(document) {
                li { a href={ "/docs/models#" (model) } { (model) } " model" }
            }
            @for code in Code::ALL {
                li id=(code.as_str()) {
                    a href={ "/docs/errors#" (code.as_str()) } { (code.as_str()) } " "
                    (words(code.message()))
                }
            }
        }
    }
}

/// The names of the document's schemas.
fn models(document: &Value) -> impl Iterator<Item = &String> {
    document["components"]["schemas"].as_object().into_iter().flat_map(|schemas| schemas.keys())
}

/// Every page as data: title, address, kind.
fn index(document: &Value, operations: &[Operation<'_>]) -> Value {
    let entry = |kind: &str, title: &str, page: &str| {
        let url = format!("/docs/{page}");
        json!({ "kind": kind, "title": title, "url": url })
    };
    let guides = GUIDES.iter().flat_map(|guide| {
        let sections = guide.sections().into_iter().map(move |section| {
            entry("section", &section.title, &format!("{}#{}", guide.name, section.anchor))
        });
        [entry("guide", guide.title, guide.name)].into_iter().chain(sections)
    });
    let pages = REFERENCE.into_iter().map(|(page, title)| entry("reference", title, page));
    let models = models(document).map(|name| entry("model", name, &format!("models#{name}")));
    let operations = operations.iter().map(|one| {
        json!({
            "kind": "operation",
            "title": one.summary(),
            "operationId": one.id(),
            "method": one.method.to_uppercase(),
            "path": one.path,
            "url": format!("/docs/{}", one.id()),
        })
    });
    let errors = Code::ALL.iter().map(|code| {
        json!({
            "kind": "error",
            "title": code.message(),
            "code": code.as_str(),
            "url": format!("/docs/errors#{}", code.as_str()),
        })
    });
    Value::Array(guides.chain(pages).chain(operations).chain(models).chain(errors).collect())
}

/// The documentation as one text for language models: what there is, and where.
fn llms(document: &Value, operations: &[Operation<'_>]) -> String {
    let info = |name: &str| document["info"][name].as_str().unwrap_or_default();
    let mut text =
        format!("# {}\n\n> {}\n\n{}\n", info("title"), info("summary"), info("description"));
    text += "\n## Guides\n\n";
    for guide in &GUIDES {
        text += &format!("- [{}](/docs/{})\n", guide.title, guide.name);
    }
    text += "- [Errors: every code with cause and cure](/docs/errors)\n";
    for (tag, here) in by_tag(document, operations) {
        let name = tag["name"].as_str().unwrap_or_default();
        text += &format!("\n## {name}\n\n");
        for one in here {
            let method = one.method.to_uppercase();
            text += &format!("- [{method} {}](/docs/{}): {}\n", one.path, one.id(), one.summary());
        }
    }
    text += "\n## Files\n\n- [OpenAPI 3.1](/openapi.json)\n- [Postman](/docs/postman.json)\n";
    text
}
