//! `POST /admin/v1/orders/{id}/replay`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{FoundOrder, ID};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};
use crate::policies::decision_replay;

/// `POST /admin/v1/orders/{id}/replay`
pub struct ReplayDecisions;

impl Endpoint for ReplayDecisions {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/orders/{id}/replay";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Support, Role::Treasury, Role::Platform];
    const DOC: Doc = Doc {
        summary: "Replay the policy decisions of an order",
        details: "Runs the versions that decided, on the recorded inputs, and compares answer and \
                  fuel. Signatures are verified with the partner's present keys. Nothing changes.",
        path: &[ID],
        answer: r#"{"same": true, "decisions": [{
            "kind": "fee", "version": 3, "digest": "b5bb9d8014a0f9b1", "same": true,
            "then": {"rule": "tier-1", "fuel": 5120, "answer": "1f2e3d"},
            "now": {"rule": "tier-1", "fuel": 5120, "answer": "1f2e3d", "decision": {}}
        }]}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = String;
    type Response = Json<Replayed>;

    fn read(input: &Input, _: &Operator) -> Result<String> {
        Ok(input.param("id").to_owned())
    }

    async fn call(core: &Core, _: Operator, id: String) -> Result<Json<Replayed>> {
        let order = FoundOrder::find(core, &id).await?;
        let row = order.row(core).await?;
        core.refresh().await?;
        let snapshot = core.snapshots.current();
        let tenant =
            snapshot.tenants.get(&order.key.client).ok_or_else(|| Denial::not_found("partner"))?;
        let decisions = &row["policy_decisions"];
        Ok(Json(Replayed(decision_replay::replay(core, tenant, decisions).await?)))
    }
}

/// The decisions of an order's policies, then and now.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Replayed(#[schemars(with = "Replay")] Value);

/// Recorded decisions of policies, beside those that they make now.
#[derive(JsonSchema)]
#[schemars(rename = "ReplayResult")]
#[expect(dead_code, reason = "the form of the answer, for the OpenAPI document")]
struct Replay {
    /// `true` if every decision is the same.
    same: bool,
    /// The decisions, in the order in which they were made.
    decisions: Vec<ReplayedDecision>,
}

/// A recorded decision of a policy, beside the one that it makes now.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the form of the answer, for the OpenAPI document")]
struct ReplayedDecision {
    /// `signature`, `fee` or `method-order`.
    kind: String,
    /// The policy's version that made it.
    version: i64,
    /// SHA-256 of the component, in hex.
    digest: String,
    /// `true` if answer and fuel are the same.
    same: bool,
    /// `rule`, `fuel` and `answer` (a digest) as recorded.
    then: Map<String, Value>,
    /// The same now, with the `decision` itself; or a `failure`.
    now: Map<String, Value>,
}
