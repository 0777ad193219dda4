//! `GET /connectors/v1/openapi.json`: the connectors' API as an OpenAPI 3.1 document.

use http::Method;

use super::caller::Connector;
use crate::Core;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, OpenApiDocument};
use crate::http::request::Input;
use crate::platform::error::Result;

/// `GET /connectors/v1/openapi.json`
pub struct ReadOpenApi;

impl Endpoint for ReadOpenApi {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/connectors/v1/openapi.json";
    const DOC: Doc = Doc {
        summary: "Read this document",
        details: "Describes every call of the connectors' API.",
        ..Doc::NONE
    };
    type Caller = Connector;
    type Request = ();
    type Response = OpenApiDocument;

    fn read(_: &Input, _: &Connector) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Connector, (): ()) -> Result<OpenApiDocument> {
        Ok(OpenApiDocument::new(core.apis.connectors.document()))
    }
}
