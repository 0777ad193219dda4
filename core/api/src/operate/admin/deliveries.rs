//! `GET /admin/v1/deliveries` and `POST /admin/v1/deliveries/{id}/redeliver`

pub mod read;

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::operator::Operator;
use super::page::{AFTER, Page, Paging, Search, limit};
use super::partner_url::mask_query;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, optional, required};
use crate::endpoint::{Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::notify::callbacks::resend::{Resent, kept, resend};
use crate::platform::error::{Denial, Result};
use rampart_types::OrderId;

/// Most deliveries of one answer.
const DELIVERIES_MAX: i64 = 200;

/// States of a delivery, as stored.
const STATES: [&str; 4] = ["pending", "delivered", "failed", "disabled"];

/// `GET /admin/v1/deliveries`
pub struct ListDeliveries;

impl Endpoint for ListDeliveries {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/deliveries";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List deliveries of webhooks and callbacks",
        details: "Deliveries that meet every criterion, newest first. Without the role `support` \
                  or `platform`, `…` stands for the query of a URL.",
        query: &[
            optional("partner", Kind::Text, "The partner's slug."),
            optional("state", Kind::OneOf(&STATES), "The delivery's state."),
            optional("order", Kind::Text, "The order's number."),
            AFTER,
            limit(DELIVERIES_MAX),
        ],
        answer: r#"[{"id": "0199a000-0000-7000-8000-000000000003", "partner": "acme",
            "eventId": "0199a000-0000-7000-8000-000000000004", "type": "order.completed",
            "orderId": 1234567890123456, "url": "https://shop.example.com/hook",
            "state": "pending", "attempts": 1, "lastStatus": 500, "lastError": "status",
            "nextAttemptAt": "2026-03-01T12:00:05Z", "deliveredAt": null,
            "createdAt": "2026-03-01T12:00:00Z", "redeliverable": true}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search<Criteria>;
    type Response = Page<Delivery>;

    fn read(input: &Input, _: &Operator) -> Result<Search<Criteria>> {
        let Query { partner, state, order, after, limit } = strict::query(input)?;
        let paging = Paging::of(&input.head, limit.as_deref(), DELIVERIES_MAX)?;
        if state.as_deref().is_some_and(|state| !STATES.contains(&state)) {
            let reason = format!("state: one of {}", STATES.join(", "));
            return Err(Denial::unprocessable(reason).into());
        }
        let order = order.map(|text| text.parse::<OrderId>()).transpose();
        let order = order.map_err(|_| Denial::unprocessable("order: not an order's number"))?;
        let limit = paging.rows_max();
        let criteria = Criteria { partner, state, order, after, id: None, limit };
        Ok(Search { criteria, paging })
    }

    async fn call(
        core: &Core,
        operator: Operator,
        search: Search<Criteria>,
    ) -> Result<Page<Delivery>> {
        let mut deliveries = find(core, search.criteria).await?;
        for delivery in &mut deliveries {
            mask_query(&operator, &mut delivery.url);
        }
        Ok(search.paging.page(deliveries, |delivery| delivery.id))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    partner: Option<String>,
    state: Option<String>,
    order: Option<String>,
    after: Option<Uuid>,
    limit: Option<String>,
}

/// Query of deliveries; one that is absent is met by all.
#[derive(Debug, Default)]
pub struct Criteria {
    partner: Option<String>,
    state: Option<String>,
    order: Option<OrderId>,
    after: Option<Uuid>,
    id: Option<Uuid>,
    limit: i64,
}

/// An event on its way to one address.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// The delivery's id.
    id: Uuid,
    /// The partner's slug.
    partner: String,
    /// The `webhook-id`.
    event_id: Uuid,
    /// The event's type, such as `order.completed`.
    #[serde(rename = "type")]
    kind: String,
    /// The order that it is about; null without one.
    order_id: Option<i64>,
    /// The address that it goes to.
    url: String,
    /// `pending`, `delivered`, `failed` or `disabled`.
    state: String,
    /// Attempts so far.
    attempts: i16,
    /// Status of the last attempt's answer; null without one.
    last_status: Option<i16>,
    /// Failure of the last attempt: status, redirect, gone, unwanted, timeout, unreachable,
    /// forbidden, unsigned.
    last_error: Option<String>,
    /// While it is pending.
    next_attempt_at: Option<DateTime<Utc>>,
    /// When it was accepted; null before.
    delivered_at: Option<DateTime<Utc>>,
    /// When the event happened.
    created_at: DateTime<Utc>,
    /// `false` if its webhook endpoint is removed or switched off: nothing is sent there again.
    redeliverable: bool,
}

