//! `POST /admin/v1/partners/{slug}/policies/{kind}/rollback` and `DELETE …/policies/{kind}`

use http::{Method, StatusCode};

use super::{ChangeReason, EXAMPLE, PATH, Policy};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json, NoContent};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::Result;
use crate::policies::lifecycle::{self, VersionSummary};

/// `POST /admin/v1/partners/{slug}/policies/{kind}/rollback`
pub struct RollBackPolicy;

impl Endpoint for RollBackPolicy {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/partners/{slug}/policies/{kind}/rollback";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Roll a policy back",
        details: "One step: from a canary to the active version for everybody, otherwise to the \
                  version that was active before, or to the last one after a removal. A trial \
                  ends.",
        path: PATH,
        body: Shape::of::<ChangeReason>(),
        request: r#"{"reason": "too dear"}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Policy;
    type Response = Json<VersionSummary>;

    fn read(input: &Input, _: &Operator) -> Result<Policy> {
        let ChangeReason { reason, signed } = strict::body(input)?;
        Ok(Policy::read_signed(input, reason, signed))
    }

    async fn needs_approval(core: &Core, _: &Operator, policy: &Policy) -> Result<bool> {
        policy.needs_second(core).await
    }

    async fn call(core: &Core, operator: Operator, policy: Policy) -> Result<Json<VersionSummary>> {
        let target = policy.target(core, &operator).await?;
        Ok(Json(lifecycle::roll_back(core, target).await?))
    }
}

/// `DELETE /admin/v1/partners/{slug}/policies/{kind}`
pub struct RemovePolicy;

impl Endpoint for RemovePolicy {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/admin/v1/partners/{slug}/policies/{kind}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Return to the built-in rule",
        details: "Deactivates the policy; its versions stay. A trial ends.",
        path: PATH,
        body: Shape::of::<ChangeReason>(),
        request: r#"{"reason": "contract ended"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Policy;
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<Policy> {
        let ChangeReason { reason, signed } = strict::body(input)?;
        Ok(Policy::read_signed(input, reason, signed))
    }

    async fn needs_approval(core: &Core, _: &Operator, policy: &Policy) -> Result<bool> {
        policy.needs_second(core).await
    }

    async fn call(core: &Core, operator: Operator, policy: Policy) -> Result<NoContent> {
        let target = policy.target(core, &operator).await?;
        lifecycle::remove(core, target).await?;
        Ok(NoContent)
    }
}
