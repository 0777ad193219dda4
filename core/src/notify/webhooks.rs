//! Webhook endpoints: URLs that a partner registers to receive events, in addition to the
//! `callbackUrl` of single orders (section 8 of the contract).
//!
//! [`fan_out`] writes the deliveries in the transaction of the event; `callbacks` sends them, signed
//! and retried like a callback, with the endpoint's own secrets if it has any (`secrets`). An endpoint that answers 410 is disabled there, and [`failing`]
//! disables one that has failed for days.

pub(crate) mod failing;
pub mod list;
mod openapi;
pub mod register;
pub mod remove;
pub mod secrets;
pub mod test_event;

pub use self::openapi::openapi;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Core;
use crate::notify::events::EventType;
use crate::platform::db::Connection;
use rampart_types::{ClientId, EventId, WebhookEndpointId};

/// Most endpoints of one tenant, three for each type of event; the table's `slot` has the same bound.
pub const ENDPOINTS_MAX: i64 = 50;

/// An endpoint, for the OpenAPI document.
const EXAMPLE: &str = r#"{"id": "0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c", "url": "https://shop.example/hook",
            "events": ["order.completed"], "disabled": false, "disabledAt": null,
            "createdAt": "2026-03-01T12:00:00Z"}"#;

/// An endpoint, as returned to the partner.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WebhookEndpoint")]
pub struct Endpoint {
    /// Id of the endpoint.
    pub id: WebhookEndpointId,
    /// Its URL.
    pub url: String,
    /// Types of the events it receives; `null`: all, including future ones.
    pub events: Option<Vec<String>>,
    /// True after its host has answered 410, or has failed for three days: nothing is sent there
    /// any more.
    pub disabled: bool,
    /// Time at which it was disabled.
    pub disabled_at: Option<DateTime<Utc>>,
    /// Time of the first failure after its last success, for operators.
    #[serde(skip)]
    pub failing_since: Option<DateTime<Utc>>,
    /// Time at which it was registered.
    pub created_at: DateTime<Utc>,
}

/// Writes a delivery of the event (its id, type and order) to every subscribed endpoint.
///
/// # Errors
/// The database's.
pub(crate) async fn fan_out(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    event: EventId,
    kind: &str,
    order: Option<i64>,
) -> Result<u64, sqlx::Error> {
    // It is for one endpoint alone, when it is sent again too.
    if kind == EventType::WebhookTest.as_str() {
        return Ok(0);
    }
    let written = sqlx::query!(
        r#"
        insert into delivery (client_id, delivery_id, event_id, order_id, endpoint_id, url,
            next_attempt_at, created_at)
        select client_id, delivery_id($2, endpoint_id), $2, $3, endpoint_id, url, $4, $4
        from webhook_endpoint w
        where client_id = $1 and disabled_at is null and (events is null or $5 = any (events))
            -- an event that is told of again has its deliveries already
            and not exists (
                select from delivery d where d.client_id = $1 and d.event_id = $2
                    and d.endpoint_id = w.endpoint_id
            )
        "#,
        client.uuid(),
        event.uuid(),
        order,
        core.clock.now(),
        kind,
    )
    .execute(conn)
    .await?;
    Ok(written.rows_affected())
}
