//! `POST /admin/v1/partners/{slug}/policies/{kind}/versions`, `POST …/{version}/activate` and
//! `POST …/{version}/shadow`

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::trial::Trial;
use super::{ChangeReason, EXAMPLE, KIND, PATH, Policy, VERSION};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Created, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::partners::SLUG;
use crate::platform::error::{Denial, Result};
use crate::policies::lifecycle::{self, StageRequest, VersionSettings, VersionSummary};
use crate::policies::manifest::SignedManifest;
use crate::policies::statement::SignedChange;

/// `POST /admin/v1/partners/{slug}/policies/{kind}/versions`
pub struct StageVersion;

impl Endpoint for StageVersion {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/partners/{slug}/policies/{kind}/versions";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    // The examination of a component takes seconds of a processor.
    const DRY_RUN: bool = false;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Upload a version of a policy",
        details: "It serves nobody yet, or everybody with `activate`. Without a `component`, the \
                  stored one that the manifest names, or the active one. A manifest is signed by \
                  an operator's key and holds `config` and `failClosed` itself.",
        path: PATH,
        body: Shape::of::<Stage>(),
        request: r#"{"config": {"tiers": ["0=20000"]}, "reason": "new tariff"}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Upload;
    type Response = Created<VersionSummary>;

    fn read(input: &Input, _: &Operator) -> Result<Upload> {
        let mut stage: Stage = strict::body(input)?;
        let policy = Policy::read(input, stage.reason.take());
        Ok(Upload { policy, staging: stage.into_staging()? })
    }

    async fn needs_approval(core: &Core, operator: &Operator, upload: &Upload) -> Result<bool> {
        upload.policy.target(core, operator).await?;
        Ok(upload.staging.activate && upload.policy.needs_second(core).await?)
    }

    async fn call(
        core: &Core,
        operator: Operator,
        upload: Upload,
    ) -> Result<Created<VersionSummary>> {
        let target = upload.policy.target(core, &operator).await?;
        Ok(Created(lifecycle::stage(core, target, upload.staging).await?))
    }
}

/// An upload.
#[derive(Debug)]
pub struct Upload {
    policy: Policy,
    staging: StageRequest,
}

/// A version of a policy to be uploaded: `component`, or a signed `manifest` with it.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NewPolicyVersion")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Stage {
    /// In base64.
    component: Option<String>,
    /// As the component's `info` declares it.
    config: Option<Map<String, Value>>,
    /// `true` refuses requests when the policy fails, in place of the built-in rule.
    fail_closed: Option<bool>,
    /// The JSON text that was signed.
    manifest: Option<String>,
    /// Signature of the manifest, where signatures are required.
    signature: Option<Signature>,
    /// `true` activates the version at once.
    #[serde(default)]
    activate: bool,
    /// For the history, at most 500 characters.
    reason: Option<String>,
}

/// A signature of a manifest.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ManifestSignature")]
#[serde(deny_unknown_fields)]
struct Signature {
    /// Name of the operator's key.
    key: String,
    /// In base64.
    value: String,
}

impl Stage {
    fn into_staging(self) -> Result<StageRequest, Denial> {
        let bytes = |name: &str, text: String| {
            let decoded = STANDARD.decode(text);
            decoded.map_err(|_| Denial::unprocessable(format!("{name}: not base64")))
        };
        let signed = match (self.manifest, self.signature) {
            (Some(manifest), Some(Signature { key, value })) => {
                let signature = bytes("signature", value)?;
                Some(SignedManifest { manifest, key, signature })
            }
            (None, None) => None,
            _ => return Err(Denial::unprocessable("manifest and signature: both or neither")),
        };
        if signed.is_some() && (self.config.is_some() || self.fail_closed.is_some()) {
            return Err(Denial::unprocessable("config and failClosed: the manifest says them"));
        }
        Ok(StageRequest {
            component: self.component.map(|text| bytes("component", text)).transpose()?,
            settings: VersionSettings { config: self.config, fail_closed: self.fail_closed },
            signed,
            activate: self.activate,
        })
    }
}

