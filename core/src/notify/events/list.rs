//! `GET /api/v2/events`: the partner's event log, oldest first, in pages. A partner that stores the
//! last id and requests the events after it recovers every lost delivery.

use chrono::{DateTime, TimeDelta, Utc};
use http::{Method, StatusCode};
use schemars::SchemaGenerator;
use serde_json::Value;
use url::form_urlencoded;
use uuid::Uuid;

use super::{EventType, LoggedEvent};
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Respond, Success};
use crate::http::fields::Fields;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use rampart_types::{ClientId, EventId};

/// Default number of events per page.
const PAGE_EVENTS: usize = 20;
/// Most events per page.
const PAGE_EVENTS_MAX: usize = 100;
/// Longest time from the drawing of an event's id to its transaction's first write, clock skew of
/// edges included: waits for a connection, for locks, and further attempts. The cursor waits for
/// the end of transactions besides (`marks.rs`).
const STABLE_AGE: TimeDelta = TimeDelta::seconds(15);

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/events";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const ERRORS: &'static [Code] = &[Code::RequestMalformed];
    const DOC: Doc = Doc {
        summary: "Read the event log",
        details: "Events come oldest first. Ask for what comes after the last `X-Next-Cursor` to \
                  miss none: a page of the newest events is shown at once, and again behind the \
                  cursor, because an earlier one may still turn up: a long transaction on the \
                  database server holds the cursor for up to ten minutes. Their ids tell them \
                  apart.",
        query: &[
            optional("after", Kind::Format("uuid"), "Only events behind this one."),
            optional("type", Kind::OneOf(&EventType::NAMES), "Only events of this type."),
            optional("limit", Kind::Integer(1, 100), "Most events of the page; 20 if omitted."),
        ],
        answer: r#"[{"id": "0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c", "type": "order.paid",
            "timestamp": "2026-03-01T12:00:00Z", "data": {"orderId": 1234567890123456,
            "partnerOrderIdentifier": "shop-7", "status": "in progress"}}]"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = Filter;
    type Response = Page;

    fn read(input: &Input, _: &Client) -> Result<Filter> {
        Filter::read(input.head.query.as_deref())
    }

    async fn call(core: &Core, client: Client, filter: Filter) -> Result<Page> {
        let (events, stable_until) = find(core, client.id(), &filter).await?;
        Ok(Page::new(events, filter, stable_until))
    }
}

/// The filter and page size of a request.
#[derive(Debug)]
pub struct Filter {
    after: Option<EventId>,
    kind: Option<EventType>,
    limit: usize,
}

impl Filter {
    /// # Errors
    /// ER048 with the parameter's name.
    fn read(query: Option<&str>) -> Result<Self> {
        let mut fields = Fields::of_query(query);
        let after =
            fields.optional("after", Code::RequestMalformed, |value| value.as_str()?.parse().ok());
        let kind = fields.optional("type", Code::RequestMalformed, |value| {
            EventType::from_name(value.as_str()?)
        });
        let limit = fields.optional("limit", Code::RequestMalformed, |value| {
            let limit = value.as_str()?.parse().ok()?;
            (1..=PAGE_EVENTS_MAX).contains(&limit).then_some(limit)
        });
        fields.finish(Some(Self { after, kind, limit: limit.unwrap_or(PAGE_EVENTS) }))
    }

    /// The `Link` header to the events after this one (RFC 8288).
    fn link(&self, after: EventId) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("after", &after.to_string());
        if let Some(kind) = self.kind {
            query.append_pair("type", kind.as_str());
        }
        query.append_pair("limit", &self.limit.to_string());
        format!("<{}?{}>; rel=\"next\"", V2::PATH, query.finish())
    }
}

/// An event as stored.
struct EventRow {
    id: Uuid,
    kind: String,
    timestamp: DateTime<Utc>,
    data: Value,
    /// The oldest transaction that was running when it was read.
    oldest_running: i64,
    /// The time at which it was read.
    now: DateTime<Utc>,
}

/// A statement that reads a client's events after one. The condition stands in its text, since the
/// server may keep one plan for every value: a type has an index of its own.
macro_rules! select_events {
    ($condition:literal, $($argument:expr),+) => {
        sqlx::query_as!(
            EventRow,
            "select event_id as id, type as kind, created_at as timestamp, payload as data, \
                 pg_snapshot_xmin(pg_current_snapshot())::text::bigint as \"oldest_running!\", \
                 rampart_now() as \"now!\" \
             from event where client_id = $1 and event_id > $2 "
                + $condition
                + "order by event_id limit $3",
            $($argument),+
        )
    };
}

