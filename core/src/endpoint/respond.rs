//! Successes: how they are written, and how the document shows them.

use http::StatusCode;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;

use crate::http::reply::Reply;
use crate::platform::error::Result;

/// A success that can be written and shown.
pub trait Respond: Send {
    /// The answer.
    ///
    /// # Errors
    /// When it cannot be written, which is our fault.
    fn respond(self) -> Result<Reply>;

    /// Every form that the answer can have, for the OpenAPI document. Most have one.
    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success>;
}

/// One form of an answer that is no error, as the document shows it.
#[derive(Debug)]
pub struct Success {
    /// HTTP status.
    pub status: u16,
    /// When it comes, in a sentence.
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
/// and the doc comments of its members are what partners read.
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

/// An empty object: what was asked for is done, and there is nothing to tell about it.
#[derive(Debug, JsonSchema, Serialize)]
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

/// A page for people, which the document does not describe further.
impl Respond for Reply {
    fn respond(self) -> Result<Reply> {
        Ok(self)
    }

    fn successes(_: &mut SchemaGenerator) -> Vec<Success> {
        vec![Success { status: 200, about: "The page.", body: None, headers: &[] }]
    }
}
