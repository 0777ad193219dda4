//! `GET /api/v2/buy/orders/{id}/timeline`: an order's changes of state, oldest first.

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use super::lookup::{ID, ORDER_ERRORS, OrderName, find};
use super::state::Cause;
use crate::Core;
use crate::auth::caller::Reader;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/buy/orders/{id}/timeline";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const ERRORS: &'static [Code] = ORDER_ERRORS;
    const DOC: Doc = Doc {
        summary: "List an order's changes of state, oldest first",
        path: &[ID],
        answer: r#"[
            {
                "time": "2026-03-01T12:00:00Z", "from": null, "to": "pending",
                "cause": "confirmed", "reason": null
            },
            {
                "time": "2026-03-01T12:03:21Z", "from": "pending", "to": "in progress",
                "cause": "payment-received", "reason": null
            }
        ]"#,
        ..Doc::NONE
    };
    type Caller = Reader;
    type Request = OrderName;
    type Response = Json<Vec<Step>>;

    fn read(input: &Input, _: &Reader) -> Result<OrderName> {
        OrderName::read(input)
    }

    async fn call(core: &Core, caller: Reader, name: OrderName) -> Result<Json<Vec<Step>>> {
        let Reader { client, user } = caller;
        let order = find(core, &client, user, &name).await?;
        let steps = sqlx::query_as!(
            Step,
            r#"
            select at as time, from_status as "from", to_status as "to", cause, reason
            from order_transition where client_id = $1 and order_id = $2
            order by at, transition_id limit $3
            "#,
            client.id().uuid(),
            order.id.number(),
            STEPS_MAX,
        )
        .fetch_all(&core.db)
        .await?;
        Ok(Json(steps.into_iter().map(Step::for_partner).collect()))
    }
}

/// Most steps of a response. Only an operator who holds and releases an order many times can
/// exceed it.
pub(crate) const STEPS_MAX: i64 = 1_000;

/// One change of state; both states are the same for an event that keeps it.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "TimelineStep")]
pub struct Step {
    /// Time of the change.
    pub(crate) time: DateTime<Utc>,
    /// State before; null for the confirm.
    pub(crate) from: Option<String>,
    /// State afterwards.
    pub(crate) to: String,
    /// Cause of the change.
    pub(crate) cause: String,
    /// Reason that was given; null for a hold.
    pub(crate) reason: Option<String>,
}

impl Step {
    /// The step without the reason of a hold, which could warn a suspect.
    pub(crate) fn for_partner(self) -> Self {
        let is_hold = self.cause == Cause::Held.as_str();
        Self { reason: self.reason.filter(|_| !is_hold), ..self }
    }
}
