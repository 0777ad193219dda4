//! The OpenAPI documents: complete, consistent in themselves, and the ones that were reviewed. That
//! they are true is checked with every request of this suite (`rampart_tests::document`).

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use http::Method;
use rampart_api::{CONNECTOR_ENDPOINTS, ENDPOINTS, OPERATOR_ENDPOINTS};
use rampart_core::endpoint::Route;
use rampart_tests::document::{CONNECTORS, Document, OPERATORS, PARTNERS, operation};
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

/// The reviewed documents, from this package's folder.
const FIXTURES: [&str; 3] = [
    "fixtures/openapi.json",
    "fixtures/openapi-operators.json",
    "fixtures/openapi-connectors.json",
];
/// With this variable set, the fixtures are written instead of compared.
const ACCEPT: &str = "RAMPART_ACCEPT";

/// The documents and their tables.
fn documents() -> [(&'static Document, &'static [Route]); 3] {
    [
        (&*PARTNERS, ENDPOINTS),
        (&*OPERATORS, OPERATOR_ENDPOINTS),
        (&*CONNECTORS, CONNECTOR_ENDPOINTS),
    ]
}

/// Every operation of a document: its JSON pointer and itself.
fn operations(document: &Document) -> Vec<(String, &'static Value)> {
    let paths = document.value()["paths"].as_object().unwrap();
    let mut found = Vec::new();
    for (path, methods) in paths {
        for (method, declared) in methods.as_object().unwrap() {
            let method: Method = method.to_uppercase().parse().unwrap();
            found.push((operation(path, &method), declared));
        }
    }
    found
}

/// Calls `see` with every value of the document and its JSON pointer.
fn walk(pointer: &str, value: &'static Value, see: &mut impl FnMut(&str, &'static Value)) {
    see(pointer, value);
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                walk(&format!("{pointer}/{name}"), member, see);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(&format!("{pointer}/{index}"), item, see);
            }
        }
        _ => {}
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
#[test]
fn the_documents_are_the_reviewed_ones() {
    for ((document, _), fixture) in documents().into_iter().zip(FIXTURES) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture);
        let now = serde_json::to_string_pretty(document.value()).unwrap() + "\n";
        if env::var_os(ACCEPT).is_some() {
            fs::write(&file, &now).unwrap();
            continue;
        }
        let reviewed = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            reviewed == now,
            "an API's document has changed. If that is meant, `make openapi` accepts it; commit \
             tests/{fixture} with the change. In short:\n{}",
            difference(&reviewed, &now),
        );
    }
}

/// The lines between what both begin and what both end with.
fn difference(before: &str, after: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let (mut before, mut after): (Vec<_>, Vec<_>) =
        (before.lines().collect(), after.lines().collect());
    while before.last().is_some_and(|line| after.last() == Some(line)) {
        before.pop();
        after.pop();
    }
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let gone = before[same..].iter().take(SHOWN_MAX).map(|line| format!("- {line}\n"));
    let come = after[same..].iter().take(SHOWN_MAX).map(|line| format!("+ {line}\n"));
    format!("from line {}:\n{}{}", same + 1, gone.collect::<String>(), come.collect::<String>())
}

#[test]
fn every_endpoint_is_an_operation_and_no_other_is() {
    for (document, endpoints) in documents() {
        let operations = operations(document);
        let documented: BTreeSet<_> =
            operations.iter().map(|(pointer, _)| pointer.clone()).collect();
        let declared: BTreeSet<_> =
            endpoints.iter().map(|route| operation(route.path, &route.method)).collect();
        assert_eq!(documented, declared);
        let ids: BTreeSet<_> = operations.iter().map(|(_, o)| o["operationId"].as_str()).collect();
        assert_eq!(ids.len(), documented.len(), "an operation's id stands twice");
    }
}

#[test]
fn every_operation_says_what_a_caller_must_know() {
    let lacking: String = documents().into_iter().map(|(document, _)| lacking(document)).collect();
    assert!(lacking.is_empty(), "the documents lack:\n{lacking}");
}

