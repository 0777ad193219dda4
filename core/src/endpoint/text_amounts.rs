//! Amounts as strings, for clients whose JSON reader knows binary floats alone: what the document
//! calls a number, integers excepted, is spelt out.

use http::StatusCode;
use http::header::{ETAG, HeaderMap, HeaderValue, VARY};
use serde_json::Value;

use super::Route;
use super::router::ServedApi;
use crate::http::reply::Reply;

/// The preference, in a `Prefer` header (RFC 7240).
const PREFERENCE: &str = "money=string";
/// Largest body that is rewritten, in bytes. No answer of the API comes near it.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

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
    let may_have = api.has_amounts(route) && reply.status.is_success();
    if !may_have || reply.body.len() > BODY_BYTES_MAX {
        return;
    }
    let Some(schema) = schema(api.document(), route, reply.status) else { return };
    let Ok(mut value) = serde_json::from_slice(&reply.body) else { return };
    spell(&mut value, schema, api.document());
    reply.body = value.to_string().into();
    reply.headers.remove(ETAG);
    reply.set("preference-applied", PREFERENCE);
}

/// Says in an answer, spelt or not, that it depends on the preference, if its operation has amounts.
pub fn vary(api: &ServedApi, route: &Route, reply: &mut Reply) {
    if api.has_amounts(route) {
        reply.headers.append(VARY, HeaderValue::from_static("Prefer"));
    }
}

/// `true` if a success of the operation may have amounts, by the document.
pub(super) fn are_declared(document: &Value, route: &Route) -> bool {
    let method = route.method.as_str().to_lowercase();
    let answers = document["paths"][route.path][method]["responses"].as_object();
    let successes = answers.into_iter().flatten().filter(|(status, _)| status.starts_with('2'));
    let mut schemas =
        successes.filter_map(|(_, one)| one.pointer("/content/application~1json/schema"));
    schemas.any(|schema| has_numbers(schema, document, &mut Vec::new()))
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
    let choices = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|name| schema.get(name));
    let choices = choices.filter_map(Value::as_array).flatten();
    let members = schema.get("properties").and_then(Value::as_object);
    let members = members.into_iter().flat_map(|members| members.values());
    let others = ["items", "additionalProperties"].into_iter().filter_map(|name| schema.get(name));
    let mut parts = choices.chain(members).chain(others);
    takes_numbers(&schema["type"]) || parts.any(|part| has_numbers(part, document, seen))
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
    for choices in ["anyOf", "oneOf", "allOf"] {
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
    fn a_schema_without_amounts_has_none_even_if_it_names_itself() {
        let document = json!({ "tree": { "properties": {
            "id": { "type": "integer" },
            "children": { "type": "array", "items": { "$ref": "#/tree" } },
        }, "additionalProperties": false } });
        assert!(!has_numbers(&document["tree"], &document, &mut Vec::new()));
    }
}
