//! Amounts as strings, for clients whose JSON reader knows binary floats alone: what the document
//! calls a number, integers excepted, is spelt out.

use http::StatusCode;
use http::header::{ETAG, HeaderMap};
use serde_json::Value;

use super::Route;
use super::router::ServedApi;
use crate::http::reply::Reply;

/// The preference, in a `Prefer` header (RFC 7240).
const PREFERENCE: &str = "money=string";
/// Largest body that is rewritten, in bytes. No answer of the API comes near it.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// `true` if the client asks for it.
pub(super) fn wanted(headers: &HeaderMap) -> bool {
    let mut texts = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    texts.any(|text| {
        text.split(',').any(|one| {
            let one = one.split(';').next().unwrap_or_default();
            one.trim().replace('"', "").eq_ignore_ascii_case(PREFERENCE)
        })
    })
}

/// Spells the amounts of a success. The answer says so, and has another `ETag` than its numbers.
pub(super) fn apply(api: &ServedApi, route: &Route, reply: &mut Reply) {
    if !reply.status.is_success() || reply.body.len() > BODY_BYTES_MAX {
        return;
    }
    let Some(schema) = schema(api.document(), route, reply.status) else { return };
    let Ok(mut value) = serde_json::from_slice(&reply.body) else { return };
    spell(&mut value, schema, api.document());
    reply.body = value.to_string().into();
    reply.headers.remove(ETAG);
    reply.set("preference-applied", PREFERENCE);
    reply.set("vary", "Prefer");
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
        let text = r#"{"id":7,"fees":[{"amount":0.10000000000000000001},{"amount":null}],"prices":{"BTC-EUR":50000.00}}"#;
        let mut value = serde_json::from_str(text).unwrap();
        spell(&mut value, &schema, &document);
        let spelt = r#"{"id":7,"fees":[{"amount":"0.10000000000000000001"},{"amount":null}],"prices":{"BTC-EUR":"50000.00"}}"#;
        assert_eq!(value.to_string(), spelt);
    }
}
