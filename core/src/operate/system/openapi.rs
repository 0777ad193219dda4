//! `GET /openapi.json`: this API as an OpenAPI 3.1 document, for anybody.

use std::sync::OnceLock;

use bytes::Bytes;
use http::{Method, StatusCode};
use schemars::SchemaGenerator;
use serde_json::json;

use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Cache, Endpoint, Respond, Success};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};

/// The only version: the API that it describes has versions.
pub struct Any;

impl Endpoint for Any {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/openapi.json";
    const ERRORS: &'static [Code] = &[];
    const CACHE: Cache = Cache::Revalidate;
    const DOC: Doc = Doc { summary: "Read this document", ..Doc::NONE };
    type Caller = Anyone;
    type Request = ();
    type Response = Document;

    fn read(_: &Input, _: &Anyone) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Anyone, (): ()) -> Result<Document> {
        static TEXT: OnceLock<Bytes> = OnceLock::new();
        let text = || core.partners_api.document().to_string().into();
        Ok(Document(TEXT.get_or_init(text).clone()))
    }
}

/// A document, as text.
#[derive(Debug)]
pub struct Document(pub(crate) Bytes);

impl Respond for Document {
    fn respond(self) -> Result<Reply> {
        Ok(Reply::with_body(StatusCode::OK, "application/json", self.0))
    }

    fn successes(_: &mut SchemaGenerator) -> Vec<Success> {
        let body = Some(("application/json", json!({ "type": "object" })));
        vec![Success { status: 200, about: "The document.", body, headers: &[] }]
    }
}
