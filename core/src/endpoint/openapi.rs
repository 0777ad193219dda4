//! The OpenAPI 3.1 document: the declarations of an API's endpoints, put into one text.
//!
//! Nothing is written twice. Methods, paths, errors, callers, caching and idempotency come from the
//! table of endpoints; the form of an answer comes from the type that is serialized; the request's
//! members, the words and the examples come from [`Endpoint::DOC`](crate::endpoint::Endpoint::DOC).
//! The contract tests hold every request and answer of theirs to it.

mod answers;
mod connectors;
pub mod doc;
mod operation;
mod operators;
mod plain_form;
mod security;

use schemars::SchemaGenerator;
use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::ReplaceBoolSchemas;
use serde_json::{Map, Value, json};

use crate::endpoint::Route;
use crate::http::Surface;

/// An API as its document introduces it.
#[derive(Clone, Copy)]
pub struct Api {
    /// Which API it is: its errors and its credentials.
    pub surface: Surface,
    /// The document's title.
    pub title: &'static str,
    /// The API in a line.
    pub summary: &'static str,
    /// The introduction, in CommonMark.
    pub introduction: &'static str,
    /// The endpoints.
    pub endpoints: &'static [Route],
    /// Names of operations by method and path; any other is named after its endpoint's type.
    pub operation_ids: &'static [(&'static str, &'static str)],
    /// The domains, in the order in which they are listed.
    pub domains: &'static [Domain],
    /// Requests that go out, as the document's `webhooks`.
    pub webhooks: Option<fn() -> Value>,
}

/// A group of operations: the endpoints of one module.
#[derive(Clone, Copy, Debug)]
pub struct Domain {
    /// The module's name.
    pub module: &'static str,
    /// The tag's name.
    pub name: &'static str,
    /// The tag's description.
    pub description: &'static str,
}

/// A row of an API's domains.
pub const fn domain(module: &'static str, name: &'static str, description: &'static str) -> Domain {
    Domain { module, name, description }
}

impl Api {
    fn info(&self) -> Value {
        json!({
            "title": self.title,
            "version": "1",
            "summary": self.summary,
            "description": self.introduction,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "contact": { "name": "The operator of this service" },
        })
    }

    /// The domain of an endpoint: the innermost module on the path of its type that is one.
    fn domain(&self, route: &Route) -> Option<&'static Domain> {
        let mut modules = (route.type_name)().rsplit("::");
        modules.find_map(|module| self.domains.iter().find(|domain| domain.module == module))
    }
}

/// JSON schemas of types, for both directions: a member with a default may be left out of a request,
/// and is there in every answer.
struct Schemas {
    answers: SchemaGenerator,
    requests: SchemaGenerator,
    /// Bodies of requests that are members of the declaration, not a type.
    bodies: Map<String, Value>,
}

impl Schemas {
    fn new() -> Self {
        let generator = |contract| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.contract = contract;
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
            let mut any = ReplaceBoolSchemas::default();
            any.skip_additional_properties = true;
            SchemaGenerator::new(settings.with_transform(any))
        };
        Self {
            answers: generator(Contract::Serialize),
            requests: generator(Contract::Deserialize),
            bodies: Map::new(),
        }
    }

    /// A reference to a body, which is kept under the name unless it has one already.
    fn named(&mut self, name: String, body: Value) -> Value {
        if body["$ref"].is_string() {
            return body;
        }
        let reference = json!({ "$ref": format!("#/components/schemas/{name}") });
        self.bodies.insert(name, body);
        reference
    }

    /// `true` if the schema, or the one that it refers to, requires a member.
    fn requires_members(&self, schema: &Value) -> bool {
        let target = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next());
        let definition = target.and_then(|name| self.requests.definitions().get(name));
        definition.unwrap_or(schema)["required"].is_array()
    }

    /// Every schema that another refers to, by its name.
    fn into_definitions(mut self) -> Map<String, Value> {
        let mut definitions = self.requests.take_definitions(true);
        definitions.extend(self.answers.take_definitions(true));
        definitions.extend(self.bodies);
        definitions
    }
}

/// The OpenAPI document of an API.
pub fn document(api: &Api) -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    let mut used = Vec::new();
    for route in api.endpoints {
        let domain = api.domain(route);
        used.extend(domain.map(|domain| domain.module));
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        let tag = domain.map_or_else(|| (route.type_name)(), |domain| domain.name);
        path[route.method.as_str().to_lowercase()] =
            operation::write(api, route, tag, &mut schemas);
    }
    let tags: Vec<_> = api
        .domains
        .iter()
        .filter(|domain| used.contains(&domain.module))
        .map(|domain| json!({ "name": domain.name, "description": domain.description }))
        .collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": api.info(),
        "servers": [{ "url": "/" }],
        "tags": tags,
        "paths": paths,
    });
    if let Some(webhooks) = api.webhooks {
        document["webhooks"] = name_bodies(webhooks(), &mut schemas);
    }
    document["components"] = components(api.surface, schemas);
    plain_form::rewrite(&mut document);
    document
}

/// The webhooks with a named schema for what each brings.
fn name_bodies(mut webhooks: Value, schemas: &mut Schemas) -> Value {
    for (name, webhook) in webhooks.as_object_mut().into_iter().flatten() {
        let body = "/post/requestBody/content/application~1json/schema";
        if let Some(schema) = webhook.pointer_mut(body) {
            let name = name[..1].to_uppercase() + &name[1..] + "Webhook";
            *schema = schemas.named(name, schema.take());
        }
    }
    webhooks
}

fn components(surface: Surface, schemas: Schemas) -> Value {
    let (mut definitions, security, headers, responses) = match surface {
        Surface::Partners => {
            (answers::schemas(), security::schemes(), answers::headers(), answers::shared())
        }
        Surface::Operators => {
            (operators::schemas(), operators::schemes(), operators::headers(), operators::shared())
        }
        Surface::Connectors => (
            connectors::schemas(),
            connectors::schemes(),
            connectors::headers(),
            connectors::shared(),
        ),
    };
    definitions.extend(schemas.into_definitions());
    definitions.sort_keys();
    json!({
        "securitySchemes": security,
        "headers": headers,
        "responses": responses,
        "schemas": definitions,
    })
}