#[test]
fn reads_of_sales_are_listed_with_selling() {
    for path in ["/api/v1/user/sell/orders", "/api/v2/sell/orders/{id}/timeline"] {
        let tags = &PARTNERS.value()["paths"][path]["get"]["tags"];
        assert_eq!(*tags, json!(["Selling"]), "{path}");
    }
}

/// Everything that the operations of a document do not say, a line each.
fn lacking(document: &Document) -> String {
    let mut lacking = String::new();
    let mut lacks = |pointer: &str, what: &str| {
        lacking += &format!("{pointer}: {what} (in `const DOC` of its endpoint)\n");
    };
    for (pointer, operation) in operations(document) {
        let summary = operation["summary"].as_str().unwrap();
        if summary.is_empty() || summary.ends_with('.') {
            lacks(&pointer, "a summary, without a full stop");
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if parameter["description"].as_str().is_none_or(str::is_empty) {
                lacks(&pointer, &format!("a member for {}", parameter["name"]));
            }
        }
        let mut contents = vec![format!("{pointer}/requestBody")];
        contents.extend([200, 201].map(|status| format!("{pointer}/responses/{status}")));
        for content in contents.iter().filter_map(|content| document.json_content(content)) {
            let content = document.value().pointer(&content).unwrap();
            let is_free = content["schema"] == json!({ "type": "object" });
            if content["example"].is_null() && !is_free {
                lacks(&pointer, "examples: `request` of the body, `answer` of the success");
            }
            if content["example"].as_array().is_some_and(Vec::is_empty) {
                lacks(&pointer, "an example of the list with a row");
            }
            if content["schema"].as_object().is_none_or(serde_json::Map::is_empty) {
                lacks(&pointer, "the form of its body");
            }
        }
    }
    lacking
}

/// Keywords whose value is a schema, or a list of schemas.
const SCHEMAS: [&str; 11] = [
    "schema",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "contains",
    "not",
    "anyOf",
    "oneOf",
    "allOf",
];

/// Keywords whose values are schemas by name.
const NAMED_SCHEMAS: [&str; 3] = ["properties", "patternProperties", "$defs"];

/// `true` for a JSON pointer into an example or another value that is data.
fn is_data(pointer: &str) -> bool {
    pointer.contains("/example") || pointer.contains("/default") || pointer.contains("/enum")
}

/// `true` if the schema, or the one that it refers to, has words.
fn is_described(document: &Document, schema: &Value) -> bool {
    let has_words = |schema: &Value| schema["description"].as_str().is_some_and(|t| !t.is_empty());
    let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    let target = target.and_then(|target| document.value().pointer(target));
    has_words(schema) || target.is_some_and(has_words)
}

