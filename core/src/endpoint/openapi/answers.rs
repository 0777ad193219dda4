//! Answers that many operations share: errors, and the headers that come with every answer.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::endpoint::{Body, Cache, Route};
use crate::platform::error::Code;

/// Answers that the edge may give to any request, with the code and what they mean.
const SHARED: [(u16, &str, Code, &str); 7] = [
    (408, "TooSlow", Code::RequestMalformed, "The body came slower than 1 kB/s."),
    (413, "TooLarge", Code::RequestMalformed, "The body is larger than the endpoint takes."),
    (414, "UrlTooLong", Code::RequestMalformed, "The URL is longer than 8 KiB."),
    (
        429,
        "TooMany",
        Code::RateLimited,
        "A rate is exceeded: `RateLimit` says which one, `Retry-After` when to go on.",
    ),
    (431, "HeadTooLarge", Code::RequestMalformed, "The headers are larger than 16 KiB together."),
    (
        500,
        "Failed",
        Code::GeneralError,
        "Our fault. The request may or may not have had its effect.",
    ),
    (503, "Unavailable", Code::GeneralError, "Something is down or overloaded; try again as told."),
];

/// Headers by the name of their component: name on the wire, whether numeric, meaning.
const HEADERS: [(&str, &str, bool, &str); 10] = [
    ("RequestId", "X-Request-Id", false, "The request's own if it is well formed, else a new one."),
    ("RateLimitPolicy", "RateLimit-Policy", false, "The rates that apply."),
    ("RateLimit", "RateLimit", false, "The requests that are left of them."),
    ("RetryAfter", "Retry-After", true, "Seconds until another try makes sense."),
    (
        "ETag",
        "ETag",
        false,
        "Ask with it in `If-None-Match`: an answer that has not changed is 304.",
    ),
    ("CatalogVersion", "X-Catalog-Version", false, "Version of the catalogue that this shows."),
    ("IdempotencyReplayed", "Idempotency-Replayed", false, "`true` on an answer given before."),
    (
        "Deprecation",
        "Deprecation",
        false,
        "Since when it is deprecated: `@` and seconds since 1970.",
    ),
    ("Sunset", "Sunset", false, "Until when it is served, as an HTTP date."),
    ("Successor", "Link", false, "The operation that replaces it, as `successor-version`."),
];

/// The envelope and what is in it.
pub(super) fn schemas() -> Map<String, Value> {
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let meanings: Vec<_> =
        Code::ALL.iter().map(|code| format!("{} {}", code.message(), code.solution())).collect();
    let text = |about: &str| json!({ "type": "string", "description": about });
    let schemas = json!({
        "ErrorCode": {
            "type": "string",
            "description": "The code of an error, which never changes its meaning.",
            "enum": codes,
            "x-enum-descriptions": meanings,
        },
        "Error": {
            "type": "object",
            "description": "One thing that is wrong with a request.",
            "properties": {
                "code": {
                    "$ref": "#/components/schemas/ErrorCode",
                    "description": "The code.",
                },
                "message": text("The error in a sentence, always the same for this code."),
                "solution": text("Advice; it may name the member or the bound."),
                "field": text("The member of the request that violates the rule, if it is one."),
                "documentation": {
                    "type": "string",
                    "format": "uri-reference",
                    "description": "The explanation of the code, relative to this host.",
                },
            },
            "required": ["code", "message", "solution", "documentation"],
        },
        "Errors": {
            "type": "object",
            "description": "The body of every answer that is no success.",
            "properties": {
                "errors": {
                    "type": "object",
                    "description": "By code: everything that this stage of checks found.",
                    "minProperties": 1,
                    "additionalProperties": { "$ref": "#/components/schemas/Error" },
                },
            },
            "required": ["errors"],
        },
    });
    match schemas {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    }
}

/// Headers of a deprecated operation.
const DEPRECATED: [&str; 3] = ["Deprecation", "Sunset", "Successor"];

/// Components that answers refer to.
pub(super) fn headers() -> Value {
    let header = |(component, _, number, about): &(&str, &str, bool, &str)| {
        let kind = if *number { "integer" } else { "string" };
        ((*component).to_owned(), json!({ "description": about, "schema": { "type": kind } }))
    };
    Value::Object(HEADERS.iter().map(header).collect())
}

