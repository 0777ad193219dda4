//! `GET /admin/v1/openapi.json`: the operators' API as an OpenAPI 3.1 document.

use http::Method;

use super::operator::Operator;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, OpenApiDocument};
use crate::http::request::Input;
use crate::platform::error::Result;

/// `GET /admin/v1/openapi.json`
pub struct ReadOpenApi;

impl Endpoint for ReadOpenApi {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/openapi.json";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "Read this document",
        details: "Describes every call of the operators' API.",
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = ();
    type Response = OpenApiDocument;

    fn read(_: &Input, _: &Operator) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Operator, (): ()) -> Result<OpenApiDocument> {
        Ok(OpenApiDocument::new(core.apis.operators.document()))
    }
}
