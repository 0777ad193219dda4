//! `GET /api/v2/system/errors`: the error catalogue, with the endpoints that return each code.

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Cache, Endpoint, Json, Route};
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/system/errors";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const CACHE: Cache = Cache::Revalidate;
    const DOC: Doc = Doc {
        summary: "List every error code",
        details: "With the status it comes with, whether the same request may succeed later, and \
                  the endpoints that may answer it.",
        answer: r#"[{
            "code": "ER006",
            "status": 400,
            "message": "The quote has expired.",
            "solution": "Request a new quote and confirm it before its expiry date.",
            "retryable": false,
            "endpoints": ["POST /api/v1/buy/confirm"]
        }]"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = ();
    type Response = Json<Vec<Entry>>;

    fn read(_: &Input, _: &Client) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Client, (): ()) -> Result<Json<Vec<Entry>>> {
        let endpoints = core.apis.partners.endpoints;
        Ok(Json(Code::ALL.iter().map(|code| Entry::new(*code, endpoints)).collect()))
    }
}

/// One code.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "CatalogueEntry")]
pub struct Entry {
    /// The code.
    code: &'static str,
    /// HTTP status of its answers; `ER048`, `ER078`, `ER998` and `ER999` come with others, too.
    status: u16,
    /// Message that names the fault.
    message: &'static str,
    /// Advice about it.
    solution: &'static str,
    /// `true` if the same request may succeed later.
    retryable: bool,
    /// Endpoints that answer with it.
    endpoints: Vec<String>,
}

impl Entry {
    fn new(code: Code, endpoints: &'static [Route]) -> Self {
        let declaring = endpoints.iter().filter(|route| route.declares(code));
        Self {
            code: code.as_str(),
            status: code.status(),
            message: code.message(),
            solution: code.solution(),
            retryable: code.retryable(),
            endpoints: declaring.map(|route| format!("{} {}", route.method, route.path)).collect(),
        }
    }
}