#[test]
fn every_member_is_described_and_no_schema_is_a_boolean() {
    let mut lacking = String::new();
    for ((document, _), fixture) in documents().into_iter().zip(FIXTURES) {
        let mut members = 0;
        walk("", document.value(), &mut |pointer, value| {
            if is_data(pointer) {
                return;
            }
            let lists = SCHEMAS.iter().filter_map(|keyword| value[*keyword].as_array()).flatten();
            let maps = NAMED_SCHEMAS.iter().filter_map(|keyword| value[*keyword].as_object());
            let single = SCHEMAS.iter().map(|keyword| &value[*keyword]);
            let mut schemas = single.chain(lists).chain(maps.flat_map(serde_json::Map::values));
            if schemas.any(Value::is_boolean) {
                lacking += &format!("{fixture}{pointer} has a boolean schema\n");
            }
            for (name, member) in value["properties"].as_object().into_iter().flatten() {
                members += 1;
                if !is_described(document, member) {
                    lacking += &format!("{fixture}{pointer}: {name} has no description\n");
                }
            }
        });
        assert!(members > 20, "looked elsewhere in {fixture}");
        for (name, schema) in document.value()["components"]["schemas"].as_object().unwrap() {
            if !is_described(document, schema) {
                lacking += &format!("{fixture}: {name} has no description\n");
            }
        }
    }
    assert!(lacking.is_empty(), "the documents lack:\n{lacking}");
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_used() {
    for (document, _) in documents() {
        let mut targets = BTreeSet::new();
        walk("", document.value(), &mut |pointer, value| {
            let Some(target) = value.get("$ref").and_then(Value::as_str) else { return };
            let target = target.strip_prefix('#').unwrap();
            assert!(document.value().pointer(target).is_some(), "{pointer} refers to {target}");
            targets.insert(target);
        });
        for kind in ["schemas", "responses"] {
            for name in document.value()["components"][kind].as_object().unwrap().keys() {
                let pointer = format!("/components/{kind}/{name}");
                assert!(targets.contains(pointer.as_str()), "nothing refers to {pointer}");
                // A number is put behind a name that two types have.
                let numbered =
                    name.ends_with(|c: char| c.is_ascii_digit()) && !name.ends_with("V1");
                assert!(!numbered || name.ends_with("V2"), "{name}: rename one of two types");
            }
        }
    }
}

#[test]
fn every_example_is_valid() {
    for (document, endpoints) in documents() {
        let mut broken = String::new();
        let mut examples = 0;
        walk("", document.value(), &mut |pointer, value| {
            let example = value.get("example").filter(|_| value.get("schema").is_some());
            let Some(example) = example else { return };
            examples += 1;
            let violations = document.violations(&format!("{pointer}/schema"), example);
            if !violations.is_empty() {
                broken += &format!("{pointer}:\n{violations}");
            }
        });
        assert!(broken.is_empty(), "{broken}");
        assert!(examples >= endpoints.len(), "looked elsewhere");
    }
}

#[tokio::test]
async fn whoever_asks_gets_it_and_may_keep_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let answer = acme.anonymous(Method::GET, "/openapi.json").send().await;
    answer.assert_status(200);
    assert_eq!(answer.json(), *PARTNERS.value());
    assert_eq!(answer.json()["openapi"], "3.1.0");
    let tag = answer.header("etag").unwrap();
    let again = acme.anonymous(Method::GET, "/openapi.json").header("if-none-match", tag);
    again.send().await.assert_status(304);
}

#[tokio::test]
async fn whoever_prefers_strings_gets_a_document_of_strings() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let asked = || acme.anonymous(Method::GET, "/openapi.json").header("prefer", "money=string");
    let plain = acme.anonymous(Method::GET, "/openapi.json").send().await;
    let spelt = asked().send().await;
    assert_eq!(spelt.assert_status(200).header("preference-applied"), Some("money=string"));
    assert!(plain.header("preference-applied").is_none());
    let tag = spelt.header("etag").unwrap();
    assert_ne!(plain.header("etag"), Some(tag));
    let kept = asked().header("if-none-match", tag).send().await;
    for answer in [&plain, &spelt, kept.assert_status(304)] {
        assert_eq!(answer.header("vary"), Some("Prefer"));
    }
    let (plain, spelt) = (plain.json(), spelt.json());
    let member = |document: &Value, schema: &str, name: &str| {
        document["components"]["schemas"][schema]["properties"][name].clone()
    };
    for (schema, name) in [("BuyQuote", "cryptoAmount"), ("Amount", "amount")] {
        assert_eq!(member(&plain, schema, name)["type"], "number");
        let declared = member(&spelt, schema, name);
        assert_eq!((&declared["type"], &declared["format"]), (&json!("string"), &json!("decimal")));
    }
    let fee = member(&spelt, "BuyOrderV1", "feePercentage");
    assert_eq!(fee["type"], json!(["string", "null"]));
    let sent = member(&spelt, "QuoteBuyRequest", "fiatAmount");
    assert_eq!(sent, member(&plain, "QuoteBuyRequest", "fiatAmount"));
    let quoted = &spelt["paths"]["/api/v1/buy/quote"]["post"]["responses"]["200"];
    let example = &quoted["content"]["application/json"]["example"];
    assert!(example["fiatAmount"].is_string(), "{example}");
}