async fn find(core: &Core, criteria: Criteria) -> Result<Vec<Delivery>> {
    let mut conn = core.db.acquire().await?;
    let rows = sqlx::query!(
        r#"
        select d.delivery_id as "id!", c.slug as "partner!", d.event_id as "event_id!",
            e.type as "kind!", d.order_id, d.url as "url!", d.state as "state!",
            d.attempts as "attempts!", d.last_status, d.last_error,
            case when d.state = 'pending' then d.next_attempt_at end as next_attempt_at,
            d.delivered_at, d.created_at as "created_at!"
        from delivery d
        join client c on c.client_id = d.client_id
        join event e on e.client_id = d.client_id and e.event_id = d.event_id
        where ($1::text is null or d.client_id = (select client_id from client where slug = $1))
            and ($2::text is null or d.state = $2)
            and ($3::bigint is null or d.order_id = $3)
            and ($4::uuid is null or d.delivery_id < $4)
            and ($5::uuid is null or d.delivery_id = $5)
        order by d.delivery_id desc limit $6
        "#,
        criteria.partner,
        criteria.state,
        criteria.order.map(OrderId::number),
        criteria.after,
        criteria.id,
        criteria.limit,
    )
    .fetch_all(&mut *conn)
    .await?;
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    let kept = kept(&mut conn, &ids).await?;
    let open: HashSet<_> = kept.iter().filter(|d| d.is_open).map(|d| d.delivery_id).collect();
    let deliveries = rows.into_iter().map(|row| Delivery {
        id: row.id,
        partner: row.partner,
        event_id: row.event_id,
        kind: row.kind,
        order_id: row.order_id,
        url: row.url,
        state: row.state,
        attempts: row.attempts,
        last_status: row.last_status,
        last_error: row.last_error,
        next_attempt_at: row.next_attempt_at,
        delivered_at: row.delivered_at,
        created_at: row.created_at,
        redeliverable: open.contains(&row.id),
    });
    Ok(deliveries.collect())
}

/// `POST /admin/v1/deliveries/{id}/redeliver`
pub struct Redeliver;

impl Endpoint for Redeliver {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/deliveries/{id}/redeliver";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Support, Role::Platform];
    const DOC: Doc = Doc {
        summary: "Deliver an event again",
        details: "From the first attempt on, in whatever state the delivery is. The partner sees \
                  the same `webhook-id`. 409 while an attempt is under way, and for one to a webhook \
                  endpoint that is removed or switched off.",
        path: &[required("id", Kind::Format("uuid"), "The delivery's id.")],
        answer: r#"{"id": "0199a000-0000-7000-8000-000000000003", "partner": "acme",
            "eventId": "0199a000-0000-7000-8000-000000000004", "type": "order.completed",
            "orderId": 1234567890123456, "url": "https://shop.example.com/hook",
            "state": "pending", "attempts": 0, "lastStatus": 500, "lastError": "status",
            "nextAttemptAt": "2026-03-01T12:00:05Z", "deliveredAt": null,
            "createdAt": "2026-03-01T12:00:00Z", "redeliverable": true}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Uuid;
    type Response = Json<Delivery>;

    fn read(input: &Input, _: &Operator) -> Result<Uuid> {
        input.param("id").parse().map_err(|_| Denial::not_found("delivery").into())
    }

    async fn call(core: &Core, operator: Operator, id: Uuid) -> Result<Json<Delivery>> {
        let unknown = || Denial::not_found("delivery");
        let mut tx = core.db.begin().await?;
        let row = sqlx::query!(
            "select client_id as \"client_id!\", state as \"state!\" from delivery \
             where delivery_id = $1 for update",
            id,
        )
        .fetch_optional(&mut *tx)
        .await?
        .ok_or_else(unknown)?;
        match resend(&mut tx, row.client_id.into(), id.into()).await? {
            Resent::Due => {}
            Resent::Unknown => return Err(unknown().into()),
            Resent::UnderWay => return Err(Denial::conflict("an attempt is under way").into()),
            Resent::EndpointOff => {
                let reason = "its endpoint is removed or switched off: nothing is sent there";
                return Err(Denial::conflict(reason).into());
            }
        }
        let (target, detail) = (id.to_string(), json!({"from": row.state}));
        operator.record(&mut tx, core, "delivery.redeliver", &target, detail).await?;
        tx.commit().await?;
        let criteria = Criteria { id: Some(id), limit: 1, ..Criteria::default() };
        Ok(Json(find(core, criteria).await?.pop().ok_or_else(unknown)?))
    }
}
