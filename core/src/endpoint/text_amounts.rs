//! Amounts as strings, for clients whose JSON reader knows binary floats alone: what the document
//! calls a number, integers excepted, is spelt out.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ETAG, HeaderMap, HeaderValue, VARY};
use serde_json::Value;

use super::Route;
use super::router::ServedApi;
use crate::http::reply::Reply;

/// The preference, in a `Prefer` header (RFC 7240).
const PREFERENCE: &str = "money=string";
/// Path of the document itself, which declares amounts.
const DOCUMENT: &str = "/openapi.json";
/// Largest body that is rewritten, in bytes. No answer of the API comes near it.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Keywords whose values are lists of schemas.
const CHOICES: [&str; 3] = ["anyOf", "oneOf", "allOf"];
/// Keywords whose values are schemas.
const OTHERS: [&str; 2] = ["items", "additionalProperties"];

/// `true` if the client asks for it.
pub fn wanted(headers: &HeaderMap) -> bool {
    let mut texts = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    texts.any(|text| {
        text.split(',').any(|one| {
            let one = one.split(';').next().unwrap_or_default();
            one.trim().replace('"', "").eq_ignore_ascii_case(PREFERENCE)
        })
    })
}

/// Spells the amounts of a success. The answer says so, and has another `ETag` than its numbers.
pub fn apply(api: &ServedApi, route: &Route, reply: &mut Reply) {
    if !api.has_amounts(route) || !reply.status.is_success() {
        return;
    }
    if route.path == DOCUMENT {
        let (text, tag) = api.spelt_document();
        reply.body = text;
        reply.headers.insert(ETAG, tag);
    } else if let Some(body) = spelt_body(api, route, reply) {
        reply.body = body;
        reply.headers.remove(ETAG);
    } else {
        return;
    }
    reply.set("preference-applied", PREFERENCE);
}

/// The body of an answer with its amounts spelt out; `None` if that cannot be.
fn spelt_body(api: &ServedApi, route: &Route, reply: &Reply) -> Option<Bytes> {
    let body = Some(&reply.body).filter(|body| body.len() <= BODY_BYTES_MAX)?;
    let schema = schema(api.document(), route, reply.status)?;
    let mut value = serde_json::from_slice(body).ok()?;
    spell(&mut value, schema, api.document());
    Some(value.to_string().into())
}

/// Says in an answer, spelt or not, that it depends on the preference, if its operation has amounts.
pub fn vary(api: &ServedApi, route: &Route, reply: &mut Reply) {
    if api.has_amounts(route) {
        reply.headers.append(VARY, HeaderValue::from_static("Prefer"));
    }
}

/// `true` if a success of the operation may have amounts, by the document, or declares them.
pub(super) fn are_declared(document: &Value, route: &Route) -> bool {
    let method = route.method.as_str().to_lowercase();
    let answers = document["paths"][route.path][method]["responses"].as_object();
    let successes = answers.into_iter().flatten().filter(|(status, _)| status.starts_with('2'));
    let mut schemas =
        successes.filter_map(|(_, one)| one.pointer("/content/application~1json/schema"));
    route.path == DOCUMENT || schemas.any(|schema| has_numbers(schema, document, &mut Vec::new()))
}

/// `true` if [`spell`] may find something in a value of the schema. `seen` are the references that were
/// followed, so that one that leads to itself ends.
fn has_numbers<'a>(schema: &'a Value, document: &'a Value, seen: &mut Vec<&'a str>) -> bool {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        if seen.contains(&reference) {
            return false;
        }
        seen.push(reference);
        let named = reference.strip_prefix('#').and_then(|target| document.pointer(target));
        return named.is_some_and(|named| has_numbers(named, document, seen));
    }
    takes_numbers(&schema["type"]) || parts(schema).any(|part| has_numbers(part, document, seen))
}

