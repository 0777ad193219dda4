//! `POST /admin/v1/partners`

use http::{Method, StatusCode};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{check_names, check_networks};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Created, Endpoint};
use crate::http::fields::strict;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::operate::admin::approvals;
use crate::operate::admin::operator::Operator;
use crate::operate::going_live;
use crate::platform::error::{Denial, Error, Result};
use crate::tenancy::tenants::Mode;
use crate::tenancy::tenants::create::NewTenant;
use rampart_types::ClientId;

/// `POST /admin/v1/partners`
pub struct CreatePartner;

impl Endpoint for CreatePartner {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/partners";
    const STATUSES: &'static [StatusCode] = &[StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    // It makes every credential, and `hold` finds out what refuses it.
    const DRY_RUN: bool = false;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Create a partner",
        details: "The partner gets one of every credential. They are shown in this answer only. A \
                  live one is refused with 409 and `missing`, a list of words, while something is \
                  missing that its first order needs.",
        body: Shape::of::<NewPartner>(),
        request: r#"{"slug": "acme", "name": "Acme Wallets", "mode": "test"}"#,
        answer: r#"{
            "id": "0199a000-0000-7000-8000-000000000001", "slug": "acme", "mode": "test",
            "username": "acme", "password": "q0pD1iYH1tqvTn2ZbQ2xXw8Tn0lJ8m2v7c3f5e6d7c8",
            "apiKey": "rk_test_4f1c2d3e_Zm9vYmFyYmF6", "signingSecret": "c2lnbmluZyBzZWNyZXQ",
            "webhookSecret": "whsec_d2ViaG9vayBzZWNyZXQ="
        }"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = NewPartner;
    type Response = Created<Credentials>;

    fn read(input: &Input, _: &Operator) -> Result<NewPartner> {
        let new: NewPartner = strict::body(input)?;
        check_names(&new.slug, &new.name)?;
        check_networks(&new.allowed_addresses)?;
        Ok(new)
    }

    async fn hold(
        core: &Core,
        input: &Input,
        operator: &Operator,
        new: &NewPartner,
    ) -> Result<Option<Reply>> {
        if new.mode != Mode::Live {
            return Ok(None);
        }
        if let Some(refusal) = going_live::refuse_live(core, &new.slug)? {
            return Ok(Some(refusal));
        }
        let is_taken = sqlx::query_scalar!(
            r#"select exists (select from client where slug = $1) as "is_taken!""#,
            new.slug,
        );
        if is_taken.fetch_one(&core.db).await? {
            return Err(Denial::conflict("slug is taken").into());
        }
        approvals::hold::<Self>(core, input, operator).await
    }

    async fn call(
        core: &Core,
        operator: Operator,
        new: NewPartner,
    ) -> Result<Created<Credentials>> {
        let NewPartner { slug, name, mode, allowed_addresses } = new;
        let mut tenant = NewTenant::generate(core, slug, name, mode).await?;
        tenant.allowed_addresses = allowed_addresses.iter().map(ToString::to_string).collect();
        let mut tx = core.db.begin().await?;
        tenant.insert(&mut tx, core.clock.now()).await.map_err(|error| {
            match error.as_database_error().and_then(|e| e.constraint()) {
                Some("client_slug_key" | "client_username_key") => {
                    Denial::conflict("slug is taken").into()
                }
                _ => Error::from(error),
            }
        })?;
        let detail = json!({"name": tenant.name, "mode": tenant.mode.as_str()});
        operator.record(&mut tx, core, "partner.create", &tenant.slug, detail).await?;
        tx.commit().await?;
        core.serve_committed().await;
        Ok(Created(Credentials::of(tenant)))
    }
}

/// A partner to be created.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewPartner {
    /// 1 to 63 of `a-z`, `0-9` and `-`; unique and for good.
    slug: String,
    /// 1 to 255 characters.
    name: String,
    mode: Mode,
    /// Networks from which its credentials are accepted, in CIDR notation, at most 64; any if empty.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    allowed_addresses: Vec<IpNet>,
}

/// A new partner's credentials, in clear.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "PartnerCredentials")]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// The partner's id.
    id: ClientId,
    /// The partner's slug, which paths name.
    slug: String,
    /// `test` or `live`.
    mode: &'static str,
    /// User name for `POST /api/v1/authenticate`.
    username: String,
    /// Password for `POST /api/v1/authenticate`.
    password: String,
    /// For `X-Api-Key`.
    api_key: String,
    /// Signs the partner's offers.
    signing_secret: String,
    /// Signs the callbacks to the partner, in the form of Standard Webhooks.
    webhook_secret: String,
}

impl Credentials {
    fn of(tenant: NewTenant) -> Self {
        Self {
            id: tenant.id,
            mode: tenant.mode.as_str(),
            username: tenant.slug.clone(),
            slug: tenant.slug,
            password: tenant.password.expose().to_owned(),
            api_key: tenant.api_key.text.expose().to_owned(),
            signing_secret: tenant.signing_secret.expose().to_owned(),
            webhook_secret: tenant.webhook_secret.expose().to_owned(),
        }
    }
}
