//! `POST /admin/v1/partners/{slug}/api-keys` and `DELETE …/{id}`

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{SLUG, check_networks, check_subject, find};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, Created, Endpoint, NoContent};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};
use crate::tenancy::tenants::{ApiKey, Scope, api_keys};

/// Longest name of a key, in characters.
const NAME_CHARS_MAX: usize = 255;

/// `POST /admin/v1/partners/{slug}/api-keys`
pub struct IssueApiKey;

impl Endpoint for IssueApiKey {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/partners/{slug}/api-keys";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Issue an API key",
        details: "Its text is shown in this answer only. A partner has at most 100 live keys.",
        path: &[SLUG],
        body: Shape::of::<NewKey>(),
        request: r#"{"name": "office", "scopes": ["quotes:read"], "allowedAddresses": ["192.0.2.0/24"]}"#,
        answer: r#"{"id": "0199a000-0000-7000-8000-000000000002",
            "apiKey": "rk_test_4f1c2d3e_Zm9vYmFyYmF6"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, NewKey);
    type Response = Created<IssuedKey>;

    fn read(input: &Input, _: &Operator) -> Result<(String, NewKey)> {
        let new: NewKey = strict::body(input)?;
        if new.name.chars().count() > NAME_CHARS_MAX {
            return Err(Denial::unprocessable("name: at most 255 characters").into());
        }
        check_networks(&new.allowed_addresses)?;
        check_subject(new.certificate_subject.as_deref())?;
        if new.scopes.len() > Scope::ALL.len() {
            return Err(Denial::unprocessable("scopes: at most one of each").into());
        }
        Ok((input.param("slug").to_owned(), new))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (slug, new): (String, NewKey),
    ) -> Result<Created<IssuedKey>> {
        let (client, mode) = find(core, &slug).await?;
        let mut key = ApiKey::generate(&core.clock, mode)?;
        key.name = new.name;
        key.scopes = new.scopes;
        key.expires_at = new.expires_at;
        key.certificate_subject = new.certificate_subject.filter(|subject| !subject.is_empty());
        key.allowed_addresses = new.allowed_addresses.iter().map(ToString::to_string).collect();
        let mut tx = core.db.begin().await?;
        if !api_keys::issue(&mut tx, client, &key, core.clock.now()).await? {
            return Err(Denial::conflict("the partner has 100 live keys already").into());
        }
        let detail = json!({"apiKeyId": key.id, "name": key.name});
        operator.record(&mut tx, core, "api-key.issue", &slug, detail).await?;
        tx.commit().await?;
        core.serve_committed().await;
        Ok(Created(IssuedKey { id: key.id.into(), api_key: key.text.expose().to_owned() }))
    }
}

/// An API key to be issued.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "NewApiKey")]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct NewKey {
    /// For people, at most 255 characters; not unique.
    name: String,
    /// Permissions, at most one of each; `*` or none at all: everything.
    scopes: Vec<Scope>,
    /// The end of its validity; none without one.
    expires_at: Option<DateTime<Utc>>,
    /// Networks from which it is accepted, in CIDR notation, at most 64; any if empty.
    #[schemars(with = "Vec<String>")]
    allowed_addresses: Vec<IpNet>,
    /// Subject of the TLS client certificate that comes with it, such as
    /// `C=NL, O=Acme Wallets, CN=acme`; none is needed if empty.
    certificate_subject: Option<String>,
}

/// A new API key, in clear.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "IssuedApiKey")]
#[serde(rename_all = "camelCase")]
pub struct IssuedKey {
    /// The key's id, which its revocation names.
    id: Uuid,
    /// For `X-Api-Key`.
    api_key: String,
}

/// `DELETE /admin/v1/partners/{slug}/api-keys/{id}`
pub struct RevokeApiKey;

impl Endpoint for RevokeApiKey {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/admin/v1/partners/{slug}/api-keys/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Platform];
    const DOC: Doc = Doc {
        summary: "Revoke an API key",
        details: "Every edge refuses it within a second.",
        path: &[SLUG, required("id", Kind::Format("uuid"), "The key's id.")],
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, String);
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<(String, String)> {
        Ok((input.param("slug").to_owned(), input.param("id").to_owned()))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (slug, id): (String, String),
    ) -> Result<NoContent> {
        let (client, _) = find(core, &slug).await?;
        let id: Uuid = id.parse().map_err(|_| Denial::not_found("API key"))?;
        let mut tx = core.db.begin().await?;
        if !api_keys::revoke(&mut tx, client, id.into(), core.clock.now()).await? {
            return Err(Denial::not_found("API key").into());
        }
        let detail = json!({"apiKeyId": id});
        operator.record(&mut tx, core, "api-key.revoke", &slug, detail).await?;
        tx.commit().await?;
        core.serve_committed().await;
        Ok(NoContent)
    }
}
