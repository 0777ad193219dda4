//! The event log: `GET /portal/events`, newest first, `GET /portal/events/{id}`, and `POST …/redeliver`,
//! which sends an event again to everybody who listens.

use chrono::{DateTime, Utc};
use http::Method;
use maud::{Markup, html};
use serde_json::{Value, json};
use uuid::Uuid;

use super::deliveries::{Delivered, deliveries_table};
use super::page::{DEVELOPERS, StaffPage, Visit, done};
use crate::http::html::choice::select;
use crate::http::html::components::{Column, empty_state, table, time};
use crate::http::reply::Reply;
use crate::notify::events::EventType;
use crate::notify::events::redeliver::redeliver;
use crate::partners::staff::StaffRole;
use crate::platform::error::Result;
use rampart_types::EventId;

const PATH: &str = "/portal/events";
const PAGE_EVENTS: usize = 50;

/// Lists events.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let kind = EventType::from_name(&visit.query("type"));
        let before = visit.query("before").parse().ok();
        let mut events = Listed::load(visit, kind, before).await?;
        let more = events.len() > PAGE_EVENTS;
        events.truncate(PAGE_EVENTS);
        let columns = [Column::Text("Time"), Column::Text("Type"), Column::Text("Order")];
        let rows: Vec<_> = events.iter().map(Listed::row).collect();
        let body = html! {
            (filter(kind))
            @if rows.is_empty() {
                (empty_state("No event.", "What happens to orders and users stands here."))
            } @else {
                (table("Events, newest first", &columns, &rows))
            }
            @if let Some(last) = events.last().filter(|_| more) {
                p {
                    a href={ (PATH) "?before=" (last.id) "&type=" (kind.map_or("", EventType::as_str)) } {
                        "Earlier events"
                    }
                }
            }
        };
        Ok(visit.page(PATH, "Events", &body))
    }
}

fn filter(kind: Option<EventType>) -> Markup {
    let names = EventType::NAMES.into_iter().map(|name| (name, name));
    let options: Vec<_> = [("", "all")].into_iter().chain(names).collect();
    html! {
        form.filter method="get" {
            (select("type", "Type", kind.map_or("", EventType::as_str), &options))
            button type="submit" { "Show" }
        }
    }
}

/// An event in the list.
struct Listed {
    id: Uuid,
    kind: String,
    order_id: Option<i64>,
    created_at: DateTime<Utc>,
}

impl Listed {
    /// One more than the page takes, to detect a next page.
    async fn load(
        visit: &Visit<'_>,
        kind: Option<EventType>,
        before: Option<Uuid>,
    ) -> Result<Vec<Self>> {
        let (client, db) = (visit.session.client.id().uuid(), &visit.core.db);
        let before = before.unwrap_or(Uuid::max());
        let limit = i64::try_from(PAGE_EVENTS + 1).unwrap_or(i64::MAX);
        // One statement for each index: the server may keep one plan for every value.
        let events = match kind.map(EventType::as_str) {
            None => {
                sqlx::query_as!(
                    Self,
                    "select event_id as id, type as kind, order_id, created_at from event \
                     where client_id = $1 and event_id < $2 order by event_id desc limit $3",
                    client,
                    before,
                    limit,
                )
                .fetch_all(db)
                .await?
            }
            Some(kind) => {
                sqlx::query_as!(
                    Self,
                    "select event_id as id, type as kind, order_id, created_at from event \
                     where client_id = $1 and event_id < $2 and type = $4 \
                     order by event_id desc limit $3",
                    client,
                    before,
                    limit,
                    kind,
                )
                .fetch_all(db)
                .await?
            }
        };
        Ok(events)
    }

    fn row(&self) -> Vec<Markup> {
        vec![
            html! { a href={ (PATH) "/" (self.id) } { (time(self.created_at)) } },
            html! { (self.kind) },
            html! { @if let Some(order) = self.order_id { (order) } },
        ]
    }
}

/// Shows one event with its deliveries.
pub struct ShowOne;

impl StaffPage for ShowOne {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/portal/events/{id}";
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Ok(id) = visit.param("id").parse::<Uuid>() else { return Ok(visit.not_found()) };
        let client = visit.session.client.id();
        let mut conn = visit.core.db.acquire().await?;
        let event = sqlx::query!(
            "select type as kind, created_at, payload from event \
             where client_id = $1 and event_id = $2",
            client.uuid(),
            id,
        )
        .fetch_optional(&mut *conn)
        .await?;
        let Some(event) = event else { return Ok(visit.not_found()) };
        let deliveries = Delivered::of_event(&mut conn, client, id.into()).await?;
        drop(conn);
        let shown: &Value = &event.payload;
        let data = serde_json::to_string_pretty(shown).unwrap_or_default();
        let redeliver = format!("{PATH}/{id}/redeliver");
        let body = html! {
            dl {
                dt { "Type" } dd { (event.kind) }
                dt { "Time" } dd { (time(event.created_at)) }
                dt { "Id" } dd { code { (id) } }
            }
            div.row { (visit.button_to(&redeliver, "Send it again to everybody who listens")) }
            h2 { "Data" }
            pre tabindex="0" { (data) }
            h2 { "Deliveries" }
            (deliveries_table(&deliveries))
        };
        Ok(visit.page(PATH, "Event", &body))
    }
}

/// Repeats the deliveries of an event.
pub struct Redeliver;

impl StaffPage for Redeliver {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/events/{id}/redeliver";
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Ok(id) = visit.param("id").parse::<Uuid>() else { return Ok(visit.not_found()) };
        let client = visit.session.client.id();
        let page = format!("{PATH}/{id}");
        let mut tx = visit.begin().await?;
        if let Some(word) = visit.earlier_result(&mut tx, Self::PATH).await? {
            return Ok(done(&page, &word));
        }
        let sent = redeliver(&mut tx, visit.core, client, EventId::from(id)).await?;
        let Some(sent) = sent else { return Ok(visit.not_found()) };
        let word = if sent.deliveries == 0 { "unheard" } else { "resent" };
        visit.record(&mut tx, "event.redeliver", json!({ "eventId": id })).await?;
        visit.keep_result(&mut tx, Self::PATH, word).await?;
        tx.commit().await?;
        Ok(done(&page, word))
    }
}
