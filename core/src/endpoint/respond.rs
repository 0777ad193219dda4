//! Successes: their replies, and their forms in the OpenAPI document.

use std::marker::PhantomData;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ETAG, HeaderValue};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

use crate::http::reply::{Reply, entity_tag};
use crate::platform::error::Result;

/// A success: its reply, and its form in the OpenAPI document.
pub trait Respond: Send {
    /// The reply.
    ///
    /// # Errors
    /// When it cannot be serialized, which is our fault.
    fn respond(self) -> Result<Reply>;

    /// Every form that the answer can have, for the OpenAPI document. Most have one.
    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success>;
}

/// One form of an answer that is no error, as the document shows it.
#[derive(Debug)]
pub struct Success {
    /// HTTP status.
    pub status: u16,
    /// Meaning, in a sentence.
    pub about: &'static str,
    /// Media type and JSON schema of the body.
    pub body: Option<(&'static str, Value)>,
    /// Headers besides those of every answer: name and meaning.
    pub headers: &'static [(&'static str, &'static str)],
}

impl Success {
    /// JSON in the form in which `T` is serialized.
    pub fn json<T: JsonSchema>(status: StatusCode, schemas: &mut SchemaGenerator) -> Self {
        let schema = schemas.subschema_for::<T>().to_value();
        Self {
            status: status.as_u16(),
            about: "Done.",
            body: Some(("application/json", schema)),
            headers: &[],
        }
    }
}

/// 200 with a JSON body. `T` derives `schemars::JsonSchema` beside `Serialize`: serde's attributes
/// and the doc comments of its members are the document's.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: JsonSchema + Serialize + Send> Respond for Json<T> {
    fn respond(self) -> Result<Reply> {
        Reply::json(StatusCode::OK, &self.0)
    }

    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success> {
        vec![Success::json::<T>(StatusCode::OK, schemas)]
    }
}

/// 200 with a JSON body in the form of `T` that was serialized before, and its entity tag.
#[derive(Debug)]
pub struct PreserializedJson<T> {
    body: Bytes,
    tag: HeaderValue,
    form: PhantomData<fn() -> T>,
}

impl<T: Serialize> PreserializedJson<T> {
    /// Serializes `value`.
    ///
    /// # Errors
    /// When it cannot be serialized, which is our fault.
    pub fn new(value: &T) -> Result<Self> {
        let body = Reply::json(StatusCode::OK, value)?.body;
        Ok(Self { tag: entity_tag(&body), body, form: PhantomData })
    }
}

impl<T> Clone for PreserializedJson<T> {
    fn clone(&self) -> Self {
        Self { body: self.body.clone(), tag: self.tag.clone(), form: PhantomData }
    }
}

impl<T: JsonSchema> Respond for PreserializedJson<T> {
    fn respond(self) -> Result<Reply> {
        let mut reply = Reply::with_body(StatusCode::OK, "application/json", self.body);
        reply.headers.insert(ETAG, self.tag);
        Ok(reply)
    }

    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success> {
        vec![Success::json::<T>(StatusCode::OK, schemas)]
    }
}

/// 201 with a JSON body, as [`Json`].
#[derive(Debug)]
pub struct Created<T>(pub T);

impl<T: JsonSchema + Serialize + Send> Respond for Created<T> {
    fn respond(self) -> Result<Reply> {
        Reply::json(StatusCode::CREATED, &self.0)
    }

    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success> {
        vec![Success { about: "Created.", ..Success::json::<T>(StatusCode::CREATED, schemas) }]
    }
}

/// An empty object: what was asked for is done, and there is nothing to tell about it.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "EmptyAnswer")]
pub struct Done {}

/// 204.
#[derive(Debug)]
pub struct NoContent;

impl Respond for NoContent {
    fn respond(self) -> Result<Reply> {
        Ok(Reply::empty(StatusCode::NO_CONTENT))
    }

    fn successes(_: &mut SchemaGenerator) -> Vec<Success> {
        vec![Success { status: 204, about: "Done.", body: None, headers: &[] }]
    }
}

/// An OpenAPI document, as text, and its entity tag.
#[derive(Clone, Debug)]
pub struct OpenApiDocument {
    text: Bytes,
    tag: HeaderValue,
}

impl OpenApiDocument {
    /// The text of a document.
    pub fn new(document: &Value) -> Self {
        let text = Bytes::from(document.to_string());
        Self { tag: entity_tag(&text), text }
    }
}

impl Respond for OpenApiDocument {
    fn respond(self) -> Result<Reply> {
        let mut reply = Reply::with_body(StatusCode::OK, "application/json", self.text);
        reply.headers.insert(ETAG, self.tag);
        Ok(reply)
    }

    fn successes(_: &mut SchemaGenerator) -> Vec<Success> {
        let body = Some(("application/json", json!({ "type": "object" })));
        vec![Success { status: 200, about: "The document.", body, headers: &[] }]
    }
}

/// A page for people; the document leaves it out.
impl Respond for Reply {
    fn respond(self) -> Result<Reply> {
        Ok(self)
    }

    fn successes(_: &mut SchemaGenerator) -> Vec<Success> {
        vec![Success { status: 200, about: "The page.", body: None, headers: &[] }]
    }
}