/// The schemas that a schema is made of.
fn parts(schema: &Value) -> impl Iterator<Item = &Value> {
    let choices = CHOICES.into_iter().filter_map(move |name| schema.get(name));
    let choices = choices.filter_map(Value::as_array).flatten();
    let members = schema.get("properties").and_then(Value::as_object);
    let members = members.into_iter().flat_map(|members| members.values());
    let others = OTHERS.into_iter().filter_map(move |name| schema.get(name));
    choices.chain(members).chain(others)
}

/// The document for clients that prefer strings: what [`apply`] spells out is declared as a string in
/// the format `decimal`, and spelt out in the examples. Bodies of requests stay as they are.
pub(super) fn spell_document(document: &Value) -> Value {
    let mut spelt = document.clone();
    let mut references = BTreeSet::new();
    let paths = spelt["paths"].as_object_mut().into_iter().flatten();
    let methods = paths.filter_map(|(_, methods)| methods.as_object_mut()).flatten();
    for (_, operation) in methods {
        let answers = operation["responses"].as_object_mut().into_iter().flatten();
        for (_, answer) in answers.filter(|(status, _)| status.starts_with('2')) {
            let Some(content) = answer.pointer_mut("/content/application~1json") else { continue };
            let schema = content["schema"].clone();
            if let Some(example) = content.get_mut("example") {
                spell(example, &schema, document);
            }
            follow(&schema, document, &mut references);
            declare_strings(&mut content["schema"]);
        }
    }
    for reference in references {
        let Some(target) = reference.strip_prefix('#') else { continue };
        if let Some(named) = spelt.pointer_mut(target) {
            declare_strings(named);
        }
    }
    spelt
}

/// Adds the references in a schema, and those in the schemas that they lead to.
fn follow(schema: &Value, document: &Value, references: &mut BTreeSet<String>) {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let named = reference.strip_prefix('#').and_then(|target| document.pointer(target));
        if let Some(named) = named.filter(|_| references.insert(reference.to_owned())) {
            follow(named, document, references);
        }
    }
    parts(schema).for_each(|part| follow(part, document, references));
}

/// Declares the numbers of a schema, integers excepted, as strings.
fn declare_strings(schema: &mut Value) {
    let Value::Object(keywords) = schema else { return };
    if let Some(kind) = keywords.get_mut("type").filter(|kind| takes_numbers(kind)) {
        match kind {
            Value::Array(kinds) => {
                for kind in kinds.iter_mut().filter(|kind| **kind == "number") {
                    *kind = "string".into();
                }
            }
            kind => *kind = "string".into(),
        }
        keywords.insert("format".to_owned(), "decimal".into());
    }
    for name in CHOICES {
        let choices = keywords.get_mut(name).and_then(Value::as_array_mut);
        choices.into_iter().flatten().for_each(declare_strings);
    }
    let members = keywords.get_mut("properties").and_then(Value::as_object_mut);
    for (_, member) in members.into_iter().flatten() {
        declare_strings(member);
    }
    for name in OTHERS {
        if let Some(part) = keywords.get_mut(name) {
            declare_strings(part);
        }
    }
}

/// The schema of an answer.
fn schema<'a>(document: &'a Value, route: &Route, status: StatusCode) -> Option<&'a Value> {
    let method = route.method.as_str().to_lowercase();
    let answer = &document["paths"][route.path][method]["responses"][status.as_str()];
    answer["content"]["application/json"].get("schema")
}

fn spell(value: &mut Value, schema: &Value, document: &Value) {
    let reference = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    let schema = reference.and_then(|target| document.pointer(target)).unwrap_or(schema);
    for choices in CHOICES {
        for choice in schema[choices].as_array().into_iter().flatten() {
            spell(value, choice, document);
        }
    }
    match value {
        Value::Number(number) if takes_numbers(&schema["type"]) => {
            *value = Value::String(number.to_string());
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| spell(item, &schema["items"], document));
        }
        Value::Object(members) => {
            for (name, member) in members {
                let own = schema["properties"].get(name.as_str());
                spell(member, own.unwrap_or(&schema["additionalProperties"]), document);
            }
        }
        _ => {}
    }
}