#[tokio::test]
async fn what_needs_no_preparation_answers_as_documented() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let simple = |route: &&Route| route.method == Method::GET && !route.path.contains('{');
    let mut granted = 0;
    for route in ENDPOINTS.iter().filter(simple) {
        // The answer is held to the document as every other one.
        granted += u32::from(acme.get(route.path).await.status() == 200);
    }
    assert!(granted >= 8, "only {granted} answers were successes");
}

#[tokio::test]
async fn an_operator_gets_the_operators_document() {
    let context = TestContext::start().await;
    let path = "/admin/v1/openapi.json";
    let answer = context.admin(Method::GET, path, json!({})).await;
    assert_eq!(answer.assert_status(200).json(), *OPERATORS.value());
    let stranger = context.admin_as(None, Method::GET, path, bytes::Bytes::new()).await;
    stranger.assert_status(401);
}

/// A generated client sends every credential that an operation lists and that it has a value for, of
/// whichever alternative.
#[test]
fn whatever_is_listed_is_one_credential_of_each_party() {
    let schemes = PARTNERS.value()["components"]["securitySchemes"].as_object().unwrap();
    let users = ["UserToken", "UserIdentifier"];
    let clients: Vec<_> = schemes.keys().filter(|name| !users.contains(&name.as_str())).collect();
    assert_eq!(clients, ["ApiKey"]);
    for (pointer, operation) in operations(&PARTNERS) {
        let ways = operation["security"].as_array().unwrap().iter();
        let sent: BTreeSet<_> = ways.flat_map(|way| way.as_object().unwrap().keys()).collect();
        assert!(sent.iter().all(|name| schemes.contains_key(*name)), "{pointer}: {sent:?}");
        let of_user = sent.iter().filter(|name| users.contains(&name.as_str())).count();
        assert!(of_user <= 1, "{pointer}: {sent:?}");
        assert_eq!(sent.is_empty(), operation["x-credentials"].is_null(), "{pointer}");
    }
}

/// The rules of Spectral's and Redocly's recommended sets that the other tests do not cover.
#[test]
fn the_operators_document_is_as_linters_recommend() {
    let document = OPERATORS.value();
    for member in ["title", "version", "description", "license", "contact"] {
        assert!(!document["info"][member].is_null(), "info has no {member}");
    }
    let tags: BTreeSet<_> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str()).collect();
    for (pointer, operation) in operations(&OPERATORS) {
        assert!(operation["description"].as_str().is_some_and(|text| text.ends_with('.')));
        let tag = &operation["tags"];
        assert!(tags.contains(&tag[0].as_str()) && tag[1].is_null(), "{pointer}: {tag}");
        assert_eq!(operation["security"], json!([{ "OperatorToken": [] }]), "{pointer}");
        let id = operation["operationId"].as_str().unwrap();
        let is_plain = id.chars().all(|c| c.is_ascii_alphanumeric());
        assert!(is_plain && id.starts_with(|c: char| c.is_ascii_lowercase()), "{pointer}: {id}");
        let statuses: Vec<u16> = operation["responses"]
            .as_object()
            .unwrap()
            .keys()
            .map(|s| s.parse().unwrap())
            .collect();
        assert!(statuses.iter().any(|status| (200..300).contains(status)), "{pointer}");
        assert!(statuses.iter().any(|status| (400..500).contains(status)), "{pointer}");
    }
    walk("", document, &mut |pointer, value| {
        assert!(!value.is_boolean() || !is_schema(pointer), "{pointer} is a boolean schema");
        let Some(values) = value.get("enum").and_then(Value::as_array) else { return };
        let types: BTreeSet<_> = values.iter().map(|value| value.is_string()).collect();
        assert!(value["type"].is_string() || types.len() > 1, "{pointer}: an enum without a type");
        let distinct: BTreeSet<_> = values.iter().map(Value::to_string).collect();
        assert_eq!(distinct.len(), values.len(), "{pointer}: a value stands twice");
    });
}

/// `true` for a JSON pointer that is a schema's by the name of its member.
fn is_schema(pointer: &str) -> bool {
    let mut steps = pointer.rsplit('/');
    let (last, parent) = (steps.next(), steps.next());
    matches!(last, Some("schema" | "items")) || parent == Some("properties")
}
