//! One operation of the document.

use http::Method;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::doc::{Doc, Kind, Member};
use super::{Schemas, answers, connectors, operators, security};
use crate::endpoint::{Body, Cache, Route, Success};
use crate::http::Surface;

pub(super) fn write(route: &Route, tag: &str, schemas: &mut Schemas) -> Value {
    let doc = &route.doc;
    let mut operation = json!({
        "operationId": operation_id(route),
        "tags": [tag],
        "summary": doc.summary,
    });
    if !doc.details.is_empty() {
        operation["description"] = json!(doc.details);
    }
    operation["security"] = match route.surface {
        Surface::Partners => security::alternatives(route),
        Surface::Operators => operators::alternatives(),
        Surface::Connectors => connectors::alternatives(),
    };
    let parameters = parameters(route);
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = request_body(route, schemas) {
        operation["requestBody"] = body;
    }
    operation["responses"] = Value::Object(responses(route, &mut schemas.answers));
    operation
}

/// `getV2BuyOrdersId`: method, version, path. Of the other APIs the type's name: `readOrder`.
fn operation_id(route: &Route) -> String {
    if route.surface != Surface::Partners {
        let name = (route.type_name)().rsplit("::").next().unwrap_or_default();
        let (first, rest) = name.split_at_checked(1).unwrap_or((name, ""));
        return first.to_lowercase() + rest;
    }
    let path = route.path.trim_start_matches("/api");
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut id = route.method.as_str().to_lowercase();
    for word in words {
        let (first, rest) = word.split_at(1);
        id.push_str(&first.to_uppercase());
        id.push_str(rest);
    }
    id
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
        let about = "Repeating the request with the same key within 24 hours gives the first \
                     answer again instead of a second effect.";
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

fn request_body(route: &Route, schemas: &mut Schemas) -> Option<Value> {
    let (media_type, required) = match route.body {
        Body::None | Body::Form => return None,
        Body::Json | Body::JsonWithImage(_) => ("application/json", true),
        Body::StrictJson => ("application/json", false),
        Body::OneOf(media_types) => {
            let schema = json!({ "schema": { "type": "string", "format": "binary" } });
            let forms =
                media_types.iter().map(|media_type| ((*media_type).to_owned(), schema.clone()));
            let content: Map<String, Value> = forms.collect();
            return Some(json!({ "required": true, "content": content }));
        }
        Body::Binary(media_type) => {
            let content =
                json!({ media_type: { "schema": { "type": "string", "format": "binary" } } });
            return Some(json!({ "required": true, "content": content }));
        }
    };
    let schema = route.doc.body.schema(&mut schemas.requests).unwrap_or_else(|| json!({}));
    let required = required || schemas.requires_members(&schema);
    let content = with_example(schema, route.doc.request);
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
        let about = "What the client has is still so.";
        all.insert(304, json!({ "description": about, "headers": headers }));
    }
    all.into_iter().map(|(status, answer)| (status.to_string(), answer)).collect()
}
