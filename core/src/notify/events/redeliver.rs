//! `POST /api/v2/events/{id}/redeliver`: repeats the deliveries of an event, with the same
//! `webhook-id`.

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use super::LoggedEvent;
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, required};
use crate::endpoint::{ClaimedKey, Endpoint, Json, save_answer};
use crate::http::request::Input;
use crate::notify::webhooks;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use rampart_types::{ClientId, EventId};

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/events/{id}/redeliver";
    const SCOPE: Option<Scope> = Some(Scope::WebhooksWrite);
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Send an event again",
        details: "To the order's callback, where it was called, and to every webhook endpoint that \
                  listens now. The `webhook-id` stays the same.",
        path: &[required("id", Kind::Format("uuid"), "The event's id.")],
        answer: r#"{"id": "0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c", "type": "order.paid",
            "timestamp": "2026-03-01T12:00:00Z", "data": {"orderId": 1234567890123456,
            "partnerOrderIdentifier": "shop-7", "status": "in progress"}, "deliveries": 1}"#,
        also: &[(404, Code::RouteNotFound)],
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = EventId;
    type Response = Json<Redelivered>;

    fn read(input: &Input, _: &Client) -> Result<EventId> {
        input.param("id").parse().map_err(|_| unknown())
    }

    /// Restarts the event's deliveries from the first attempt, and creates those to endpoints
    /// registered since. A delivery with an attempt in progress is left alone.
    async fn call(core: &Core, client: Client, id: EventId) -> Result<Json<Redelivered>> {
        Self::call_with_key(core, client, id, None).await
    }

    async fn call_with_key(
        core: &Core,
        client: Client,
        id: EventId,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<Redelivered>> {
        let mut tx = core.db.begin().await?;
        let event = redeliver(&mut tx, core, client.id(), id).await?.ok_or_else(unknown)?;
        save_answer(key, core, &mut tx, &event).await?;
        tx.commit().await?;
        Ok(Json(event))
    }
}

/// Repeats the deliveries of an event; `None` when there is none of this id.
///
/// # Errors
/// When the database cannot be written.
pub async fn redeliver(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    id: EventId,
) -> Result<Option<Redelivered>> {
    // The lock serializes concurrent redeliveries, so that the second finds the rows of the first.
    let event = sqlx::query!(
        "select type as kind, order_id, payload, created_at from event \
         where client_id = $1 and event_id = $2 for no key update",
        client.uuid(),
        id.uuid(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(event) = event else { return Ok(None) };
    restart(conn, client, id).await?;
    webhooks::fan_out(conn, core, client, id, &event.kind, event.order_id).await?;
    let deliveries = count_pending(conn, client, id).await?;
    let event =
        LoggedEvent { id, kind: event.kind, timestamp: event.created_at, data: event.payload };
    Ok(Some(Redelivered { event, deliveries }))
}

async fn restart(tx: &mut Connection, client: ClientId, event: EventId) -> Result<()> {
    sqlx::query!(
        r#"
        update delivery d set state = 'pending', attempts = 0, next_attempt_at = rampart_now(),
            ready = true, leased_until = null, delivered_at = null, sent_again_at = rampart_now()
        where client_id = $1 and event_id = $2
            and (state <> 'pending' or leased_until is null or leased_until <= rampart_now())
            and (endpoint_id is null or exists (
                select from webhook_endpoint w
                where w.client_id = $1 and w.endpoint_id = d.endpoint_id and w.disabled_at is null
            ))
        "#,
        client.uuid(),
        event.uuid(),
    )
    .execute(tx)
    .await?;
    Ok(())
}

async fn count_pending(tx: &mut Connection, client: ClientId, event: EventId) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"
        select count(*) as "count!" from delivery
        where client_id = $1 and event_id = $2 and state = 'pending'
        "#,
        client.uuid(),
        event.uuid(),
    )
    .fetch_one(tx)
    .await?;
    Ok(count)
}

/// The event and the number of its deliveries.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "EventRedelivery")]
pub struct Redelivered {
    #[serde(flatten)]
    event: LoggedEvent,
    /// Deliveries that are pending now; 0 when the event has neither a callback nor an endpoint.
    pub deliveries: i64,
}

/// Another partner's event is reported as unknown, too.
fn unknown() -> Error {
    Error::with_detail(Code::RouteNotFound, "there is no such event")
}
