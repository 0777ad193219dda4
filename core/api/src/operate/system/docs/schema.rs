//! JSON schemas as text: the subset that the document uses.

use maud::{Markup, html};
use serde_json::Value;

const COMPONENTS: &str = "#/components/schemas/";

/// A schema's type, enumerated values and bounds, in a few words; components are links.
pub(super) fn kind(schema: &Value) -> Markup {
    if let Some(name) = schema["$ref"].as_str().and_then(|target| target.strip_prefix(COMPONENTS)) {
        return html! { a href={ "/docs/models#" (name) } { (name) } };
    }
    if let Some(values) = schema["enum"].as_array() {
        return html! {
            @for (index, value) in values.iter().enumerate() {
                @if index > 0 { " · " }
                code { (plain(value)) }
            }
        };
    }
    if let Some(choices) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
        return html! {
            @for (index, choice) in choices.iter().enumerate() {
                @if index > 0 { " · " }
                (kind(choice))
            }
        };
    }
    if !schema["const"].is_null() {
        return html! { code { (plain(&schema["const"])) } };
    }
    if schema["items"].is_object() {
        return html! { "list of " (kind(&schema["items"])) };
    }
    let values = schema.get("additionalProperties").filter(|values| values.is_object());
    if let Some(values) = values.filter(|_| !schema["properties"].is_object()) {
        return html! { "object by name of " (kind(values)) };
    }
    html! { (types(schema)) (bounds(schema)) (known(schema)) }
}

/// Known values of a schema that takes others too.
fn known(schema: &Value) -> Markup {
    html! {
        @for (index, value) in schema["examples"].as_array().into_iter().flatten().enumerate() {
            @if index == 0 { ": " } @else { " · " }
            code { (plain(value)) }
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn types(schema: &Value) -> String {
    let name = |kind: &Value| kind.as_str().unwrap_or_default().to_owned();
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().map(name).collect::<Vec<_>>().join(" or "),
        Value::String(one) => one.clone(),
        _ => "anything".to_owned(),
    };
    match schema["format"].as_str() {
        Some(format) => format!("{types} ({format})"),
        None => types,
    }
}

fn bounds(schema: &Value) -> Markup {
    let bound = |name: &str| schema[name].as_number().map(ToString::to_string);
    let min = bound("minimum").or_else(|| bound("minLength"));
    let max = bound("maximum").or_else(|| bound("maxLength"));
    let unit = if schema.get("maxLength").is_some() { " characters" } else { "" };
    html! {
        @match (min, max) {
            (Some(min), Some(max)) => { ", " (min) " to " (max) (unit) }
            (Some(min), None) => { ", from " (min) (unit) }
            (None, Some(max)) => { ", up to " (max) (unit) }
            (None, None) => {}
        }
        @if let Some(pattern) = schema["pattern"].as_str() { " " code { (pattern) } }
    }
}

/// A schema as a table: a row for each member, or for each constant.
pub(super) fn table(schema: &Value) -> Markup {
    if let Some(members) = schema["properties"].as_object() {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        return html! {
            table {
                @for (name, member) in members {
                    tr {
                        th scope="row" { code { (name) } }
                        td {
                            (kind(member))
                            @if !required.iter().any(|known| known == name) { i { ", optional" } }
                        }
                        td { (super::reference::text(&member["description"])) }
                    }
                    @if member["properties"].is_object() {
                        tr { td {} td colspan="2" { (table(member)) } }
                    }
                }
            }
        };
    }
    if schema["items"]["properties"].is_object() {
        return html! { p { "A list of objects:" } (table(&schema["items"])) };
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        return html! {
            table {
                @for choice in choices {
                    tr {
                        th scope="row" { code { (plain(&choice["const"])) } }
                        td { (super::reference::text(&choice["title"])) }
                        td { (super::reference::text(&choice["description"])) }
                    }
                }
            }
        };
    }
    html! { p { (kind(schema)) } }
}