/// `true` for the type of numbers that need not be whole.
fn takes_numbers(kind: &Value) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "number"),
        kind => kind == "number",
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_preference_is_read_among_others() {
        let asks = |text: &'static str| {
            wanted(&HeaderMap::from_iter([(
                http::HeaderName::from_static("prefer"),
                HeaderValue::from_static(text),
            )]))
        };
        assert!(asks("money=string") && asks("wait=10, Money=\"string\"; x=1"));
        assert!(!asks("money=number") && !asks("moneystring") && !wanted(&HeaderMap::new()));
    }

    #[test]
    fn amounts_are_spelt_digit_by_digit_and_integers_stay() {
        let document = json!({ "components": { "schemas": {
            "Amount": { "properties": { "amount": { "type": ["number", "null"] } } },
        } } });
        let schema = json!({ "properties": {
            "id": { "type": "integer" },
            "fees": { "type": "array", "items": { "$ref": "#/components/schemas/Amount" } },
            "prices": { "additionalProperties": { "anyOf": [{ "type": "number" }] } },
        } });
        assert!(has_numbers(&schema, &document, &mut Vec::new()));
        let text = r#"{"id":7,"fees":[{"amount":0.10000000000000000001},{"amount":null}],"prices":{"BTC-EUR":50000.00}}"#;
        let mut value = serde_json::from_str(text).unwrap();
        spell(&mut value, &schema, &document);
        let spelt = r#"{"id":7,"fees":[{"amount":"0.10000000000000000001"},{"amount":null}],"prices":{"BTC-EUR":"50000.00"}}"#;
        assert_eq!(value.to_string(), spelt);
    }

    #[test]
    fn the_document_declares_amounts_as_they_are_spelt() {
        let answer = |status: &str, schema: Value, example: Value| {
            json!({ status: { "content": { "application/json": {
                "schema": schema, "example": example,
            } } } })
        };
        let reference = json!({ "$ref": "#/components/schemas/Quote" });
        let amount = json!({ "type": ["number", "null"], "description": "Fiat." });
        let quote = json!({ "properties": {
            "fiat": amount,
            "id": { "type": "integer" },
            "next": { "$ref": "#/components/schemas/Quote" },
        } });
        let example = json!([{ "fiat": 2.50, "id": 7, "next": { "fiat": null } }]);
        let document = json!({
            "paths": { "/quotes": { "post": {
                "requestBody": { "content": { "application/json": { "schema": amount } } },
                "responses": answer("200", json!({ "type": "array", "items": reference }), example),
            } } },
            "components": { "schemas": { "Quote": quote, "Offer": quote } },
        });
        let spelt = spell_document(&document);
        let declared = spelt["components"]["schemas"]["Quote"]["properties"].clone();
        let text = json!({
            "type": ["string", "null"], "description": "Fiat.", "format": "decimal",
        });
        assert_eq!(declared["fiat"], text);
        assert_eq!((&declared["id"], &declared["next"]), (&quote["properties"]["id"], &reference));
        // Only what an answer leads to.
        assert_eq!(spelt["components"]["schemas"]["Offer"], quote);
        let [spelt, plain] = [&spelt, &document].map(|it| &it["paths"]["/quotes"]["post"]);
        assert_eq!(spelt["requestBody"], plain["requestBody"]);
        let content = &spelt["responses"]["200"]["content"]["application/json"];
        assert_eq!(
            content["example"][0],
            json!({ "fiat": "2.5", "id": 7, "next": { "fiat": null } })
        );
    }

    #[test]
    fn a_schema_without_amounts_has_none_even_if_it_names_itself() {
        let document = json!({ "tree": { "properties": {
            "id": { "type": "integer" },
            "children": { "type": "array", "items": { "$ref": "#/tree" } },
        }, "additionalProperties": false } });
        assert!(!has_numbers(&document["tree"], &document, &mut Vec::new()));
    }
}
