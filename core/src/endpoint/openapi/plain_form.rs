//! The schemas of a document in the form that generators of clients understand: what several
//! keywords of JSON Schema can say is said with the plainest of them.

use serde_json::{Map, Value, json};

/// Members whose values are data, not schemas.
const DATA: [&str; 5] = ["example", "examples", "default", "const", "enum"];

/// Rewrites every schema below a value of the document.
pub(super) fn rewrite(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rewrite),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if !DATA.contains(&name.as_str()) {
                    rewrite(member);
                }
            }
            name_by_values(members);
            list_values(members);
            take_any_item(members);
            take_any_member(members);
            close_by_names(members);
        }
        _ => {}
    }
}

/// Names of a form become values by name: few generators read `patternProperties`.
fn name_by_values(schema: &mut Map<String, Value>) {
    let Some(Value::Object(patterns)) = schema.get("patternProperties") else { return };
    let [(pattern, values)] = &patterns.iter().collect::<Vec<_>>()[..] else { return };
    let (names, values) = (json!({ "pattern": pattern }), (*values).clone());
    schema.remove("patternProperties");
    schema.insert("propertyNames".to_owned(), names);
    schema.insert("additionalProperties".to_owned(), values);
}

/// Constants to choose from become one `enum`, with what each means beside it.
fn list_values(schema: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = schema.get("oneOf") else { return };
    let mut values = Vec::new();
    let mut meanings = Vec::new();
    for choice in choices {
        if choice["type"] != "string" {
            return;
        }
        let about = choice["description"].as_str().unwrap_or_default();
        let own: Vec<_> = match (&choice["const"], &choice["enum"]) {
            (Value::String(value), _) => vec![json!(value)],
            (_, Value::Array(values)) => values.clone(),
            _ => return,
        };
        meanings.extend(own.iter().map(|_| json!(about)));
        values.extend(own);
    }
    schema.remove("oneOf");
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), Value::Array(values));
    schema.insert("x-enum-descriptions".to_owned(), Value::Array(meanings));
}

/// An array of anything says so.
fn take_any_item(schema: &mut Map<String, Value>) {
    let is_array = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|kind| kind == "array"),
        Some(one) => one == "array",
        None => false,
    };
    if is_array && !schema.contains_key("items") {
        schema.insert("items".to_owned(), json!({}));
    }
}

/// Other members of any kind are no boolean schema.
fn take_any_member(schema: &mut Map<String, Value>) {
    if schema.get("additionalProperties") == Some(&Value::Bool(true)) {
        schema.insert("additionalProperties".to_owned(), json!({}));
    }
}

/// A form that takes no other members lists their names: `false` would be a boolean schema.
fn close_by_names(schema: &mut Map<String, Value>) {
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    if !is_closed || schema.contains_key("patternProperties") {
        return;
    }
    schema.remove("additionalProperties");
    let members = schema.get("properties").and_then(Value::as_object);
    let names: Vec<_> = members.into_iter().flat_map(Map::keys).cloned().collect();
    if names.is_empty() {
        schema.insert("maxProperties".to_owned(), json!(0));
    } else {
        let names = json!({ "type": "string", "enum": names });
        schema.insert("propertyNames".to_owned(), names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(mut value: Value) -> Value {
        rewrite(&mut value);
        value
    }

    #[test]
    fn constants_become_an_enum_with_their_meanings() {
        let choices = json!({ "oneOf": [
            { "type": "string", "const": "a", "description": "First." },
            { "type": "string", "enum": ["b", "c"] },
        ] });
        let plain = json!({
            "type": "string",
            "enum": ["a", "b", "c"],
            "x-enum-descriptions": ["First.", "", ""],
        });
        assert_eq!(rewritten(choices), plain);
        let mixed = json!({ "oneOf": [{ "type": "string", "const": "a" }, { "type": "null" }] });
        assert_eq!(rewritten(mixed.clone()), mixed);
    }

    #[test]
    fn names_of_a_form_become_values_by_name() {
        let pairs = json!({
            "type": "object",
            "patternProperties": { "^[A-Z]+$": { "type": "number" } },
            "additionalProperties": false,
        });
        let plain = json!({
            "type": "object",
            "propertyNames": { "pattern": "^[A-Z]+$" },
            "additionalProperties": { "type": "number" },
        });
        assert_eq!(rewritten(pairs), plain);
    }

    #[test]
    fn a_closed_form_lists_the_names_of_its_members() {
        let closed = json!({
            "type": "object",
            "properties": { "a": { "type": "string" } },
            "additionalProperties": false,
        });
        let plain = json!({
            "type": "object",
            "properties": { "a": { "type": "string" } },
            "propertyNames": { "type": "string", "enum": ["a"] },
        });
        assert_eq!(rewritten(closed), plain);
        let empty = json!({ "type": "object", "additionalProperties": false });
        assert_eq!(rewritten(empty), json!({ "type": "object", "maxProperties": 0 }));
    }

    #[test]
    fn no_array_is_without_items_and_examples_stay() {
        let any = json!({ "type": ["array", "null"], "example": { "type": "array" } });
        let plain =
            json!({ "type": ["array", "null"], "items": {}, "example": { "type": "array" } });
        assert_eq!(rewritten(any), plain);
        let open = json!({ "type": "object", "additionalProperties": true });
        assert_eq!(rewritten(open), json!({ "type": "object", "additionalProperties": {} }));
    }
}
