//! Paths, queries and bodies of calls.

use std::fmt::Display;

use http::Method;
use rampart_core::http::uri;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Body, StartupError};
use crate::startup_error::Context as _;

/// The query of what is given, with its question mark; empty when nothing is.
pub(super) fn query<N: Display>(criteria: impl IntoIterator<Item = (N, Option<String>)>) -> String {
    let given = criteria
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", uri::escape(&value?))));
    let given: Vec<String> = given.collect();
    if given.is_empty() { String::new() } else { format!("?{}", given.join("&")) }
}

/// The path of these parts.
pub(super) fn path(parts: &[&str]) -> String {
    parts.iter().map(|part| uri::escape(part)).collect::<Vec<_>>().join("/")
}

/// Method, path and body of a call, such as `POST partners/{slug}/staff`, with a command's
/// arguments: `{slug}` is replaced by the argument of that name. A GET sends the others, and those of
/// `page`, as its query; any other method sends them as its body, or `members` alone if there are some.
///
/// # Errors
/// When an argument cannot be sent, or the path names one that is missing.
pub(super) fn request(
    call: &str,
    arguments: &impl Serialize,
) -> Result<(Method, String, Body), StartupError> {
    let mut arguments = match serde_json::to_value(arguments).map_err(|error| error.to_string())? {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    if let Some(Value::Object(page)) = arguments.shift_remove("page") {
        arguments.extend(page);
    }
    let (method, template) = call.split_once(' ').unwrap_or(("GET", call));
    let method = Method::from_bytes(method.as_bytes()).context(call)?;
    let mut parts = Vec::new();
    for part in template.split('/') {
        let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        parts.push(match name {
            Some(name) => {
                let value = arguments.shift_remove(name).and_then(text);
                uri::escape(&value.ok_or_else(|| format!("'{call}' lacks its {name}"))?)
            }
            None => part.to_owned(),
        });
    }
    let path = parts.join("/");
    if method == Method::GET {
        let criteria = arguments.into_iter().map(|(name, value)| (name, text(value)));
        return Ok((method, path + &query(criteria), Body::None));
    }
    let body = match arguments.shift_remove("members") {
        Some(members) => members.into(),
        None if arguments.is_empty() => Body::None,
        None => Body::Json(arguments.into()),
    };
    Ok((method, path, body))
}

/// An argument in a path or a query.
fn text(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        value => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(path: &str, arguments: Value) -> String {
        request(&format!("GET {path}"), &arguments).unwrap().1
    }

    fn sent(arguments: Value) -> Option<Value> {
        match request("PATCH partners/{slug}", &arguments).unwrap() {
            (Method::PATCH, path, Body::Json(body)) if path == "partners/acme" => Some(body),
            _ => None,
        }
    }

    #[test]
    fn a_query_has_what_is_given_and_nothing_else() {
        assert_eq!(read("orders", json!({"a": null, "b": null})), "orders");
        let given = json!({"page": {"after": null, "limit": 1}, "a": "x&y", "b": null});
        assert_eq!(read("orders", given), "orders?a=x%26y&limit=1");
    }

    #[test]
    fn no_part_of_a_path_leads_out_of_it() {
        let staff = read("partners/{slug}/staff", json!({"slug": "a/b?c"}));
        assert_eq!(staff, "partners/a%2Fb%3Fc/staff");
        assert_eq!(path(&["partners", "a/b?c", "staff"]), staff);
        assert!(request("GET partners/{slug}", &json!({"id": 1})).is_err());
    }

    #[test]
    fn a_member_takes_no_place_of_an_argument() {
        let members = json!({"slug": "other"});
        assert_eq!(sent(json!({"slug": "acme", "members": members})), Some(members));
        let body = json!({"name": null, "limit": 2});
        assert_eq!(sent(json!({"slug": "acme", "name": null, "limit": 2})), Some(body));
        assert_eq!(sent(json!({"slug": "acme"})), None);
    }
}
