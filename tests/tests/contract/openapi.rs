//! The OpenAPI document: complete, consistent in itself, and the one that was reviewed. That it is
//! true is checked with every request of this suite (`rampart_tests::document`).

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use http::Method;
use rampart_core::api::ENDPOINTS;
use rampart_core::endpoint::openapi::document;
use rampart_tests::document::{json_content, operation, violations};
use rampart_tests::world::World;
use serde_json::Value;

/// The reviewed document, from this package's folder.
const SNAPSHOT: &str = "fixtures/openapi.json";
/// With this variable set, the snapshot is written instead of compared.
const ACCEPT: &str = "RAMPART_ACCEPT";

/// Every operation of the document: its JSON pointer and itself.
fn operations() -> Vec<(String, &'static Value)> {
    let paths = document()["paths"].as_object().unwrap();
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
fn the_document_is_the_reviewed_one() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(SNAPSHOT);
    let now = serde_json::to_string_pretty(document()).unwrap() + "\n";
    if env::var_os(ACCEPT).is_some() {
        fs::write(&file, &now).unwrap();
        return;
    }
    let reviewed = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        reviewed == now,
        "the API's document has changed. If that is meant, `make openapi` accepts it; commit \
         tests/{SNAPSHOT} with the change. In short:\n{}",
        difference(&reviewed, &now),
    );
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
    let documented: BTreeSet<_> = operations().into_iter().map(|(pointer, _)| pointer).collect();
    let declared: BTreeSet<_> =
        ENDPOINTS.iter().map(|route| operation(route.path, &route.method)).collect();
    assert_eq!(documented, declared);
    let ids: BTreeSet<_> =
        operations().into_iter().map(|(_, o)| o["operationId"].as_str()).collect();
    assert_eq!(ids.len(), documented.len(), "an operation's id stands twice");
}

#[test]
fn every_operation_says_what_a_partner_must_know() {
    let mut lacking = String::new();
    let mut lacks = |pointer: &str, what: &str| {
        lacking += &format!("{pointer}: {what} (in `const DOC` of its endpoint)\n");
    };
    for (pointer, operation) in operations() {
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
        for content in contents.iter().filter_map(|content| json_content(content)) {
            let content = document().pointer(&content).unwrap();
            let is_free = content["schema"] == serde_json::json!({ "type": "object" });
            if content["example"].is_null() && !is_free {
                lacks(&pointer, "examples: `request` of the body, `answer` of the success");
            }
            if content["schema"].as_object().is_none_or(serde_json::Map::is_empty) {
                lacks(&pointer, "the form of its body");
            }
        }
    }
    assert!(lacking.is_empty(), "the document lacks:\n{lacking}");
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_used() {
    let mut targets = BTreeSet::new();
    walk("", document(), &mut |pointer, value| {
        let Some(target) = value.get("$ref").and_then(Value::as_str) else { return };
        let target = target.strip_prefix('#').unwrap();
        assert!(document().pointer(target).is_some(), "{pointer} refers to {target}");
        targets.insert(target);
    });
    for kind in ["schemas", "responses"] {
        for name in document()["components"][kind].as_object().unwrap().keys() {
            let pointer = format!("/components/{kind}/{name}");
            assert!(targets.contains(pointer.as_str()), "nothing refers to {pointer}");
            // A number is put behind a name that two types have.
            let numbered = name.ends_with(|c: char| c.is_ascii_digit()) && !name.ends_with("V1");
            assert!(!numbered || name.ends_with("V2"), "{name}: rename one of two types");
        }
    }
}

#[test]
fn every_example_is_valid() {
    let mut broken = String::new();
    let mut examples = 0;
    walk("", document(), &mut |pointer, value| {
        let Some(example) = value.get("example").filter(|_| value.get("schema").is_some()) else {
            return;
        };
        examples += 1;
        let violations = violations(&format!("{pointer}/schema"), example);
        if !violations.is_empty() {
            broken += &format!("{pointer}:\n{violations}");
        }
    });
    assert!(broken.is_empty(), "{broken}");
    assert!(examples > ENDPOINTS.len(), "looked elsewhere");
}

#[tokio::test]
async fn whoever_asks_gets_it_and_may_keep_it() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    let answer = acme.anonymous(Method::GET, "/openapi.json").send().await;
    answer.assert_status(200);
    assert_eq!(answer.json(), *document());
    assert_eq!(answer.json()["openapi"], "3.1.0");
    let tag = answer.header("etag").unwrap();
    let again = acme.anonymous(Method::GET, "/openapi.json").header("if-none-match", tag);
    again.send().await.assert_status(304);
}

#[tokio::test]
async fn what_needs_no_preparation_answers_as_documented() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    let simple = |route: &&rampart_core::endpoint::Route| {
        route.method == Method::GET && !route.path.contains('{')
    };
    let mut granted = 0;
    for route in ENDPOINTS.iter().filter(simple) {
        // The answer is held to the document as every other one.
        granted += u32::from(acme.get(route.path).await.status() == 200);
    }
    assert!(granted >= 8, "only {granted} answers were successes");
}
