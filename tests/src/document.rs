//! The OpenAPI documents, held against every request and answer of the tests: a
//! [`Partner`](crate::partner::Partner)'s and an operator's are checked, whatever the test is about.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use http::Method;
use jsonschema::{Draft, Registry, Validator};

use rampart_core::endpoint::router::ServedApi;
use serde_json::{Value, json};

use crate::answer::Answer;

/// The URI by which schemas refer to a document.
const URI: &str = "https://rampart.example/openapi.json";

/// The document of the partners' API.
pub static PARTNERS: LazyLock<Document> =
    LazyLock::new(|| Document::new(&rampart_api::PARTNERS_API));
/// The document of the operators' API.
pub static OPERATORS: LazyLock<Document> =
    LazyLock::new(|| Document::new(&rampart_api::OPERATORS_API));

/// The document of the connectors' API.
pub static CONNECTORS: LazyLock<Document> =
    LazyLock::new(|| Document::new(&rampart_api::CONNECTORS_API));

/// A document with the validators of its schemas.
pub struct Document {
    api: &'static ServedApi,
    /// The document as schemas refer to it, at [`URI`].
    registry: Registry<'static>,
    /// By the JSON pointer of the schema.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Document {
    fn new(api: &'static ServedApi) -> Self {
        let registry = Registry::new().draft(Draft::Draft202012).add(URI, api.document());
        let registry = registry.and_then(|builder| builder.prepare());
        let registry = registry.unwrap_or_else(|e| panic!("a document is no resource: {e}"));
        Self { api, registry, validators: Mutex::default() }
    }

    /// The document itself.
    pub fn value(&self) -> &'static Value {
        self.api.document()
    }

    /// The validator of the schema at a JSON pointer.
    pub fn validator(&self, pointer: &str) -> Arc<Validator> {
        let validators = || self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        let known = validators().get(pointer).cloned();
        // Compiled without the lock: tests that run at once do not wait for each other.
        known.unwrap_or_else(|| {
            let made = Arc::new(self.compile(pointer));
            validators().insert(pointer.to_owned(), Arc::clone(&made));
            made
        })
    }

    fn compile(&self, pointer: &str) -> Validator {
        // The braces of a path's parameters are no characters of a fragment.
        let fragment = pointer.replace('{', "%7B").replace('}', "%7D");
        let schema = json!({ "$ref": format!("{URI}#{fragment}") });
        jsonschema::draft202012::options()
            .with_registry(&self.registry)
            .should_validate_formats(true)
            .build(&schema)
            .unwrap_or_else(|e| panic!("{pointer} is no JSON schema: {e}"))
    }

    /// The violations of the schema at a JSON pointer, a line each; empty for a valid value.
    pub fn violations(&self, pointer: &str, value: &Value) -> String {
        let validator = self.validator(pointer);
        let lines = validator.iter_errors(value).map(|e| format!("{} {e}\n", e.instance_path()));
        lines.collect()
    }

    /// The JSON pointer of an operation's answer, references followed; `None` for a status that the
    /// document does not name.
    pub fn answer(&self, operation: &str, status: u16) -> Option<String> {
        let pointer = format!("{operation}/responses/{status}");
        self.value().pointer(&pointer)?;
        Some(self.target(&pointer))
    }

    /// The JSON pointer of the content of a request body or an answer, if it is JSON.
    pub fn json_content(&self, pointer: &str) -> Option<String> {
        let pointer = format!("{pointer}/content/application~1json");
        self.value().pointer(&pointer).map(|_| pointer)
    }

    /// The same JSON pointer, or the one that the value there refers to.
    fn target(&self, pointer: &str) -> String {
        let reference = self.value().pointer(pointer).and_then(|value| value["$ref"].as_str());
        reference.map_or(pointer, |target| target.trim_start_matches('#')).to_owned()
    }

    /// Panics when a request and its answer are not as the document says.
    pub fn check(
        &self,
        method: &Method,
        path: &str,
        query: Option<&str>,
        sent: &[u8],
        got: &Answer,
    ) {
        let found = self.api.find(method, path).endpoint();
        let Some(route) = found.filter(|route| route.method == *method) else {
            return;
        };
        let operation = operation(route.path, method);
        let Some(declared) = self.value().pointer(&operation) else { return };
        let status = got.status();
        let Some(answer) = self.answer(&operation, status) else {
            panic!("{method} {path} answers {status}, which the document does not declare");
        };
        // Amounts that are spelt, because the client asked for it, are no numbers of the schema.
        let spelt = got.header("preference-applied").is_some();
        if let Some(content) = self.json_content(&answer).filter(|_| !spelt) {
            let broken = self.violations(&format!("{content}/schema"), &got.json());
            assert!(broken.is_empty(), "{method} {path} {status}:\n{broken}{}", got.text());
        }
        if !got.is_refusal() {
            check_query(declared, query, &operation);
            self.check_request(sent, &operation);
        }
    }

    fn check_request(&self, sent: &[u8], operation: &str) {
        let Some(content) = self.json_content(&format!("{operation}/requestBody")) else { return };
        let sent = if sent.is_empty() { b"{}" } else { sent };
        let sent: Value = serde_json::from_slice(sent).unwrap_or_default();
        let schema = format!("{content}/schema");
        let broken = self.violations(&schema, &sent);
        assert!(broken.is_empty(), "{operation} takes what the document refuses:\n{broken}{sent}");
        let schema = self.target(&schema);
        let properties = &self.value().pointer(&schema).unwrap_or(&json!(null))["properties"];
        for name in sent.as_object().into_iter().flatten().map(|(name, _)| name) {
            assert!(
                !properties[name].is_null() || name.starts_with("unknown"),
                "{operation} takes a member {name} that is not in the document"
            );
        }
    }
}

/// Panics when a request that was granted has a parameter that the document does not name.
/// A test that sends one to be ignored names it `unknown…`.
fn check_query(declared: &Value, query: Option<&str>, operation: &str) {
    let parameters = declared["parameters"].as_array().cloned().unwrap_or_default();
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split('=').next().unwrap_or_default();
        let known = parameters.iter().any(|p| p["in"] == "query" && p["name"] == name);
        assert!(known, "{operation} takes a query parameter {name} that is not in the document");
    }
}

/// A step of a JSON pointer.
fn step(text: &str) -> String {
    text.replace('~', "~0").replace('/', "~1")
}

/// The JSON pointer of an operation.
pub fn operation(path: &str, method: &Method) -> String {
    format!("/paths/{}/{}", step(path), method.as_str().to_lowercase())
}
