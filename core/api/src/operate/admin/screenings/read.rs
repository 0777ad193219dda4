//! `GET /admin/v1/screenings/{id}`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ID, Screening, find, id};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::money::connectors::commands::{self, result_context};
use crate::operate::admin::operator::Operator;
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Most reasons that are shown.
const REASONS_MAX: usize = 100;

/// `GET /admin/v1/screenings/{id}`
pub struct ReadScreening;

impl Endpoint for ReadScreening {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/screenings/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Compliance];
    const DOC: Doc = Doc {
        summary: "Read a screening with the provider's reasons",
        details: "Stands in the audit: the reasons may name a person.",
        path: &[ID],
        answer: r#"{"id": "0199a000-0000-7000-8000-000000000020", "partner": "acme",
            "orderId": 1742980455013377, "userId": null, "state": "review",
            "createdAt": "2026-03-01T12:00:00Z", "decidedAt": "2026-03-01T12:00:03Z",
            "decidedBy": null, "decisionReason": null, "reasons": ["indirect exposure to a mixer"]}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Uuid;
    type Response = Json<WithReasons>;

    fn read(input: &Input, _: &Operator) -> Result<Uuid> {
        id(input.param("id"))
    }

    async fn call(core: &Core, operator: Operator, id: Uuid) -> Result<Json<WithReasons>> {
        let screening = find(core, id).await?;
        let mut tx = core.db.begin().await?;
        let reasons = reasons(&mut tx, core, id).await?;
        let target = id.to_string();
        operator.record(&mut tx, core, "screening.read", &target, json!({})).await?;
        tx.commit().await?;
        Ok(Json(WithReasons { screening, reasons }))
    }
}

/// The provider's reasons, from the result of the screening's command.
async fn reasons(conn: &mut Connection, core: &Core, id: Uuid) -> Result<Vec<String>> {
    let row = sqlx::query!(
        r#"
        select c.client_id, c.command_id, c.sealed_result as "sealed_result!"
        from screening s join command c
            on c.client_id = s.client_id and c.command_id = s.command_id
        where s.screening_id = $1 and c.sealed_result is not null
        "#,
        id,
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(Vec::new()) };
    let context = result_context(row.client_id, row.command_id);
    let result = commands::open(&core.cipher(row.client_id.into()), &context, &row.sealed_result)?;
    let reasons = result["result"]["reasons"].as_array().into_iter().flatten();
    let reasons = reasons.chain([&result["reason"]]).filter_map(Value::as_str);
    Ok(reasons.take(REASONS_MAX).map(str::to_owned).collect())
}

/// A screening with the provider's reasons.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ScreeningWithReasons")]
pub struct WithReasons {
    #[serde(flatten)]
    screening: Screening,
    /// The provider's reasons, as it words them.
    reasons: Vec<String>,
}
