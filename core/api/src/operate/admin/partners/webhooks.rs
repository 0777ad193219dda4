//! `GET /admin/v1/partners/{slug}/webhooks`, `DELETE …/{id}` and `POST …/{id}/test`

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::{SLUG, find};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Member, required};
use crate::endpoint::{Created, Endpoint, NoContent};
use crate::http::request::Input;
use crate::notify::webhooks::{self, ENDPOINTS_MAX, list, remove, test_event};
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{AFTER, Page, Part, limit};
use crate::operate::admin::partner_url::mask_query;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use rampart_types::{ClientId, EventId, WebhookEndpointId};

/// The path's `{id}`.
const ID: Member = required("id", Kind::Format("uuid"), "The endpoint's id.");

/// `GET /admin/v1/partners/{slug}/webhooks`
pub struct ListWebhooks;

impl Endpoint for ListWebhooks {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/partners/{slug}/webhooks";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List a partner's webhook endpoints",
        details: "Oldest first, without their secrets. Without the role `support` or `platform`, \
                  `…` stands for the query of a URL.",
        path: &[SLUG],
        query: &[AFTER, limit(ENDPOINTS_MAX)],
        answer: r#"[{"id": "0199a000-0000-7000-8000-00000000000a",
            "url": "https://shop.example/hook", "events": ["order.completed"], "state": "active",
            "failingSince": "2026-03-01T11:00:00Z", "disabledAt": null,
            "createdAt": "2026-02-01T12:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, Part);
    type Response = Page<Webhook>;

    fn read(input: &Input, _: &Operator) -> Result<(String, Part)> {
        Ok((input.param("slug").to_owned(), Part::read(input, ENDPOINTS_MAX)?))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (slug, part): (String, Part),
    ) -> Result<Page<Webhook>> {
        let (client, _) = find(core, &slug).await?;
        let mut conn = core.db.acquire().await?;
        let endpoints = list::endpoints(&mut conn, client).await?;
        let mut endpoints: Vec<_> = endpoints.into_iter().map(Webhook::from).collect();
        for endpoint in &mut endpoints {
            mask_query(&operator, &mut endpoint.url);
        }
        part.of(endpoints, |endpoint: &Webhook| endpoint.id.to_string())
    }
}

/// A webhook endpoint of a partner.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PartnerWebhook")]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The endpoint's id.
    id: WebhookEndpointId,
    /// The address that events go to.
    url: String,
    /// Types of the events it receives; `null`: all, including future ones.
    events: Option<Vec<String>>,
    /// `active`, or `disabled`: nothing is sent there any more.
    state: &'static str,
    /// Time of the first failure after its last success; `null` while it answers 2xx.
    failing_since: Option<DateTime<Utc>>,
    /// When it was disabled; null while it is active.
    disabled_at: Option<DateTime<Utc>>,
    /// When it was registered.
    created_at: DateTime<Utc>,
}

impl From<webhooks::Endpoint> for Webhook {
    fn from(endpoint: webhooks::Endpoint) -> Self {
        let state = if endpoint.disabled { "disabled" } else { "active" };
        Self {
            id: endpoint.id,
            url: endpoint.url,
            events: endpoint.events,
            state,
            failing_since: endpoint.failing_since,
            disabled_at: endpoint.disabled_at,
            created_at: endpoint.created_at,
        }
    }
}

/// The path of an endpoint: the partner's slug, and the endpoint's id.
#[derive(Debug)]
pub struct Named {
    slug: String,
    id: WebhookEndpointId,
}

impl Named {
    fn read(input: &Input) -> Result<Self> {
        let id = input.param("id").parse::<Uuid>().map_err(|_| unknown())?;
        Ok(Self { slug: input.param("slug").to_owned(), id: id.into() })
    }
}

fn unknown() -> Denial {
    Denial::not_found("webhook endpoint")
}

/// `DELETE /admin/v1/partners/{slug}/webhooks/{id}`
pub struct RemoveWebhook;

impl Endpoint for RemoveWebhook {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/admin/v1/partners/{slug}/webhooks/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Support, Role::Platform];
    const DOC: Doc = Doc {
        summary: "Remove a partner's webhook endpoint",
        details: "Deliveries that wait for it are not sent any more. The partner can register the \
                  URL again.",
        path: &[SLUG, ID],
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Named;
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<Named> {
        Named::read(input)
    }

    async fn call(core: &Core, operator: Operator, named: Named) -> Result<NoContent> {
        let (client, _) = find(core, &named.slug).await?;
        let mut tx = core.db.begin().await?;
        remove::remove(&mut tx, client, named.id).await?.ok_or_else(unknown)?;
        let detail = json!({ "endpointId": named.id });
        operator.record(&mut tx, core, "webhook.remove", &named.slug, detail).await?;
        tx.commit().await?;
        Ok(NoContent)
    }
}

/// `POST /admin/v1/partners/{slug}/webhooks/{id}/test`
pub struct TestWebhook;

impl Endpoint for TestWebhook {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/partners/{slug}/webhooks/{id}/test";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Support, Role::Platform];
    const DOC: Doc = Doc {
        summary: "Send a test event to a partner's webhook endpoint",
        details: "A `webhook.test` for this endpoint alone, whatever it listens to. Its delivery is \
                  in the list of deliveries. 409 if the endpoint is disabled.",
        path: &[SLUG, ID],
        answer: r#"{"eventId": "0199a000-0000-7000-8000-000000000004"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Named;
    type Response = Created<SentTest>;

    fn read(input: &Input, _: &Operator) -> Result<Named> {
        Named::read(input)
    }

    async fn call(core: &Core, operator: Operator, named: Named) -> Result<Created<SentTest>> {
        let (client, _) = find(core, &named.slug).await?;
        let mut tx = core.db.begin().await?;
        let Some(event_id) = test_event::send(&mut tx, core, client, named.id).await? else {
            return Err(refusal(&mut tx, client, named.id).await?.into());
        };
        let detail = json!({ "endpointId": named.id });
        operator.record(&mut tx, core, "webhook.test", &named.slug, detail).await?;
        tx.commit().await?;
        Ok(Created(SentTest { event_id }))
    }
}

/// A test event on its way.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "SentWebhookTest")]
#[serde(rename_all = "camelCase")]
pub struct SentTest {
    /// The `webhook-id`.
    event_id: EventId,
}

/// The reason that no test can be sent to an endpoint.
async fn refusal(conn: &mut Connection, client: ClientId, id: WebhookEndpointId) -> Result<Denial> {
    let exists = sqlx::query_scalar!(
        r#"
        select exists (select from webhook_endpoint where client_id = $1 and endpoint_id = $2)
            as "exists!"
        "#,
        client.uuid(),
        id.uuid(),
    );
    Ok(match exists.fetch_one(conn).await? {
        true => Denial::conflict("the webhook endpoint is disabled"),
        false => unknown(),
    })
}
