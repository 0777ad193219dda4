//! `POST /api/v2/webhooks`: registers an endpoint.

use http::{Method, StatusCode};
use serde_json::Value;

use super::{ENDPOINTS_MAX, EXAMPLE, Endpoint};
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional, required};
use crate::endpoint::{self, Body, ClaimedKey, Json, save_answer};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::notify::events::EventType;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use rampart_types::{CallbackUrl, ClientId, WebhookEndpointId};

/// Version 2, the only one.
pub struct V2;

impl endpoint::Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/webhooks";
    const SCOPE: Option<Scope> = Some(Scope::WebhooksWrite);
    const ERRORS: &'static [Code] = &[Code::CallbackUrlInvalid];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Register a webhook endpoint",
        details: "It is told of events from now on, by POST requests signed by Standard Webhooks \
                  with the client's webhook secret. There can be 50. An endpoint that answers 410, \
                  or has not answered 2xx for three days, is disabled (`webhook.disabled`); remove \
                  it and register it again to go on.",
        body: Shape::Members(&[
            required(
                "url",
                Kind::Format("uri"),
                "An absolute https URL, at port 443, 80 or one from 1024 on.",
            ),
            optional(
                "events",
                Kind::List(&Kind::OneOf(&EventType::NAMES)),
                "Types of the events that it is told of, one at least; every event if omitted.",
            ),
        ]),
        request: r#"{"url": "https://shop.example/hook", "events": ["order.completed"]}"#,
        answer: EXAMPLE,
        also: &[(409, Code::GeneralError)],
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = NewEndpoint;
    type Response = Json<Endpoint>;

    fn read(input: &Input, client: &Client) -> Result<NewEndpoint> {
        let mut fields = Fields::from_object(&input.document)?;
        let loopback = client.tenant.loopback_http;
        let url = fields.required("url", Code::CallbackUrlInvalid, |value| {
            CallbackUrl::parse(value.as_str()?, loopback).ok()
        });
        let events = fields.optional("events", Code::RequestMalformed, types);
        fields.finish(url.map(|url| NewEndpoint { url, events }))
    }

    /// 409 when there are [`ENDPOINTS_MAX`] already.
    async fn call(core: &Core, client: Client, request: NewEndpoint) -> Result<Json<Endpoint>> {
        Self::call_with_key(core, client, request, None).await
    }

    async fn call_with_key(
        core: &Core,
        client: Client,
        request: NewEndpoint,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<Endpoint>> {
        let mut tx = core.db.begin().await?;
        let Some(endpoint) = insert(&mut tx, core, client.id(), &request).await? else {
            let detail =
                format!("a client has at most {ENDPOINTS_MAX} endpoints: remove one first");
            return Err(Error::with_status(Code::GeneralError, StatusCode::CONFLICT, detail));
        };
        save_answer(key, core, &mut tx, &endpoint).await?;
        tx.commit().await?;
        Ok(Json(endpoint))
    }
}

/// An endpoint about to be registered.
#[derive(Debug)]
pub struct NewEndpoint {
    /// Address that is called.
    pub url: CallbackUrl,
    /// `None` subscribes to every event.
    pub events: Option<Vec<String>>,
}

/// Reads a non-empty list of known types, without duplicates.
fn types(value: &Value) -> Option<Vec<String>> {
    let mut kinds = Vec::new();
    for name in value.as_array()? {
        let kind = EventType::from_name(name.as_str()?)?.as_str().to_owned();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    (!kinds.is_empty()).then_some(kinds)
}

/// The outcome of an attempt to insert.
enum InsertOutcome {
    Inserted(Endpoint),
    /// A concurrent request has taken the slot.
    Conflict,
    Full,
}

/// Registers an endpoint; `None` when there are [`ENDPOINTS_MAX`] already.
///
/// # Errors
/// Without entropy; when the database cannot be written.
pub async fn insert(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    new: &NewEndpoint,
) -> Result<Option<Endpoint>> {
    // A conflict means that another request took the slot, so this terminates.
    for _ in 0..ENDPOINTS_MAX {
        match insert_in_free_slot(conn, core, client, new).await? {
            InsertOutcome::Inserted(endpoint) => return Ok(Some(endpoint)),
            InsertOutcome::Conflict => {}
            InsertOutcome::Full => break,
        }
    }
    Ok(None)
}

async fn insert_in_free_slot(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    new: &NewEndpoint,
) -> Result<InsertOutcome> {
    let (id, now) = (WebhookEndpointId::from(core.clock.uuid()?), core.clock.now());
    let row = sqlx::query!(
        r#"
        with free as (
            select n::smallint as slot from generate_series(1, $6::int) n
            where not exists (
                select from webhook_endpoint where client_id = $1 and slot = n
            )
            order by n limit 1
        ), taken as (
            insert into webhook_endpoint (client_id, endpoint_id, slot, url, events, created_at)
            select $1, $2, slot, $3, $4, $5 from free
            on conflict on constraint webhook_endpoint_slot_key do nothing
            returning slot
        )
        select exists (select from free) as "was_free!", exists (select from taken) as "is_taken!"
        "#,
        client.uuid(),
        id.uuid(),
        new.url.as_str(),
        new.events.as_deref(),
        now,
        i32::try_from(ENDPOINTS_MAX).unwrap_or(i32::MAX),
    )
    .fetch_one(conn)
    .await?;
    match (row.was_free, row.is_taken) {
        (_, true) => {}
        (true, false) => return Ok(InsertOutcome::Conflict),
        (false, false) => return Ok(InsertOutcome::Full),
    }
    let endpoint = Endpoint {
        id,
        url: new.url.as_str().to_owned(),
        events: new.events.clone(),
        disabled: false,
        disabled_at: None,
        failing_since: None,
        created_at: now,
    };
    Ok(InsertOutcome::Inserted(endpoint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_names_known_events_once_each() {
        let twice = types(&json!(["order.paid", "order.paid", "user.created"]));
        assert_eq!(twice.unwrap(), ["order.paid", "user.created"]);
        for refused in [json!([]), json!("order.paid"), json!(["order.*"]), json!([1]), json!({})] {
            assert!(types(&refused).is_none(), "{refused}");
        }
    }
}
