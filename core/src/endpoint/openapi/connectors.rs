//! Errors and credentials of the connectors' API.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::operators::{PlainError, error_schema, errors_of, headers_of, shared_of};
use crate::endpoint::Route;

const ERRORS: [PlainError; 11] = [
    (400, "Malformed", "The body is not valid JSON.", "the body is not valid JSON"),
    (
        401,
        "Unauthorized",
        "The connector's token is missing or wrong.",
        "the connector's token is missing or wrong",
    ),
    (
        403,
        "Forbidden",
        "The event is not within the connector's capabilities; nothing has changed.",
        "kind: identity.completed is not within the connector's capabilities",
    ),
    (404, "NotFound", "The connector has no such command.", "no such command"),
    (408, "TooSlow", "The body came too slowly.", "the body comes too slowly"),
    (
        409,
        "Conflict",
        "The lease is lost, or the id was used for something else; nothing has changed.",
        "the lease is lost, or the command has its result",
    ),
    (413, "TooLarge", "The body is larger than 256 KiB.", "the body is too large"),
    (
        422,
        "Unprocessable",
        "A member is not valid or missing; nothing has changed.",
        "leaseSeconds: 10 to 600",
    ),
    (
        429,
        "ProofsLimited",
        "Too many wrong tokens came from this address.",
        "too many wrong tokens from this address",
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
    Map::from_iter([("Error".to_owned(), error_schema())])
}

/// The headers of answers.
pub(super) fn headers() -> Value {
    headers_of(&["RequestId", "RetryAfter"])
}

/// The errors, as components.
pub(super) fn shared() -> Value {
    Value::Object(shared_of(&ERRORS))
}

/// The errors of one operation by status.
pub(super) fn errors(route: &Route) -> BTreeMap<u16, Value> {
    errors_of(&ERRORS, route)
}

/// The credentials.
pub(super) fn schemes() -> Value {
    json!({
        "ConnectorToken": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token that an operator has issued to the connector.",
        },
    })
}

/// The credentials of every operation.
pub(super) fn alternatives() -> Value {
    json!([{ "ConnectorToken": [] }])
}