/// A page of events, and the time up to which none can appear before one of them any more: an
/// event's id is drawn before its transaction commits.
async fn find(
    core: &Core,
    client: ClientId,
    filter: &Filter,
) -> Result<(Vec<LoggedEvent>, DateTime<Utc>)> {
    let after = filter.after.map_or(Uuid::nil(), EventId::uuid);
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let rows = match filter.kind.map(EventType::as_str) {
        None => {
            let events = select_events!("", client.uuid(), after, limit);
            events.fetch_all(&core.db).await?
        }
        Some(kind) => {
            let events = select_events!("and type = $4 ", client.uuid(), after, limit, kind);
            events.fetch_all(&core.db).await?
        }
    };
    let stable_until = rows.first().map_or(DateTime::UNIX_EPOCH, |row| {
        core.transaction_marks.ended_until(row.oldest_running, row.now) - STABLE_AGE
    });
    let events = rows.into_iter().map(|row| LoggedEvent {
        id: EventId::from(row.id),
        kind: row.kind,
        timestamp: row.timestamp,
        data: row.data,
    });
    Ok((events.collect(), stable_until))
}

/// A page, with a cursor that misses no event. Events that one may still appear before are shown
/// and repeated after the cursor: their ids identify duplicates.
#[derive(Debug)]
pub struct Page {
    events: Vec<LoggedEvent>,
    cursor: Option<EventId>,
    /// Set while more events can be read now.
    link: Option<String>,
}

impl Page {
    fn new(events: Vec<LoggedEvent>, filter: Filter, stable_until: DateTime<Utc>) -> Self {
        let stable = events.iter().take_while(|event| event.timestamp <= stable_until).last();
        let stable = stable.map(|event| event.id);
        let full = events.len() == filter.limit;
        let link = stable.filter(|_| full).map(|last| filter.link(last));
        Self { events, cursor: stable.or(filter.after), link }
    }
}

impl Respond for Page {
    fn respond(self) -> Result<Reply> {
        let mut reply = Reply::json(StatusCode::OK, &self.events)?;
        if let Some(cursor) = self.cursor {
            reply.set("x-next-cursor", cursor.to_string());
        }
        if let Some(link) = &self.link {
            reply.set("link", link);
        }
        Ok(reply)
    }

    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success> {
        let headers = &[
            ("Link", "`rel=\"next\"`: the next page, if there is one now."),
            ("X-Next-Cursor", "The `after` with which no event is missed, if there is one yet."),
        ];
        vec![Success { headers, ..Success::json::<Vec<LoggedEvent>>(StatusCode::OK, schemas) }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
    }

    fn page(ages: &[i64], query: &str) -> Page {
        let event = |(number, age): (u128, &i64)| LoggedEvent {
            id: EventId::from(Uuid::from_u128(number)),
            kind: "order.paid".to_owned(),
            timestamp: at(-age),
            data: Value::Null,
        };
        let events = (1..).zip(ages).map(event).collect();
        Page::new(events, Filter::read(Some(query)).unwrap(), at(-15))
    }

    fn id(number: u128) -> Option<EventId> {
        Some(EventId::from(Uuid::from_u128(number)))
    }

    #[test]
    fn the_cursor_stays_before_unstable_events() {
        assert_eq!(page(&[30, 20, 1], "").cursor, id(2));
        assert_eq!(page(&[30, 1, 20], "").cursor, id(1));
        assert_eq!(page(&[], "").cursor, None);
        let after = "after=00000000-0000-0000-0000-000000000009";
        assert_eq!(page(&[1], after).cursor, id(9));
    }

    #[test]
    fn a_full_page_has_a_link_to_the_next() {
        assert_eq!(page(&[30, 20, 1], "limit=4").link, None);
        assert_eq!(page(&[1, 1], "limit=2").link, None, "it would lead to the same page");
        let link = page(&[30, 20], "limit=2&type=order.paid").link.unwrap();
        let next = "after=00000000-0000-0000-0000-000000000002&type=order.paid&limit=2";
        assert_eq!(link, format!("</api/v2/events?{next}>; rel=\"next\""));
    }

    #[test]
    fn every_invalid_parameter_is_refused() {
        for query in ["after=", "after=7", "type=order", "limit=0", "limit=101", "limit=x"] {
            assert!(Filter::read(Some(query)).unwrap_err().is(Code::RequestMalformed), "{query}");
        }
    }
}