/// `POST /admin/v1/partners/{slug}/policies/{kind}/versions/{version}/activate`
pub struct ActivateVersion;

impl Endpoint for ActivateVersion {
    const METHOD: Method = Method::POST;
    const PATH: &'static str =
        "/admin/v1/partners/{slug}/policies/{kind}/versions/{version}/activate";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Activate a version of a policy",
        details: "For everybody, or as a canary for a percentage of the users; the others keep \
                  the active version, or the built-in rule.",
        path: &[SLUG, KIND, VERSION],
        body: Shape::of::<Activate>(),
        request: r#"{"percentage": 5, "reason": "first users"}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (Policy, i64, Option<i16>);
    type Response = Json<VersionSummary>;

    fn read(input: &Input, _: &Operator) -> Result<(Policy, i64, Option<i16>)> {
        let Activate { percentage, reason, signed } = strict::body(input)?;
        Ok((Policy::read_signed(input, reason, signed), number(input)?, percentage))
    }

    async fn needs_approval(
        core: &Core,
        _: &Operator,
        (policy, ..): &(Policy, i64, Option<i16>),
    ) -> Result<bool> {
        policy.needs_second(core).await
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (policy, version, percentage): (Policy, i64, Option<i16>),
    ) -> Result<Json<VersionSummary>> {
        let target = policy.target(core, &operator).await?;
        Ok(Json(match percentage {
            None | Some(100) => lifecycle::activate(core, target, version).await?,
            Some(share @ 1..100) => lifecycle::start_canary(core, target, version, share).await?,
            Some(_) => return Err(Denial::unprocessable("percentage: 1 to 100").into()),
        }))
    }
}

/// The terms of an activation.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "VersionActivation")]
#[serde(deny_unknown_fields)]
struct Activate {
    /// Percentage of the users, 1 to 100; everybody if left out.
    percentage: Option<i16>,
    /// For the history, at most 500 characters.
    reason: Option<String>,
    /// A signed statement, where signatures are required.
    signed: Option<SignedChange>,
}

/// `POST /admin/v1/partners/{slug}/policies/{kind}/versions/{version}/shadow`
pub struct ShadowVersion;

impl Endpoint for ShadowVersion {
    const METHOD: Method = Method::POST;
    const PATH: &'static str =
        "/admin/v1/partners/{slug}/policies/{kind}/versions/{version}/shadow";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Run a version in the shadow of the active one",
        details: "It gets the same inputs; its answers are compared and counted, and used for \
                  nothing. A canary ends.",
        path: &[SLUG, KIND, VERSION],
        body: Shape::of::<ChangeReason>(),
        request: r#"{"reason": "compare the new tariff"}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (Policy, i64);
    type Response = Json<VersionSummary>;

    fn read(input: &Input, _: &Operator) -> Result<(Policy, i64)> {
        let ChangeReason { reason, signed } = strict::body(input)?;
        Ok((Policy::read_signed(input, reason, signed), number(input)?))
    }

    /// Only in place of a canary it changes what is active.
    async fn needs_approval(
        core: &Core,
        operator: &Operator,
        (policy, _): &(Policy, i64),
    ) -> Result<bool> {
        let trial = Trial::find(core, policy.target(core, operator).await?).await?;
        let is_canary = trial.is_some_and(|trial| trial.percentage.is_some());
        Ok(is_canary && policy.needs_second(core).await?)
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (policy, version): (Policy, i64),
    ) -> Result<Json<VersionSummary>> {
        let target = policy.target(core, &operator).await?;
        Ok(Json(lifecycle::start_shadow(core, target, version).await?))
    }
}

fn number(input: &Input) -> Result<i64, Denial> {
    input.param("version").parse().map_err(|_| Denial::not_found("version"))
}
