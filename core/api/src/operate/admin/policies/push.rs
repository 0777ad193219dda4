//! `PUT /admin/v1/partners/{slug}/policies/{kind}` and `PUT …/config`

use bytes::Bytes;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{EXAMPLE, PATH, Policy};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::{self, strict};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};
use crate::policies::lifecycle::{self, VersionSettings, VersionSummary};

/// `PUT /admin/v1/partners/{slug}/policies/{kind}`
pub struct PushPolicy;

impl Endpoint for PushPolicy {
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/admin/v1/partners/{slug}/policies/{kind}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    // The examination of a component takes seconds of a processor.
    const DRY_RUN: bool = false;
    const BODY: Body = Body::OneOf(&["application/wasm", "application/octet-stream"]);
    const DOC: Doc = Doc {
        summary: "Upload a policy and activate it",
        details: "The body is the component. It is validated with its configuration and activated \
                  at once; 422 with the reason changes nothing.",
        path: PATH,
        query: &[
            optional(
                "config",
                Kind::Text,
                "A JSON object; without it, the active version's configuration is kept.",
            ),
            optional(
                "failClosed",
                Kind::OneOf(&["true", "false"]),
                "`true` refuses requests when the policy fails, in place of the built-in rule.",
            ),
            optional("reason", Kind::Text, "For the history, at most 500 characters."),
        ],
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Push;
    type Response = Json<VersionSummary>;

    fn read(input: &Input, _: &Operator) -> Result<Push> {
        let PushQuery { config, fail_closed, reason } = strict::query(input)?;
        let config = config.map(|text| object(&text)).transpose()?;
        let fail_closed = match fail_closed.as_deref() {
            None => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(_) => return Err(Denial::unprocessable("failClosed: true or false").into()),
        };
        let settings = VersionSettings { config, fail_closed };
        Ok(Push { policy: Policy::read(input, reason), component: input.body.clone(), settings })
    }

    async fn needs_approval(core: &Core, operator: &Operator, push: &Push) -> Result<bool> {
        push.policy.target(core, operator).await?;
        push.policy.needs_second(core).await
    }

    async fn call(core: &Core, operator: Operator, push: Push) -> Result<Json<VersionSummary>> {
        let Push { policy, component, settings } = push;
        let target = policy.target(core, &operator).await?;
        Ok(Json(lifecycle::push(core, target, component, settings).await?))
    }
}

/// An upload.
#[derive(Debug)]
pub struct Push {
    policy: Policy,
    component: Bytes,
    settings: VersionSettings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PushQuery {
    config: Option<String>,
    fail_closed: Option<String>,
    reason: Option<String>,
}

fn object(text: &str) -> Result<Map<String, Value>, Denial> {
    match fields::parse(text.as_bytes()) {
        Ok(Value::Object(members)) => Ok(members),
        _ => Err(Denial::unprocessable("config: a JSON object")),
    }
}

/// `PUT /admin/v1/partners/{slug}/policies/{kind}/config`
pub struct ConfigurePolicy;

impl Endpoint for ConfigurePolicy {
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/admin/v1/partners/{slug}/policies/{kind}/config";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    // The examination of a component takes seconds of a processor.
    const DRY_RUN: bool = false;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Configure the active policy",
        details: "Activates a new version: the active component with another configuration. \
                  Members that are left out stay as they are.",
        path: PATH,
        body: Shape::of::<Configure>(),
        request: r#"{"config": {"tiers": ["0=20000"]}, "reason": "new tariff"}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (Policy, Configuration);
    type Response = Json<VersionSummary>;

    fn read(input: &Input, _: &Operator) -> Result<(Policy, Configuration)> {
        let Configure { config, fail_closed, reason } = strict::body(input)?;
        let settings = Configuration(VersionSettings { config, fail_closed });
        Ok((Policy::read(input, reason), settings))
    }

    async fn needs_approval(
        core: &Core,
        operator: &Operator,
        (policy, _): &(Policy, Configuration),
    ) -> Result<bool> {
        policy.target(core, operator).await?;
        policy.needs_second(core).await
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (policy, Configuration(settings)): (Policy, Configuration),
    ) -> Result<Json<VersionSummary>> {
        let target = policy.target(core, &operator).await?;
        Ok(Json(lifecycle::configure(core, target, settings).await?))
    }
}

/// The settings of a policy.
#[derive(Debug)]
pub struct Configuration(VersionSettings);

/// Another configuration of the active version.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "PolicyConfiguration")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Configure {
    /// As the component's `info` declares it.
    config: Option<Map<String, Value>>,
    /// `true` refuses requests when the policy fails, in place of the built-in rule.
    fail_closed: Option<bool>,
    /// For the history, at most 500 characters.
    reason: Option<String>,
}
