//! `GET` and `DELETE /admin/v1/partners/{slug}/policies/{kind}/trial`: the version that is tried
//! beside the active one.

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{ChangeReason, PATH, Policy};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json, NoContent};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};
use crate::policies::lifecycle::{self, Target};
use crate::policies::redacted_comparison;

/// Most differences of one answer.
const DIFFERENCES_MAX: i64 = 20;

/// `GET /admin/v1/partners/{slug}/policies/{kind}/trial`
pub struct ReadTrial;

impl Endpoint for ReadTrial {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/partners/{slug}/policies/{kind}/trial";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "Read a policy's trial",
        details: "The shadow run or the canary, with at most 20 differences, newest first.",
        path: PATH,
        answer: r#"{"version": 2, "percentage": null, "calls": 120, "same": 118, "different": 2,
            "failed": 0, "skipped": 0, "reason": "new tariff", "startedBy": "admin",
            "startedAt": "2026-03-01T12:00:00Z", "differences": [{}]}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Policy;
    type Response = Json<Trial>;

    fn read(input: &Input, _: &Operator) -> Result<Policy> {
        Ok(Policy::read(input, None))
    }

    async fn call(core: &Core, operator: Operator, policy: Policy) -> Result<Json<Trial>> {
        let trial = Trial::find(core, policy.target(core, &operator).await?).await?;
        Ok(Json(trial.ok_or_else(|| Denial::not_found("trial"))?))
    }
}

/// A version on trial. Counts are those of shadow runs on all edges.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PolicyTrial")]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// The version on trial.
    pub(in crate::operate) version: i64,
    /// Percentage of the users that it serves; null in the shadow.
    pub(in crate::operate) percentage: Option<i16>,
    /// Shadow runs so far.
    pub(in crate::operate) calls: i64,
    /// Shadow runs with the active version's answer.
    pub(in crate::operate) same: i64,
    /// Shadow runs with another answer.
    pub(in crate::operate) different: i64,
    /// Shadow runs without an answer.
    pub(in crate::operate) failed: i64,
    /// Shadow runs that an edge had no capacity for.
    pub(in crate::operate) skipped: i64,
    /// The operator's words; null without any.
    pub(in crate::operate) reason: Option<String>,
    /// The operator who has begun it.
    pub(in crate::operate) started_by: String,
    /// When it was begun.
    pub(in crate::operate) started_at: DateTime<Utc>,
    /// The newest shadow runs that differed or failed.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub(in crate::operate) differences: Vec<Value>,
}

impl Trial {
    /// The trial of this kind, if there is one.
    pub(in crate::operate) async fn find(core: &Core, target: Target<'_>) -> Result<Option<Self>> {
        let row = sqlx::query!(
            "select trial_id, version, share, calls, same, different, failed, skipped, reason, \
                 started_by, started_at \
             from policy_trial where client_id = $1 and kind = $2",
            target.client.uuid(),
            target.kind.as_str(),
        )
        .fetch_optional(&core.db)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let differences = sqlx::query_scalar!(
            "select detail from policy_difference where client_id = $1 and trial_id = $2 \
             order by at desc, slot limit $3",
            target.client.uuid(),
            row.trial_id,
            DIFFERENCES_MAX,
        )
        .fetch_all(&core.db)
        .await?;
        Ok(Some(Self {
            version: row.version,
            percentage: row.share,
            calls: row.calls,
            same: row.same,
            different: row.different,
            failed: row.failed,
            skipped: row.skipped,
            reason: row.reason,
            started_by: row.started_by,
            started_at: row.started_at,
            differences: differences.into_iter().map(redacted_comparison).collect(),
        }))
    }
}

/// `DELETE /admin/v1/partners/{slug}/policies/{kind}/trial`
pub struct EndTrial;

impl Endpoint for EndTrial {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/admin/v1/partners/{slug}/policies/{kind}/trial";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "End a policy's trial",
        details: "The active version, or the built-in rule, serves everybody.",
        path: PATH,
        body: Shape::of::<ChangeReason>(),
        request: r#"{"reason": "no difference seen"}"#,
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
        lifecycle::end_rollout(core, target).await?;
        Ok(NoContent)
    }
}
