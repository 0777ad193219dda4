//! The curl command of an operation.

use serde_json::Value;

/// The command for an operation. Values that only the reader has are shell variables: `$BASE`, the
/// credentials, the segments of the path.
pub(super) fn command(method: &str, path: &str, operation: &Value) -> String {
    let mut lines = vec![format!("curl \"$BASE{}{}\"", filled(path), query(operation))];
    let body = &operation["requestBody"]["content"]["application/json"]["example"];
    if method != "get" && (method != "post" || body.is_null()) {
        lines[0] = lines[0].replacen("curl", &format!("curl -X {}", method.to_uppercase()), 1);
    }
    lines.extend(credentials(operation).iter().map(|header| format!("-H \"{header}\"")));
    if !body.is_null() {
        lines.push("-H \"Content-Type: application/json\"".to_owned());
        lines.push(format!("-d '{}'", body.to_string().replace('\'', r"'\''")));
    }
    lines.join(" \\\n  ")
}

/// The path with shell variables for its parameters: `/orders/{id}` as `/orders/$ID`.
fn filled(path: &str) -> String {
    let segments = path.split('/').map(|segment| {
        match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => variable(name),
            None => segment.to_owned(),
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

/// Required query parameters.
fn query(operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let required = parameters.filter(|p| p["in"] == "query" && p["required"] == true);
    let pairs: Vec<_> = required
        .filter_map(|parameter| parameter["name"].as_str())
        .map(|name| format!("{name}={}", variable(name)))
        .collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

fn variable(name: &str) -> String {
    let mut text = String::from("$");
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

/// Headers of the first security requirement with an API key.
fn credentials(operation: &Value) -> Vec<&'static str> {
    let ways = operation["security"].as_array().into_iter().flatten();
    let by_key = ways.filter_map(Value::as_object).find(|way| way.contains_key("ApiKey"));
    let Some(way) = by_key else { return Vec::new() };
    let header = |name: &String| match name.as_str() {
        "ApiKey" => Some("X-Api-Key: $API_KEY"),
        "UserToken" => Some("User-Authorization: Bearer $USER_TOKEN"),
        "UserIdentifier" => Some("User-Identifier: $USER_IDENTIFIER"),
        _ => None,
    };
    way.keys().filter_map(header).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_read_names_what_the_reader_has() {
        let operation = json!({
            "security": [{ "ApiKey": [], "UserToken": [] }],
            "parameters": [
                { "in": "query", "name": "emailAddress", "required": true },
                { "in": "query", "name": "limit", "required": false },
            ],
        });
        assert_eq!(
            command("get", "/orders/{id}", &operation),
            "curl \"$BASE/orders/$ID?emailAddress=$EMAIL_ADDRESS\" \\\n  \
             -H \"X-Api-Key: $API_KEY\" \\\n  -H \"User-Authorization: Bearer $USER_TOKEN\""
        );
    }

    #[test]
    fn a_body_survives_the_shell() {
        let body = json!({ "application/json": { "example": { "name": "O'Hara" } } });
        let operation = json!({ "requestBody": { "content": body } });
        let command = command("patch", "/user", &operation);
        assert!(command.starts_with("curl -X PATCH \"$BASE/user\""));
        assert!(command.ends_with(r#"-d '{"name":"O'\''Hara"}'"#));
    }
}
