//! `GET /admin/v1/connectors` and `GET …/{name}`

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::types::Json as JsonColumn;

use super::{CONNECTORS_MAX, NAME};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::money::connectors::card_element::CardElement;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Part, limit};
use crate::platform::error::{Denial, Result};

/// Most commands of a queue that are counted.
const COUNTED_MAX: i64 = 100_000;

/// `GET /admin/v1/connectors`
pub struct ListConnectors;

impl Endpoint for ListConnectors {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/connectors";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List connectors",
        details: "In the order of their names, with their queues; of a queue at most 100000 \
                  commands are counted.",
        query: &[
            optional("after", Kind::Text, "The last name of the page before."),
            limit(CONNECTORS_MAX),
        ],
        answer: r#"[{"name": "cards", "capabilities": ["payment.create", "payment.refund"],
            "methods": ["creditCard"], "assets": [], "lastContactAt": "2026-03-01T12:00:00Z",
            "queueLength": 3, "oldestCommandAt": "2026-03-01T11:59:58Z", "failures": 0,
            "cardElement": null}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Part;
    type Response = Page<Connector>;

    fn read(input: &Input, _: &Operator) -> Result<Part> {
        Part::read(input, CONNECTORS_MAX)
    }

    async fn call(core: &Core, _: Operator, part: Part) -> Result<Page<Connector>> {
        part.of(find(core, None).await?, |connector| connector.name.clone())
    }
}

/// `GET /admin/v1/connectors/{name}`
pub struct ReadConnector;

impl Endpoint for ReadConnector {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/connectors/{name}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "Read a connector",
        details: "With its last contact and its queue.",
        path: &[NAME],
        answer: r#"{"name": "cards", "capabilities": ["payment.create", "payment.refund"],
            "methods": ["creditCard"], "assets": [], "lastContactAt": "2026-03-01T12:00:00Z",
            "queueLength": 3, "oldestCommandAt": "2026-03-01T11:59:58Z", "failures": 0,
            "cardElement": null}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = String;
    type Response = Json<Connector>;

    fn read(input: &Input, _: &Operator) -> Result<String> {
        Ok(input.param("name").to_owned())
    }

    async fn call(core: &Core, _: Operator, name: String) -> Result<Json<Connector>> {
        let found = find(core, Some(&name)).await?.pop();
        found.map(Json).ok_or_else(|| Denial::not_found("connector").into())
    }
}

/// The connectors, or the one of this name. Commands of no leg count for every connector that is
/// capable of them.
async fn find(core: &Core, name: Option<&str>) -> Result<Vec<Connector>> {
    let connectors = sqlx::query_as!(
        Connector,
        r#"
        select c.name, c.capabilities, c.methods, c.assets, c.last_contact_at, c.failures,
            q.length as "queue_length!", q.oldest as oldest_command_at,
            c.card_element as "card_element: JsonColumn<CardElement>"
        from connector c cross join lateral (
            select count(*) as length, min(o.created_at) as oldest
            from (
                select created_at from command
                where state = 'open' and (connector = c.name
                    or (connector is null and direction is null and kind = any (c.capabilities)))
                order by created_at limit $2
            ) o
        ) q
        where ($1::text is null or c.name = $1) and not c.runs_inside
        order by c.name limit $3
        "#,
        name,
        COUNTED_MAX,
        CONNECTORS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(connectors)
}

/// A connector.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Connector {
    /// The connector's name.
    name: String,
    /// Kinds of the commands that it takes.
    capabilities: Vec<String>,
    /// Payment methods that it serves.
    methods: Vec<String>,
    /// Assets that it serves.
    assets: Vec<String>,
    /// Time of its last call; null before the first.
    last_contact_at: Option<DateTime<Utc>>,
    /// Commands that wait for it or are leased to it.
    queue_length: i64,
    /// When the oldest of them was commanded; null if there is none.
    oldest_command_at: Option<DateTime<Utc>>,
    /// Results so far that were not `done`.
    failures: i64,
    /// The provider's form for cards; null without one.
    #[schemars(with = "Option<CardElement>")]
    card_element: Option<JsonColumn<CardElement>>,
}
