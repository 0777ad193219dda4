//! Deliveries: `GET /portal/deliveries/{id}` shows what was sent and what came back, `POST …/resend`
//! sends it again.

use chrono::{DateTime, Utc};
use http::Method;
use maud::{Markup, html};
use serde_json::{Value, json};
use uuid::Uuid;

use super::page::{DEVELOPERS, StaffPage, Visit, done};
use crate::http::html::components::{Column, Tone, badge, empty_state, table, time};
use crate::http::reply::Reply;
use crate::notify::callbacks::attempts::{DeliveryAttempt, attempts};
use crate::notify::callbacks::body;
use crate::notify::callbacks::resend::{Resent, kept, resend};
use crate::partners::staff::StaffRole;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use rampart_types::{ClientId, EventId, WebhookEndpointId};

const PATH: &str = "/portal/deliveries/{id}";
pub(super) const PAGE_DELIVERIES: usize = 50;
const ENDPOINT_OFF: &str = "Its endpoint is removed or switched off: nothing is sent there.";

/// A delivery in a list.
pub(super) struct Delivered {
    pub(super) id: Uuid,
    kind: String,
    order_id: Option<i64>,
    url: String,
    state: String,
    attempts: i16,
    last_status: Option<i16>,
    last_error: Option<String>,
    created_at: DateTime<Utc>,
}

impl Delivered {
    /// Deliveries to an endpoint, newest first, before this one if it is given: one more than the
    /// page takes, to detect a next page.
    pub(super) async fn of_endpoint(
        conn: &mut Connection,
        client: ClientId,
        endpoint: WebhookEndpointId,
        before: Option<Uuid>,
    ) -> Result<Vec<Self>> {
        let deliveries = sqlx::query_as!(
            Self,
            r#"
            select d.delivery_id as "id!", e.type as "kind!", d.order_id, d.url as "url!",
                d.state as "state!", d.attempts as "attempts!", d.last_status, d.last_error,
                d.created_at as "created_at!"
            from delivery d
            join event e on e.client_id = d.client_id and e.event_id = d.event_id
            where d.client_id = $1 and d.endpoint_id = $2
                and ($3::uuid is null or d.delivery_id < $3)
            order by d.delivery_id desc limit $4
            "#,
            client.uuid(),
            endpoint.uuid(),
            before,
            i64::try_from(PAGE_DELIVERIES + 1).unwrap_or(i64::MAX),
        )
        .fetch_all(conn)
        .await?;
        Ok(deliveries)
    }

    /// Deliveries of an event.
    pub(super) async fn of_event(
        conn: &mut Connection,
        client: ClientId,
        event: EventId,
    ) -> Result<Vec<Self>> {
        let deliveries = sqlx::query_as!(
            Self,
            r#"
            select d.delivery_id as id, e.type as kind, d.order_id, d.url, d.state, d.attempts,
                d.last_status, d.last_error, d.created_at
            from delivery d
            join event e on e.client_id = d.client_id and e.event_id = d.event_id
            where d.client_id = $1 and d.event_id = $2 order by d.delivery_id
            "#,
            client.uuid(),
            event.uuid(),
        )
        .fetch_all(conn)
        .await?;
        Ok(deliveries)
    }

    fn result(&self) -> String {
        match (self.last_status, self.last_error.as_deref()) {
            (Some(status), Some(error)) if error != "status" => format!("{status} ({error})"),
            (Some(status), _) => status.to_string(),
            (None, error) => error.unwrap_or_default().to_owned(),
        }
    }
}

fn state(state: &str) -> Markup {
    let tone = match state {
        "delivered" => Tone::Good,
        "pending" => Tone::Info,
        "failed" => Tone::Bad,
        _ => Tone::Neutral,
    };
    badge(tone, state)
}

/// Deliveries as a table, each with a link to its page.
pub(super) fn deliveries_table(deliveries: &[Delivered]) -> Markup {
    let columns = [
        Column::Text("Time"),
        Column::Text("Event"),
        Column::Text("To"),
        Column::Text("State"),
        Column::Amount("Attempts"),
        Column::Text("Last answer"),
    ];
    let row = |delivery: &Delivered| {
        vec![
            html! { a href={ "/portal/deliveries/" (delivery.id) } { (time(delivery.created_at)) } },
            html! {
                (delivery.kind)
                @if let Some(order) = delivery.order_id { br; span.hint { "order " (order) } }
            },
            html! { (delivery.url) },
            state(&delivery.state),
            html! { (delivery.attempts) },
            html! { (delivery.result()) },
        ]
    };
    let rows: Vec<_> = deliveries.iter().map(row).collect();
    match rows.is_empty() {
        true => empty_state("No delivery.", "Nothing has been sent yet."),
        false => table("Deliveries", &columns, &rows),
    }
}

