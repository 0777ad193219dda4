//! `GET /admin/v1/deliveries/{id}`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{Criteria, Delivery, find};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, required};
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::notify::callbacks::attempts::{DeliveryAttempt, attempts};
use crate::notify::callbacks::body;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};

/// `GET /admin/v1/deliveries/{id}`
pub struct ReadDelivery;

impl Endpoint for ReadDelivery {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/deliveries/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    // A partner's host answers what it likes, names of people too.
    const ROLES: &'static [Role] = &[Role::Support, Role::Platform];
    const READ_AUDIT: Option<&'static str> = Some("delivery.read");
    const DOC: Doc = Doc {
        summary: "Read a delivery with its attempts",
        details: "Attempts are kept for seven days.",
        path: &[required("id", Kind::Format("uuid"), "The delivery's id.")],
        answer: r#"{"id": "0199a000-0000-7000-8000-000000000003", "partner": "acme",
            "eventId": "0199a000-0000-7000-8000-000000000004", "type": "order.completed",
            "orderId": 1234567890123456, "url": "https://shop.example.com/hook",
            "state": "pending", "attempts": 1, "lastStatus": 500, "lastError": "status",
            "nextAttemptAt": "2026-03-01T12:00:05Z", "deliveredAt": null,
            "createdAt": "2026-03-01T12:00:00Z", "redeliverable": true,
            "requestBody":
            "{\"type\":\"order.completed\",\"timestamp\":\"2026-03-01T12:00:00Z\",\"data\":{}}",
            "attemptLog": [{"sentAt": "2026-03-01T12:00:00Z", "tookMs": 120, "status": 500,
                "error": "status", "answer": "out of order"}]}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Uuid;
    type Response = Json<WithAttempts>;

    fn read(input: &Input, _: &Operator) -> Result<Uuid> {
        input.param("id").parse().map_err(|_| Denial::not_found("delivery").into())
    }

    async fn call(core: &Core, _: Operator, id: Uuid) -> Result<Json<WithAttempts>> {
        let unknown = || Denial::not_found("delivery");
        let criteria = Criteria { id: Some(id), limit: 1, ..Criteria::default() };
        let delivery = find(core, criteria).await?.pop().ok_or_else(unknown)?;
        let mut conn = core.db.acquire().await?;
        let event = sqlx::query!(
            r#"
            select d.client_id as "client_id!", e.type as "kind!", e.payload as "payload!",
                e.created_at as "happened_at!"
            from delivery d
            join event e on e.client_id = d.client_id and e.event_id = d.event_id
            where d.delivery_id = $1
            "#,
            id,
        )
        .fetch_optional(&mut *conn)
        .await?
        .ok_or_else(unknown)?;
        let request_body = body(&event.kind, event.happened_at, &event.payload)?;
        let attempt_log = attempts(&mut conn, event.client_id.into(), id.into()).await?;
        Ok(Json(WithAttempts { delivery, request_body, attempt_log }))
    }
}

/// A delivery with its request and its attempts.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeliveryWithAttempts")]
pub struct WithAttempts {
    #[serde(flatten)]
    delivery: Delivery,
    /// The body that is sent and signed, byte for byte.
    request_body: String,
    /// Attempts on record, newest first; at most 50.
    attempt_log: Vec<DeliveryAttempt>,
}
