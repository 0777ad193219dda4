//! A form on an operation's page that sends the request with the reader's key.

use maud::{Markup, html};
use serde_json::Value;

use super::samples::{self, Credential};

/// The header that takes an API key.
const KEY: &str = "X-Api-Key";
/// Rows of the body's field at first.
const BODY_ROWS: usize = 12;

/// The form. Its script shows it, and sends nothing with a key that is none for tests.
pub(super) fn form(method: &str, path: &str, operation: &Value) -> Markup {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let example = &operation["requestBody"]["content"]["application/json"]["example"];
    html! {
        section id="try" hidden {
            h2 { "Try it" }
            p {
                "The request goes to this service, and only with a key for tests. The page keeps \
                 nothing of it."
            }
            form data-method=(method.to_uppercase()) data-path=(path) {
                @for Credential { header, scheme, .. } in samples::credentials(operation) {
                    (header_field(header, scheme))
                }
                @for parameter in operation["parameters"].as_array().into_iter().flatten() {
                    @let required = parameter["required"] == true;
                    @let (name, place) = (text(&parameter["name"]), text(&parameter["in"]));
                    (field(&name, &place, required, &parameter["schema"]["enum"]))
                }
                @if !example.is_null() {
                    label {
                        "Body"
                        textarea name="body" rows=(BODY_ROWS) spellcheck="false" {
                            (samples::pretty(example))
                        }
                    }
                }
                div { button type="submit" { "Send" } }
            }
            p role="status" {}
            pre tabindex="0" hidden {}
        }
    }
}

/// A field for a credential. Its script puts the scheme before the value.
fn header_field(header: &str, scheme: &str) -> Markup {
    let kind = if header == KEY { "password" } else { "text" };
    html! {
        label {
            span { (header) @if header != KEY { i { ", optional" } } }
            input type=(kind) name=(header) data-in="header" required[header == KEY]
                data-scheme=[Some(scheme).filter(|scheme| !scheme.is_empty())]
                autocomplete="off" spellcheck="false";
        }
    }
}

/// A field for a parameter of the path, the query or a header, which may have a list of values.
fn field(name: &str, place: &str, required: bool, values: &Value) -> Markup {
    html! {
        label {
            span { (name) @if !required { i { ", optional" } } }
            @if let Some(values) = values.as_array() {
                select name=(name) data-in=(place) required[required] {
                    option value="" { "–" }
                    @for value in values.iter().filter_map(Value::as_str) { option { (value) } }
                }
            } @else {
                input type="text" name=(name) data-in=(place) required[required]
                    autocomplete="off" spellcheck="false";
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_form_asks_for_what_the_request_needs() {
        let operation = json!({
            "security": [{}, {"ApiKey": [], "UserToken": []}],
            "parameters": [
                {"name": "id", "in": "path", "required": true},
                {"name": "limit", "in": "query"},
                {"name": "side", "in": "query", "schema": {"enum": ["buy", "sell"]}},
            ],
            "requestBody": {"content": {"application/json": {"example": {"name": "<Ada>"}}}},
        });
        let form = form("post", "/x/{id}", &operation).into_string();
        for part in [
            r#"<form data-method="POST" data-path="/x/{id}">"#,
            r#"<input type="password" name="X-Api-Key" data-in="header" required"#,
            r#"<input type="text" name="User-Authorization" data-in="header" data-scheme="Bearer ""#,
            r#"<input type="text" name="id" data-in="path" required"#,
            r#"<span>limit<i>, optional</i></span>"#,
            "<option>sell</option>",
            "&lt;Ada&gt;",
        ] {
            assert!(form.contains(part), "{part} is not in {form}");
        }
    }

    #[test]
    fn nothing_is_asked_for_that_the_request_does_not_take() {
        let operation = Value::Object(serde_json::Map::new());
        let form = form("get", "/x", &operation).into_string();
        assert!(!form.contains("<input") && !form.contains("<textarea"), "{form}");
    }
}