/// Shows a delivery with its attempts.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Ok(id) = visit.param("id").parse::<Uuid>() else { return Ok(visit.not_found()) };
        let client = visit.session.client.id();
        let found = sqlx::query!(
            r#"
            select d.event_id, d.url, d.state, d.attempts, d.created_at, e.type as kind, e.payload,
                e.created_at as happened_at,
                case when d.state = 'pending' then d.next_attempt_at end as next_attempt_at
            from delivery d
            join event e on e.client_id = d.client_id and e.event_id = d.event_id
            where d.client_id = $1 and d.delivery_id = $2
            "#,
            client.uuid(),
            id,
        )
        .fetch_optional(&visit.core.db)
        .await?;
        let Some(delivery) = found else { return Ok(visit.not_found()) };
        let mut conn = visit.core.db.acquire().await?;
        let attempts = attempts(&mut conn, client, id.into()).await?;
        let is_open = kept(&mut conn, &[id]).await?.iter().any(|delivery| delivery.is_open);
        let sent = body(&delivery.kind, delivery.happened_at, &delivery.payload)?;
        let body = html! {
            dl {
                dt { "Event" }
                dd { a href={ "/portal/events/" (delivery.event_id) } { (delivery.kind) } }
                dt { "State" } dd { (state(&delivery.state)) }
                @if let Some(next) = delivery.next_attempt_at {
                    dt { "Next attempt" } dd { (time(next)) }
                }
                dt { "Made" } dd { (time(delivery.created_at)) }
            }
            @if is_open {
                div.row {
                    (visit.button_to(&format!("/portal/deliveries/{id}/resend"), "Send it again"))
                }
            } @else {
                p.hint { (ENDPOINT_OFF) }
            }
            h2 { "Request" }
            (request(&delivery.url, delivery.event_id, &sent))
            h2 { "Attempts" }
            @if attempts.is_empty() {
                (empty_state("No attempt on record.", "Attempts are kept for seven days."))
            }
            @for attempt in &attempts { (shown(attempt)) }
        };
        Ok(visit.page("/portal/webhooks", "Delivery", &body))
    }
}

/// The request as it is sent, but for what differs from one attempt to the next.
fn request(url: &str, event: Uuid, body: &str) -> Markup {
    let pretty: Option<Value> = serde_json::from_str(body).ok();
    let pretty = pretty.and_then(|value| serde_json::to_string_pretty(&value).ok());
    html! {
        pre tabindex="0" {
            "POST " (url) "\n"
            "content-type: application/json\n"
            "webhook-id: " (event) "\n"
            "webhook-timestamp: the attempt's time, in seconds since 1970\n"
            "webhook-signature: v1,…\n\n"
            (pretty.as_deref().unwrap_or(body))
        }
        p.hint { "The body is signed as it was sent: in one line, without blanks between members." }
    }
}

/// An attempt with its result and its answer.
fn shown(attempt: &DeliveryAttempt) -> Markup {
    let tone = if attempt.error.is_none() { Tone::Good } else { Tone::Bad };
    let status = attempt.status.map_or_else(String::new, |status| status.to_string());
    let result = match attempt.error.as_deref() {
        None => status,
        Some("status") => status,
        Some(error) => format!("{status} {error}"),
    };
    let (sent_at, took_ms) = (attempt.sent_at, attempt.took_ms);
    html! {
        div.panel {
            p {
                (badge(tone, result.trim())) " " (time(sent_at))
                span.hint { " · " (took_ms) " ms · webhook-timestamp " (sent_at.timestamp()) }
            }
            @match attempt.answer.as_deref() {
                None => p.hint { "No answer." },
                Some("") => p.hint { "An answer without a body." },
                Some(answer) => pre tabindex="0" { (answer) },
            }
        }
    }
}

/// Sends a delivery again.
pub struct Resend;

impl StaffPage for Resend {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/deliveries/{id}/resend";
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Ok(id) = visit.param("id").parse::<Uuid>() else { return Ok(visit.not_found()) };
        let mut tx = visit.begin().await?;
        if visit.earlier_result(&mut tx, Self::PATH).await?.is_some() {
            return Ok(done(&format!("/portal/deliveries/{id}"), "resent"));
        }
        let client = visit.session.client.id();
        let refusal = match resend(&mut tx, client, id.into()).await? {
            Resent::Due => None,
            Resent::Unknown => return Ok(visit.not_found()),
            Resent::UnderWay => Some("An attempt is under way: try again in half a minute."),
            Resent::EndpointOff => Some(ENDPOINT_OFF),
        };
        if let Some(reason) = refusal {
            return Err(Denial::conflict(reason).into());
        }
        visit.record(&mut tx, "delivery.redeliver", json!({ "deliveryId": id })).await?;
        tx.commit().await?;
        Ok(done(&format!("/portal/deliveries/{id}"), "resent"))
    }
}
