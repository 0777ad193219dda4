//! Errors, held calls and credentials of the operators' API.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::answers::refer;
use crate::endpoint::Route;

/// An error by its status: name of the component, meaning, example of a reason.
pub(super) type PlainError = (u16, &'static str, &'static str, &'static str);

const ERRORS: [PlainError; 13] = [
    (400, "Malformed", "The body is not valid JSON.", "the body is not valid JSON"),
    (
        401,
        "Unauthorized",
        "The operator's token is missing or wrong.",
        "the admin token is missing or wrong",
    ),
    (
        403,
        "Forbidden",
        "The operator has none of the roles that the call needs, or a page of another origin asks.",
        "this call needs the role treasury or owner",
    ),
    (404, "NotFound", "Something that the path names does not exist.", "no such partner"),
    (408, "TooSlow", "The body came too slowly.", "the body comes too slowly"),
    (
        409,
        "Conflict",
        "The present state forbids it; nothing has changed.",
        "the version is the active one",
    ),
    (
        413,
        "TooLarge",
        "The body is larger than 4 MiB, or its JSON takes more than 64 MiB of memory.",
        "the body is too large",
    ),
    (415, "MediaType", "The body is of another media type.", "the body is application/json"),
    (421, "Misdirected", "`Host` names something else.", "the Host is not one of this listener"),
    (
        422,
        "Unprocessable",
        "A member or a parameter is not valid, missing or unknown; nothing has changed.",
        "name: 1 to 255 characters",
    ),
    (
        429,
        "LoginsLimited",
        "Too many logins from this address have failed.",
        "too many failed logins from this address",
    ),
    (500, "Failed", "Our fault; the log has the cause.", "something went wrong on our side"),
    (
        503,
        "Unavailable",
        "Something that we depend on is down or overloaded.",
        "something went wrong on our side",
    ),
];

/// The error.
pub(super) fn schemas() -> Map<String, Value> {
    let error = error_schema();
    let held = json!({
        "type": "object",
        "description": "A call that is not carried out yet.",
        "properties": {
            "approval": {
                "type": "string", "format": "uuid",
                "description": "The approval that another operator must grant.",
            },
            "state": {
                "type": "string", "enum": ["pending"],
                "description": "The approval's state.",
            },
            "message": { "type": "string", "description": "The next step, in words." },
        },
        "required": ["approval", "state", "message"],
    });
    Map::from_iter([("Error".to_owned(), error), ("HeldCall".to_owned(), held)])
}

/// The form of every error.
pub(super) fn error_schema() -> Value {
    json!({
        "type": "object",
        "description": "A refusal or a failure.",
        "properties": { "error": { "type": "string", "description": "The reason, in words." } },
        "required": ["error"],
    })
}

/// The headers of answers.
pub(super) fn headers() -> Value {
    headers_of(&["RequestId", "RetryAfter", "IdempotencyReplayed"])
}

/// Headers of answers by the names of their components.
pub(super) fn headers_of(components: &[&str]) -> Value {
    let headers = super::answers::headers();
    components.iter().map(|name| (*name, headers[*name].clone())).collect()
}

/// The errors, as components.
pub(super) fn shared() -> Value {
    let mut shared = shared_of(&ERRORS);
    shared.insert("Held".to_owned(), held());
    Value::Object(shared)
}

/// Errors as components.
pub(super) fn shared_of(errors: &[PlainError]) -> Map<String, Value> {
    let answer = |(status, name, about, reason): &PlainError| {
        let headers: &[_] = match status {
            429 | 503 => &["RequestId", "RetryAfter"],
            _ => &["RequestId"],
        };
        let answer = json!({
            "description": about,
            "headers": refer(headers),
            "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/Error" },
                "example": { "error": reason },
            } },
        });
        ((*name).to_owned(), answer)
    };
    errors.iter().map(answer).collect()
}

/// The answer to a call that waits for a second person.
fn held() -> Value {
    json!({
        "description": "Another operator must agree first; nothing has changed.",
        "headers": refer(&["RequestId"]),
        "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/HeldCall" },
            "example": {
                "approval": "0199a000-0000-7000-8000-00000000000d",
                "state": "pending",
                "message": "another operator must grant this approval; then make the same call again",
            },
        } },
    })
}

/// The errors of one operation by status.
pub(super) fn errors(route: &Route) -> BTreeMap<u16, Value> {
    let mut errors = errors_of(&ERRORS, route);
    if route.approval {
        errors.insert(202, json!({ "$ref": "#/components/responses/Held" }));
    }
    errors
}

/// Those of the errors with which the route may refuse, by status.
pub(super) fn errors_of(errors: &[PlainError], route: &Route) -> BTreeMap<u16, Value> {
    let refusals = route.refusals();
    let declared = errors
        .iter()
        .filter(|(status, ..)| refusals.iter().any(|refusal| refusal.as_u16() == *status));
    declared
        .map(|(status, name, ..)| {
            (*status, json!({ "$ref": format!("#/components/responses/{name}") }))
        })
        .collect()
}

/// The credentials.
pub(super) fn schemes() -> Value {
    json!({
        "OperatorToken": {
            "type": "http",
            "scheme": "bearer",
            "description": "An operator's own token, or that of the setting `admin.token`.",
        },
    })
}

/// The credentials of every operation.
pub(super) fn alternatives() -> Value {
    json!([{ "OperatorToken": [] }])
}
