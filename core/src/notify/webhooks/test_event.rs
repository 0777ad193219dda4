//! An event that tests one webhook endpoint: it is sent there alone, whatever the endpoint listens to.

use serde_json::json;

use crate::Core;
use crate::notify::events::EventType;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::telemetry::TraceScope;
use rampart_types::{ClientId, EventId, WebhookEndpointId};

/// Records an event for this endpoint with its delivery. `None` when there is no such endpoint, or it
/// is disabled.
///
/// # Errors
/// Without entropy; when the database cannot be written.
pub async fn send(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    endpoint: WebhookEndpointId,
) -> Result<Option<EventId>> {
    let event = EventId::from(core.clock.uuid()?);
    let trace = TraceScope::current().stored();
    let sent = sqlx::query!(
        "with target as ( \
             select url from webhook_endpoint \
             where client_id = $1 and endpoint_id = $2 and disabled_at is null \
         ), event as ( \
             insert into event \
                 (client_id, event_id, type, payload, created_at, traceparent, tracestate) \
             select $1, $3, $4, $5, $6, $7, $8 from target \
         ) \
         insert into delivery (client_id, delivery_id, event_id, endpoint_id, url, \
             next_attempt_at, created_at) \
         select $1, $9, $3, $2, url, $6, $6 from target",
        client.uuid(),
        endpoint.uuid(),
        event.uuid(),
        EventType::WebhookTest.as_str(),
        json!({ "endpointId": endpoint }),
        core.clock.now(),
        trace.traceparent,
        trace.tracestate,
        core.clock.uuid()?,
    )
    .execute(conn)
    .await?;
    Ok((sent.rows_affected() > 0).then_some(event))
}
