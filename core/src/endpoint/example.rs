//! `GET /api/v2/client/mode`: the client's mode, test or live.

use http::Method;
use serde_json::{Value, json};

use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/client/mode";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead); // of an API key; a client's endpoint must declare one
    const ERRORS: &'static [Code] = &[]; // beyond those of the caller's proof
    type Caller = Client; // being handed one is the permission check
    type Request = ();
    type Response = Json<Value>;

    fn read(_: &Input, _: &Client) -> Result<()> {
        Ok(())
    }

    async fn call(_: &Core, client: Client, (): ()) -> Result<Json<Value>> {
        Ok(Json(json!({ "mode": client.tenant.mode.as_str() })))
    }
}