/// References to headers, by their names on the wire.
pub(super) fn refer(components: &[&str]) -> Value {
    let rows = HEADERS.iter().filter(|row| components.contains(&row.0));
    let refer = |(component, name, ..): &(&str, &str, bool, &str)| {
        let target = format!("#/components/headers/{component}");
        ((*name).to_owned(), json!({ "$ref": target }))
    };
    Value::Object(rows.map(refer).collect())
}

/// The shared answers, as components.
pub(super) fn shared() -> Value {
    let answer = |(status, name, code, about): &(u16, &str, Code, &str)| {
        let headers: &[_] = match status {
            429 => &["RequestId", "RetryAfter", "RateLimitPolicy", "RateLimit"],
            503 => &["RequestId", "RetryAfter"],
            _ => &["RequestId"],
        };
        ((*name).to_owned(), envelope(about, &[*code], headers))
    };
    Value::Object(SHARED.iter().map(answer).collect())
}

/// An error answer with one or more of these codes.
fn envelope(about: &str, codes: &[Code], headers: &[&str]) -> Value {
    let names: Vec<_> = codes.iter().map(|code| code.as_str()).collect();
    let first = codes.first().map(|code| {
        json!({ "errors": { code.as_str(): {
            "code": code.as_str(), "message": code.message(), "solution": code.solution(),
            "documentation": code.documentation(),
        } } })
    });
    json!({
        "description": about,
        "headers": refer(headers),
        "content": { "application/json": {
            "schema": {
                "$ref": "#/components/schemas/Errors",
                "properties": { "errors": {
                    "description": "By code: those of this status.",
                    "propertyNames": { "enum": names },
                } },
            },
            "example": first,
        } },
    })
}

/// The errors of one operation by status: its own, then references to what all share.
pub(super) fn errors(route: &Route) -> BTreeMap<u16, Value> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    let mut add = |status, code| {
        let codes = by_status.entry(status).or_default();
        if !codes.contains(&code) {
            codes.push(code);
        }
    };
    for code in route.errors.iter().chain(route.caller_errors) {
        add(code.status(), *code);
    }
    // A body that is not what it says is refused whether or not it is wanted.
    add(400, Code::RequestMalformed);
    if route.path.contains('{') {
        add(404, Code::RouteNotFound);
    }
    if route.idempotent {
        add(409, Code::GeneralError);
        add(422, Code::GeneralError);
    }
    if let Body::JsonWithImage(_) = route.body {
        add(413, Code::ImageInvalid);
    }
    for (status, code) in route.doc.also {
        add(*status, *code);
    }
    let mut headers = vec!["RequestId"];
    if route.client {
        headers.extend(["RateLimitPolicy", "RateLimit"]);
    }
    if route.deprecation.is_some() {
        headers.extend(DEPRECATED);
    }
    let mut answers = BTreeMap::new();
    for (status, mut codes) in by_status {
        codes.sort_unstable();
        // The endpoint's own say more in an example than the caller's.
        if let Some(own) = codes.iter().position(|code| route.errors.contains(code)) {
            codes[..=own].rotate_right(1);
        }
        answers.insert(status, envelope(meaning(status), &codes, &headers));
    }
    for (status, name, code, _) in SHARED {
        let shared = json!({ "$ref": format!("#/components/responses/{name}") });
        let image = status == 413 && route.body.bound().1 != code;
        if !image {
            answers.insert(status, shared);
        }
    }
    answers
}

const fn meaning(status: u16) -> &'static str {
    match status {
        404 => "There is no such thing for this caller.",
        409 => "The state forbids it, or the first request with the `Idempotency-Key` still runs.",
        413 => "The body is larger than the endpoint takes.",
        422 => "The `Idempotency-Key` came with another body before.",
        _ => "Refused: all codes that one stage of checks found.",
    }
}

/// Headers of a success.
pub(super) fn of_success(route: &Route) -> Value {
    let mut headers = vec!["RequestId"];
    if route.client {
        headers.extend(["RateLimitPolicy", "RateLimit"]);
    }
    if route.cache == Cache::Revalidate {
        headers.push("ETag");
    }
    if route.shows_catalogue() {
        headers.push("CatalogVersion");
    }
    if route.idempotent {
        headers.push("IdempotencyReplayed");
    }
    if route.deprecation.is_some() {
        headers.extend(DEPRECATED);
    }
    refer(&headers)
}
