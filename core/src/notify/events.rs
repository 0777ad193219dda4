//! The partner's event log and its outbox. An event is written in the transaction of the change it
//! reports, so that neither exists without the other.
//!
//! - [`record`] writes an event and its deliveries
//! - [`list`] serves the log to the partner, [`redeliver`] repeats the deliveries of an event
//! - [`marks`] tell how far the log can be read on without missing an event

pub mod list;
pub mod marks;
pub mod redeliver;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::Core;
use crate::notify::webhooks;
use crate::platform::db::Connection;
use crate::platform::telemetry::TraceScope;
use rampart_types::{ClientId, EventId, OrderId};

/// The type of an event (section 8 of the contract).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// A quote was confirmed.
    OrderCreated,
    /// The right amount arrived in time.
    OrderPaid,
    /// The coins were sent.
    OrderSent,
    /// The coins are confirmed on chain.
    OrderCompleted,
    /// The order ended without a payment.
    OrderCancelled,
    /// The order awaits a decision of the operator.
    OrderBlocked,
    /// The payment was refunded.
    OrderRefunded,
    /// A payment arrived that the order does not want.
    OrderPaymentReceived,
    /// An arrived amount, or the price of the moment, has changed the order's amounts.
    OrderRepriced,
    /// The payer disputes the payment.
    OrderDisputed,
    /// A user was registered.
    UserCreated,
    /// A user is fully verified.
    UserVerified,
    /// A user was disabled.
    UserDisabled,
    /// A partner's identifier was linked to a user.
    IdentifierLinked,
    /// A webhook endpoint has failed for days and was disabled.
    WebhookDisabled,
    /// Somebody tests a webhook endpoint, which alone is told of it.
    WebhookTest,
}

rampart_types::named_values! {
    pub EventType {
        OrderCreated = "order.created",
        OrderPaid = "order.paid",
        OrderSent = "order.sent",
        OrderCompleted = "order.completed",
        OrderCancelled = "order.cancelled",
        OrderBlocked = "order.blocked",
        OrderRefunded = "order.refunded",
        OrderPaymentReceived = "order.payment_received",
        OrderRepriced = "order.repriced",
        OrderDisputed = "order.disputed",
        UserCreated = "user.created",
        UserVerified = "user.verified",
        UserDisabled = "user.disabled",
        IdentifierLinked = "identifier.linked",
        WebhookDisabled = "webhook.disabled",
        WebhookTest = "webhook.test",
    }
}

/// An event about to be recorded.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Its type.
    pub kind: EventType,
    /// The order concerned, if any.
    pub order_id: Option<OrderId>,
    /// The `data` of its envelope.
    pub payload: Value,
}

/// An event in the log.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "LoggedEvent")]
pub struct LoggedEvent {
    /// Also the `webhook-id` of its deliveries.
    id: EventId,
    /// Its type.
    #[serde(rename = "type")]
    kind: String,
    /// When it happened.
    timestamp: DateTime<Utc>,
    /// The object of the event: `data` of `EventWebhook`.
    data: Value,
}

/// Records an event in the caller's transaction, with its deliveries to every subscribed webhook
/// endpoint and to `callback_url`, if given: the complete URL, query included.
///
/// A confirm writes the same rows inside its own statement (`orders/insert.rs`).
///
/// # Errors
/// The database's; [`sqlx::Error::Encode`] when no id could be drawn.
pub async fn record(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    event: NewEvent,
    callback_url: Option<&str>,
) -> Result<(), sqlx::Error> {
    let NewEvent { kind, order_id, payload } = event;
    let (event_id, now) = (EventId::from(core.clock.uuid()?), core.clock.now());
    let order_id = order_id.map(OrderId::number);
    let trace = TraceScope::current().stored();
    sqlx::query!(
        "insert into event (client_id, event_id, type, order_id, payload, created_at, \
             traceparent, tracestate) \
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        client.uuid(),
        event_id.uuid(),
        kind.as_str(),
        order_id,
        payload,
        now,
        trace.traceparent,
        trace.tracestate,
    )
    .execute(&mut *conn)
    .await?;
    webhooks::fan_out(conn, core, client, event_id, kind.as_str(), order_id).await?;
    let Some(url) = callback_url else { return Ok(()) };
    sqlx::query!(
        "insert into delivery \
         (client_id, delivery_id, event_id, order_id, url, next_attempt_at, created_at) \
         values ($1, $2, $3, $4, $5, $6, $6)",
        client.uuid(),
        core.clock.uuid()?,
        event_id.uuid(),
        order_id,
        url,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_found_by_its_exact_name() {
        for kind in EventType::ALL {
            assert_eq!(EventType::from_name(kind.as_str()), Some(kind));
        }
        assert_eq!(EventType::from_name("order"), None);
    }
}
