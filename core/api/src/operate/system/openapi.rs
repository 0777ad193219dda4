//! `GET /openapi.json`: this API as an OpenAPI 3.1 document, for anybody.

use std::sync::OnceLock;

use http::Method;

use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Cache, Endpoint, OpenApiDocument};
use crate::http::request::Input;
use crate::platform::error::Result;

/// The only version: the API that it describes has versions.
pub struct Any;

impl Endpoint for Any {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/openapi.json";
    const CACHE: Cache = Cache::Revalidate;
    const DOC: Doc = Doc {
        summary: "Read this document",
        details: "With `Prefer: money=string` it declares the amounts of answers as that \
                  preference gives them: strings in the format `decimal`.",
        ..Doc::NONE
    };
    type Caller = Anyone;
    type Request = ();
    type Response = OpenApiDocument;

    fn read(_: &Input, _: &Anyone) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Anyone, (): ()) -> Result<OpenApiDocument> {
        static DOCUMENT: OnceLock<OpenApiDocument> = OnceLock::new();
        let document = || OpenApiDocument::new(core.apis.partners.document());
        Ok(DOCUMENT.get_or_init(document).clone())
    }
}
