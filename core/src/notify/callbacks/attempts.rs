//! Attempts of a delivery that are on record.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::{ClientId, DeliveryId};

/// Most attempts that are shown.
const ATTEMPTS_MAX: i64 = 50;

/// An attempt to deliver an event.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryAttempt {
    /// When it was sent; in seconds since 1970, its `webhook-timestamp`.
    pub sent_at: DateTime<Utc>,
    /// Time until its answer or its failure, in milliseconds.
    pub took_ms: i32,
    /// Status of the answer, if the partner's host answered.
    pub status: Option<i16>,
    /// Failure, as `lastError`; null if it was accepted.
    pub error: Option<String>,
    /// Beginning of the answer's body; null without an answer.
    pub answer: Option<String>,
}

/// Attempts on record, newest first.
///
/// # Errors
/// When the database cannot be read.
pub async fn attempts(
    conn: &mut Connection,
    client: ClientId,
    delivery: DeliveryId,
) -> Result<Vec<DeliveryAttempt>> {
    let attempts = sqlx::query_as!(
        DeliveryAttempt,
        "select sent_at, took_ms, status, error, answer from delivery_attempt \
         where client_id = $1 and delivery_id = $2 order by attempt_id desc limit $3",
        client.uuid(),
        delivery.uuid(),
        ATTEMPTS_MAX,
    )
    .fetch_all(conn)
    .await?;
    Ok(attempts)
}
