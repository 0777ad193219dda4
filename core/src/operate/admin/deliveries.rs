//! What partners were told: `GET /admin/v1/deliveries`, `POST /admin/v1/deliveries/{id}/redeliver`.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{Answer, Input, Refused, ok};
use crate::Core;
use crate::platform::audit::{self, Entry};
use rampart_types::OrderId;

/// Most deliveries of one answer.
const DELIVERIES_MAX: i64 = 200;

/// States of a delivery, as stored.
const STATES: [&str; 4] = ["pending", "delivered", "failed", "disabled"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    partner: Option<String>,
    state: Option<String>,
    order: Option<String>,
    /// The last id of the page before.
    before: Option<Uuid>,
    limit: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Delivery {
    id: Uuid,
    partner: String,
    event_id: Uuid,
    #[serde(rename = "type")]
    kind: String,
    order_id: Option<i64>,
    url: String,
    state: String,
    attempts: i16,
    /// Of the last attempt, if the partner's host answered.
    last_status: Option<i16>,
    /// Why the last attempt failed: status, redirect, gone, unwanted, timeout, unreachable,
    /// forbidden, unsigned.
    last_error: Option<String>,
    /// While it is pending.
    next_attempt_at: Option<DateTime<Utc>>,
    delivered_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

/// Deliveries that fit every criterion, newest first, at most [`DELIVERIES_MAX`]; `before` goes on.
pub(super) async fn list(core: &Arc<Core>, input: Input) -> Answer {
    let Search { partner, state, order, before, limit } = input.query()?;
    let limit = super::limit(limit.as_deref(), DELIVERIES_MAX)?;
    if state.as_deref().is_some_and(|state| !STATES.contains(&state)) {
        return Err(Refused::unprocessable(format!("state: one of {}", STATES.join(", "))));
    }
    let order = order.map(|text| text.parse::<OrderId>()).transpose();
    let order = order.map_err(|_| Refused::unprocessable("order: not an order's number"))?;
    ok(&find(core, Criteria { partner, state, order, before, id: None, limit }).await?)
}

/// What a delivery must be, where given.
#[derive(Default)]
struct Criteria {
    partner: Option<String>,
    state: Option<String>,
    order: Option<OrderId>,
    before: Option<Uuid>,
    id: Option<Uuid>,
    limit: i64,
}

async fn find(core: &Core, wanted: Criteria) -> Result<Vec<Delivery>, Refused> {
    let deliveries = sqlx::query_as!(
        Delivery,
        r#"
        select d.delivery_id as "id!", c.slug as "partner!", d.event_id as "event_id!",
            e.type as "kind!", d.order_id, d.url as "url!", d.state as "state!",
            d.attempts as "attempts!", d.last_status, d.last_error,
            case when d.state = 'pending' then d.next_attempt_at end as next_attempt_at,
            d.delivered_at, d.created_at as "created_at!"
        from delivery d
        join client c on c.client_id = d.client_id
        join event e on e.client_id = d.client_id and e.event_id = d.event_id
        where ($1::text is null or c.slug = $1)
            and ($2::text is null or d.state = $2)
            and ($3::bigint is null or d.order_id = $3)
            and ($4::uuid is null or d.delivery_id < $4)
            and ($5::uuid is null or d.delivery_id = $5)
        order by d.delivery_id desc limit $6
        "#,
        wanted.partner,
        wanted.state,
        wanted.order.map(OrderId::number),
        wanted.before,
        wanted.id,
        wanted.limit,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(deliveries)
}

/// Sends one again, from the first attempt on, whatever became of it. The partner sees the same
/// `webhook-id`. 409 while an attempt is under way.
pub(super) async fn redeliver(core: &Arc<Core>, input: Input) -> Answer {
    let unknown = || Refused::not_found("delivery");
    let id: Uuid = input.param("id").parse().map_err(|_| unknown())?;
    let mut tx = core.db.begin().await?;
    let row =
        sqlx::query!("select client_id, state from delivery where delivery_id = $1 for update", id)
            .fetch_optional(&mut *tx)
            .await?
            .ok_or_else(unknown)?;
    let due = sqlx::query!(
        "update delivery set state = 'pending', attempts = 0, next_attempt_at = $3, \
         leased_until = null, delivered_at = null \
         where client_id = $1 and delivery_id = $2 \
             and (state <> 'pending' or leased_until is null or leased_until <= $3)",
        row.client_id,
        id,
        core.clock.now(),
    )
    .execute(&mut *tx)
    .await?;
    if due.rows_affected() == 0 {
        return Err(Refused::conflict("an attempt is under way"));
    }
    let (target, detail) = (id.to_string(), json!({"from": row.state}));
    let entry =
        Entry { actor: input.actor(), action: "delivery.redeliver", target: &target, detail };
    audit::record(&mut tx, &core.clock, entry).await?;
    tx.commit().await?;
    let wanted = Criteria { id: Some(id), limit: 1, ..Criteria::default() };
    ok(&find(core, wanted).await?.pop().ok_or_else(unknown)?)
}
