//! One operation of the document.

use http::Method;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::doc::{Doc, Kind, Member};
use super::{Api, Schemas, answers, connectors, operators, security};
use crate::endpoint::{Body, Cache, Route, Success};
use crate::http::Surface;

pub(super) fn write(api: &Api, route: &Route, tag: &str, schemas: &mut Schemas) -> Value {
    let doc = &route.doc;
    let id = operation_id(api, route);
    let mut operation = json!({ "operationId": id, "tags": [tag], "summary": doc.summary });
    operation["description"] = match doc.details {
        "" => json!(format!("{}.", doc.summary)),
        details => json!(details),
    };
    if let Some(deprecation) = route.deprecation {
        let description = operation["description"].as_str().unwrap_or_default();
        operation["description"] = format!("{description}\n\n{}", deprecation.describe()).into();
        operation["deprecated"] = true.into();
    }
    operation["security"] = match route.surface {
        Surface::Partners => security::simplest(route),
        Surface::Operators => operators::alternatives(),
        Surface::Connectors => connectors::alternatives(),
    };
    if route.surface == Surface::Partners && route.client {
        operation["x-credentials"] = security::alternatives(route);
    }
    let parameters = parameters(route);
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = request_body(&id, route, schemas) {
        operation["requestBody"] = body;
    }
    operation["responses"] = Value::Object(responses(route, &mut schemas.answers));
    operation
}

/// The name that the API gives the operation, or the type's: `readOrder`.
fn operation_id(api: &Api, route: &Route) -> String {
    let label = format!("{} {}", route.method, route.path);
    if let Some((_, id)) = api.operation_ids.iter().find(|(known, _)| *known == label) {
        return (*id).to_owned();
    }
    let name = (route.type_name)().rsplit("::").next().unwrap_or_default();
    let (first, rest) = name.split_at_checked(1).unwrap_or((name, ""));
    first.to_lowercase() + rest
}

fn parameters(route: &Route) -> Vec<Value> {
    let Doc { path, query, .. } = &route.doc;
    let names = route.path.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}'));
    let in_path = names.map(|name| match path.iter().find(|member| member.name == name) {
        Some(member) => parameter("path", true, member),
        None => json!({
            "name": name, "in": "path", "required": true, "schema": { "type": "string" }
        }),
    });
    let in_query = query.iter().map(|member| parameter("query", member.required, member));
    let in_header = headers(route).into_iter().map(|member| parameter("header", false, &member));
    in_path.chain(in_query).chain(in_header).collect()
}

fn headers(route: &Route) -> Vec<Member> {
    let header = |name, kind, about| Member { name, kind, about, required: false };
    let mut headers = Vec::new();
    if route.idempotent {
        let about = match route.surface {
            Surface::Operators => {
                "Repeating the call with the same key within 24 hours gives the first answer \
                 again instead of a second effect; with another body it is 422, and 409 while the \
                 first runs. A call that is refused or waits for a second person leaves the key \
                 free."
            }
            Surface::Partners | Surface::Connectors => {
                "Repeating the request with the same key within 24 hours gives the first answer \
                 again instead of a second effect."
            }
        };
        headers.push(header("Idempotency-Key", Kind::Sized(1, 255), about));
    }
    if route.cache == Cache::Revalidate {
        let about = "The `ETag` of an answer that the client has.";
        headers.push(header("If-None-Match", Kind::Text, about));
    }
    headers
}

fn parameter(place: &str, required: bool, member: &Member) -> Value {
    json!({
        "name": member.name,
        "in": place,
        "required": required,
        "description": member.about,
        "schema": member.kind.schema(),
    })
}

fn request_body(id: &str, route: &Route, schemas: &mut Schemas) -> Option<Value> {
    let (media_type, required) = match route.body {
        Body::None | Body::Form | Body::LargeForm(_) => return None,
        Body::Json | Body::JsonWithImage(_) => ("application/json", true),
        Body::StrictJson => ("application/json", false),
        Body::OneOf(media_types) => {
            let schema = json!({ "schema": { "type": "string", "format": "binary" } });
            let forms =
                media_types.iter().map(|media_type| ((*media_type).to_owned(), schema.clone()));
            let content: Map<String, Value> = forms.collect();
            return Some(json!({ "required": true, "content": content }));
        }
    };
    let mut schema = route.doc.body.schema(&mut schemas.requests).unwrap_or_else(|| json!({}));
    let required = required || schemas.requires_members(&schema);
    let name = id[..1].to_uppercase() + &id[1..] + "Request";
    if schema["$ref"].is_null() {
        let (first, rest) = route.doc.summary.split_at_checked(1).unwrap_or_default();
        schema["description"] = json!(format!("A request to {}{rest}.", first.to_lowercase()));
    }
    let content = with_example(schemas.named(name, schema), route.doc.request);
    Some(json!({ "required": required, "content": { media_type: content } }))
}

/// A schema and an example of it. An example that is no JSON is left as the text it is, which the
/// contract test on examples then refuses.
fn with_example(schema: Value, example: &str) -> Value {
    let mut content = json!({ "schema": schema });
    if !example.is_empty() {
        content["example"] = serde_json::from_str(example).unwrap_or_else(|_| json!(example));
    }
    content
}

/// The content of an answer's other forms.
fn take_content(mut answer: Value) -> Value {
    answer.get_mut("content").map_or_else(|| json!({}), Value::take)
}

fn responses(route: &Route, schemas: &mut SchemaGenerator) -> Map<String, Value> {
    let mut all = match route.surface {
        Surface::Partners => answers::errors(route),
        Surface::Operators => operators::errors(route),
        Surface::Connectors => connectors::errors(route),
    };
    for success in (route.successes)(schemas) {
        let Success { status, about, body, headers } = success;
        let mut answer = json!({ "description": about, "headers": answers::of_success(route) });
        for (name, about) in headers {
            answer["headers"][*name] = json!({
                "description": about, "schema": { "type": "string" }
            });
        }
        if let Some((media_type, schema)) = body {
            let example = if status < 300 { route.doc.answer } else { "" };
            let mut content = all.remove(&status).map_or_else(|| json!({}), take_content);
            content[media_type] = with_example(schema, example);
            answer["content"] = content;
        }
        all.insert(status, answer);
    }
    if route.cache == Cache::Revalidate && route.method == Method::GET {
        let headers = answers::refer(&["RequestId", "ETag"]);
        let about = "The client's copy is current.";
        all.insert(304, json!({ "description": about, "headers": headers }));
    }
    all.into_iter().map(|(status, answer)| (status.to_string(), answer)).collect()
}
