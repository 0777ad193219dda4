//! `GET /api/v2/client/info`: the calling partner's own settings.

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Cache, Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::Result;
use crate::tenancy::tenants::Scope;
use rampart_types::JsonDecimal;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/client/info";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const CACHE: Cache = Cache::Revalidate;
    const DOC: Doc = Doc {
        summary: "Read the calling client's settings",
        answer: r#"{
            "slug": "acme", "name": "Acme", "mode": "test", "allowedCountries": ["NL", "BE"],
            "defaultFeePercentage": 0.5
        }"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = ();
    type Response = Json<ClientInfo>;

    fn read(_: &Input, _: &Client) -> Result<()> {
        Ok(())
    }

    async fn call(_: &Core, client: Client, (): ()) -> Result<Json<ClientInfo>> {
        let tenant = &client.tenant;
        Ok(Json(ClientInfo {
            slug: tenant.slug.to_string(),
            name: tenant.name.clone(),
            mode: tenant.mode.as_str(),
            allowed_countries: tenant.allowed_countries.clone(),
            default_fee_percentage: tenant.default_fee().into(),
        }))
    }
}

/// The partner.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// Name in paths.
    slug: String,
    /// Name for people.
    name: String,
    /// `test` or `live`.
    mode: &'static str,
    /// ISO 3166-1 alpha-2; empty is every country.
    allowed_countries: Vec<String>,
    /// Fee of the partner where a quote names none, in percent.
    default_fee_percentage: JsonDecimal,
}
