//! `POST /admin/v1/partners/{slug}/policies/{kind}/dry-run`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{PATH, Policy};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};
use crate::policies::dry_run::{self, DryRunInput};

/// `POST /admin/v1/partners/{slug}/policies/{kind}/dry-run`
pub struct DryRunPolicy;

impl Endpoint for DryRunPolicy {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/partners/{slug}/policies/{kind}/dry-run";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Run a policy without effect",
        details: "On one `input`, on several `inputs` (at most 1000), or on those `recorded` from \
                  live requests: exactly one of the three. Members that an input leaves out take \
                  ordinary values. A failure of the policy is an answer too.",
        path: PATH,
        body: Shape::of::<DryRun>(),
        request: r#"{"input": {"pay": {"amount": "100", "currency": "EUR"}}, "version": 2}"#,
        answer: r#"{"decision": {"rule": "tier-1"}, "failure": null, "fuel": 5120,
            "memoryBytes": 65536, "log": [{"level": "info", "text": "tier 1"}], "logDropped": 0,
            "time": {"microseconds": 180}, "version": 2, "digest": "b5bb9d8014a0f9b1"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Request;
    type Response = Json<Decided>;

    fn read(input: &Input, _: &Operator) -> Result<Request> {
        let DryRun { input: single, inputs, recorded, version, now } = strict::body(input)?;
        let inputs = match (single, inputs, recorded) {
            (Some(single), None, false) => DryRunInput::Single(single),
            (None, Some(inputs), false) => DryRunInput::Batch(inputs),
            (None, None, true) => DryRunInput::Recorded,
            _ => return Err(Denial::unprocessable("one of input, inputs and recorded").into()),
        };
        Ok(Request { policy: Policy::read(input, None), inputs, version, now })
    }

    async fn call(core: &Core, operator: Operator, request: Request) -> Result<Json<Decided>> {
        let Request { policy, inputs, version, now } = request;
        let target = policy.target(core, &operator).await?;
        Ok(Json(Decided(dry_run::dry_run(core, target, version, now, inputs).await?)))
    }
}

/// The inputs of a dry run.
#[derive(Debug)]
pub struct Request {
    policy: Policy,
    inputs: DryRunInput,
    version: Option<i64>,
    now: Option<u32>,
}

/// Inputs to decide on: exactly one of `input`, `inputs` and `recorded`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NewDryRun")]
#[serde(deny_unknown_fields)]
struct DryRun {
    /// One input, as the policy's kind has it.
    #[schemars(with = "Option<Map<String, Value>>")]
    input: Option<Value>,
    /// Several inputs, at most 1000.
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    inputs: Option<Vec<Value>>,
    /// `true` takes the inputs of recorded decisions.
    #[serde(default)]
    recorded: bool,
    /// The active version if left out.
    version: Option<i64>,
    /// The time that the policy sees, in seconds since 1970.
    now: Option<u32>,
}

/// The decisions of a dry run.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Decided(#[schemars(with = "DryRunResult")] Value);

/// The decision on one input, or those on several.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the form of the answer, for the OpenAPI document")]
enum DryRunResult {
    One(DryRunDecision),
    Several(DryRunDecisions),
}

/// The decision on one input.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the form of the answer, for the OpenAPI document")]
struct DryRunDecision {
    #[serde(flatten)]
    decision: PolicyDecision,
    /// The duration of the call.
    time: DryRunTime,
    /// The version that decided.
    version: i64,
    /// SHA-256 of the component, in hex.
    digest: String,
}

/// The decisions on several inputs, in their order; the same on every edge for the same `now`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the form of the answer, for the OpenAPI document")]
struct DryRunDecisions {
    /// The version that decided.
    version: i64,
    /// SHA-256 of the component, in hex.
    digest: String,
    /// One for each input.
    decisions: Vec<PolicyDecision>,
}

/// A policy's decision and its cost.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the form of the answer, for the OpenAPI document")]
struct PolicyDecision {
    /// Null after a failure.
    decision: Option<Map<String, Value>>,
    /// Null after a decision.
    failure: Option<PolicyFailure>,
    /// Fuel that the call burnt.
    fuel: u64,
    /// Memory that it took at most.
    memory_bytes: u64,
    /// Lines that it logged.
    log: Vec<PolicyLogLine>,
    /// Lines that were too many.
    log_dropped: u64,
}

/// The failure of a policy.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the form of the answer, for the OpenAPI document")]
struct PolicyFailure {
    /// Such as `trap` or `deadline`.
    cause: String,
    /// The failure, in words.
    message: String,
}

/// A line that a policy logged.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the form of the answer, for the OpenAPI document")]
struct PolicyLogLine {
    /// `debug`, `info` or `warn`.
    level: String,
    /// The line itself.
    text: String,
}

/// The duration of a dry run.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the form of the answer, for the OpenAPI document")]
struct DryRunTime {
    /// The duration, in microseconds.
    microseconds: u64,
}
