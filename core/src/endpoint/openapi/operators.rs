//! Errors and credentials of the operators' API.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::answers::refer;
use crate::endpoint::Route;

/// Errors by status: name of the component, meaning, example of a reason.
const ERRORS: [(u16, &str, &str, &str); 9] = [
    (400, "Malformed", "The body is not valid JSON.", "the body is not valid JSON"),
    (
        401,
        "Unauthorized",
        "The operator's token is missing or wrong.",
        "the admin token is missing or wrong",
    ),
    (404, "NotFound", "Something that the path names does not exist.", "no such partner"),
    (408, "TooSlow", "The body came too slowly.", "the body comes too slowly"),
    (
        409,
        "Conflict",
        "The present state forbids it; nothing has changed.",
        "the version is the active one",
    ),
    (413, "TooLarge", "The body is larger than 4 MiB.", "the body is too large"),
    (
        422,
        "Unprocessable",
        "A member or a parameter is not valid, missing or unknown; nothing has changed.",
        "name: 1 to 255 characters",
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
    let error = json!({
        "type": "object",
        "description": "A refusal or a failure.",
        "properties": { "error": { "type": "string", "description": "The reason, in words." } },
        "required": ["error"],
    });
    Map::from_iter([("Error".to_owned(), error)])
}

/// The headers that come with every answer.
pub(super) fn headers() -> Value {
    json!({ "RequestId": super::answers::headers()["RequestId"] })
}

/// The errors, as components.
pub(super) fn shared() -> Value {
    let answer = |(_, name, about, reason): &(u16, &str, &str, &str)| {
        let answer = json!({
            "description": about,
            "headers": refer(&["RequestId"]),
            "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/Error" },
                "example": { "error": reason },
            } },
        });
        ((*name).to_owned(), answer)
    };
    Value::Object(ERRORS.iter().map(answer).collect())
}

/// The errors of one operation by status.
pub(super) fn errors(route: &Route) -> BTreeMap<u16, Value> {
    let refusals = route.refusals();
    let declared = ERRORS
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
            "description": "The token of the setting `admin.token`.",
        },
    })
}

/// The credentials of every operation.
pub(super) fn alternatives() -> Value {
    json!([{ "OperatorToken": [] }])
}
