//! `POST /api/v1/user/register-identifier`: the URL for a user whom the partner knows by its own
//! identifier.

use std::collections::BTreeMap;

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use super::identifier::linked_user;
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::users::account_pages::invitation::Invitation;

/// Version 1, the only one.
pub struct V1;

impl Endpoint for V1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/user/register-identifier";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const ERRORS: &'static [Code] =
        &[Code::ReturnUrlInvalid, Code::UserIdentifierMissing, Code::UserIdentifierLengthInvalid];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Ask where a user registers or signs in",
        details: "An identifier that is not linked yet leads to a page on which the user signs in \
                  or registers and is linked to it; one that is linked leads to the user's \
                  account. Both lead back to `returnUrl`. The URLs work for a day.",
        body: Shape::Members(&[
            required(
                "identifier",
                Kind::Matching("^[A-Za-z0-9]{36,255}$"),
                "Your own identifier of the user.",
            ),
            required("returnUrl", Kind::Text, "URL that the user is sent back to."),
        ]),
        request: r#"{
            "identifier": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "returnUrl": "https://shop.example/back"
        }"#,
        answer: r#"{"redirectUrl": {"nl-nl": "https://pay.example.com/nl-nl/register/AZyfXnwKfV"}}"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = Invitation;
    type Response = Json<Redirect>;

    fn read(input: &Input, _: &Client) -> Result<Invitation> {
        let mut fields = Fields::from_object(&input.document)?;
        let missing = fields.value("identifier").is_none_or(|value| value.as_str() == Some(""));
        let code =
            if missing { Code::UserIdentifierMissing } else { Code::UserIdentifierLengthInvalid };
        let identifier = fields.required("identifier", code, |value| value.as_str()?.parse().ok());
        let return_url = fields
            .required("returnUrl", Code::ReturnUrlInvalid, |value| value.as_str()?.parse().ok());
        let invitation = identifier.zip(return_url);
        fields.finish(
            invitation.map(|(identifier, return_url)| Invitation { identifier, return_url }),
        )
    }

    async fn call(core: &Core, client: Client, invitation: Invitation) -> Result<Json<Redirect>> {
        let mut conn = core.db.acquire().await?;
        let known = linked_user(&mut conn, core, client.id(), &invitation.identifier).await?;
        drop(conn);
        let page = if known.is_some() { "dashboard" } else { "register" };
        let (base, session) = (&core.settings.public_url, invitation.seal(core, client.id())?);
        let regions = client.catalogue.regions.iter();
        let url = |region: &String| (region.clone(), format!("{base}/{region}/{page}/{session}"));
        Ok(Json(Redirect { redirect_url: regions.map(url).collect() }))
    }
}

/// The URLs for the user.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "IdentifierRedirect")]
#[serde(rename_all = "camelCase")]
pub struct Redirect {
    /// A URL by website locale.
    redirect_url: BTreeMap<String, String>,
}
