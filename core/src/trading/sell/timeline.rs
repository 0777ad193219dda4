//! `GET /api/v2/sell/orders/{id}/timeline`: a sale's changes of state and the payments about it,
//! oldest first.

use http::Method;

use super::read::find;
use crate::Core;
use crate::auth::caller::Reader;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::orders::lookup::{ID, ORDER_ERRORS, OrderName};
use crate::trading::orders::timeline::{STEPS_MAX, Step};

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/sell/orders/{id}/timeline";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const ERRORS: &'static [Code] = ORDER_ERRORS;
    const DOC: Doc = Doc {
        summary: "List a sell order's changes of state, oldest first",
        details: "With every deposit and payout that was reported: one that leaves the state as it \
                  is has the same state twice, its kind as cause and its amount as reason.",
        path: &[ID],
        answer: r#"[
            {
                "time": "2026-03-01T14:00:00Z", "from": null, "to": "pending",
                "cause": "confirmed", "reason": null
            },
            {
                "time": "2026-03-01T14:12:40Z", "from": "pending", "to": "in progress",
                "cause": "payment-received", "reason": null
            },
            {
                "time": "2026-03-01T14:13:05Z", "from": "in progress", "to": "in progress",
                "cause": "transfer-sent", "reason": "87.12 EUR"
            },
            {
                "time": "2026-03-02T09:30:00Z", "from": "in progress", "to": "completed",
                "cause": "paid-out", "reason": null
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
        let sale = find(core, &client, user, &name).await?;
        let steps = sqlx::query_as!(
            Step,
            r#"
            select at as time, from_status as "from", to_status as "to", cause, reason
            from sell_order_transition where client_id = $1 and order_id = $2
            order by at, transition_id limit $3
            "#,
            client.id().uuid(),
            sale.id.number(),
            STEPS_MAX,
        )
        .fetch_all(&core.db)
        .await?;
        Ok(Json(steps.into_iter().map(Step::for_partner).collect()))
    }
}
