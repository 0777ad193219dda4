//! `POST /connectors/v1/events`: what a provider says, taken at least once and applied once.

mod apply;
mod report;

use http::{Method, StatusCode};
use ring::digest;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use self::report::{MEMBERS, Report};
use super::caller::Connector;
use crate::Core;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::request::Input;
use crate::platform::db::retrying_statement;
use crate::platform::error::{Denial, Result};

/// `POST /connectors/v1/events`
pub struct ReportEvent;

impl Endpoint for ReportEvent {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/connectors/v1/events";
    const STATUSES: &'static [StatusCode] = &[StatusCode::CONFLICT];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Report an event",
        details: "A fact, stored with all of its members, whether or not an order wants it. The \
                  same `id` and body again is answered `{\"duplicate\": true}`, and the same `id` \
                  with another body 409. Money and coins need `providerReference`, `amount`, and \
                  `currency` or `asset`; those that fit no order of the partner wait for an \
                  operator.",
        body: Shape::Members(MEMBERS),
        request: r#"{"id": "evt_1", "kind": "payment.received", "occurredAt": "2026-03-01T12:00:00Z",
            "partner": "acme", "orderId": 1742980455013377, "providerReference": "pay_1",
            "amount": 250, "currency": "EUR"}"#,
        answer: r#"{"duplicate": false}"#,
        ..Doc::NONE
    };
    type Caller = Connector;
    type Request = Report;
    type Response = Json<Taken>;

    fn read(input: &Input, _: &Connector) -> Result<Report> {
        Report::read(&input.document).map_err(|reason| Denial::unprocessable(reason).into())
    }

    async fn call(core: &Core, connector: Connector, report: Report) -> Result<Json<Taken>> {
        // On the heap: unoptimised, the books' state does not fit beside this one's.
        let take = || Box::pin(take(core, &connector, &report));
        Ok(Json(Taken { duplicate: retrying_statement(take).await? }))
    }
}

/// Stores the report and lets the state follow, in one transaction. `true` if it was taken before.
async fn take(core: &Core, connector: &Connector, report: &Report) -> Result<bool> {
    let text = canonical(&report.raw);
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    let report_id = core.clock.uuid()?;
    let sealed = core.keys.seal(&core.clock, &report_context(report_id), text.as_bytes())?;
    let mut tx = core.db.begin().await?;
    // Of two at once, one waits here for the other.
    let inserted = sqlx::query!(
        "insert into connector_event (connector, event_id, report_id, kind, digest, sealed_report, \
             occurred_at, recorded_at) \
         values ($1, $2, $3, $4, $5, $6, $7, now()) \
         on conflict (connector, event_id) do nothing",
        &*connector.name,
        report.id,
        report_id,
        report.kind.as_str(),
        digest.as_ref(),
        sealed,
        report.occurred_at,
    )
    .execute(&mut *tx)
    .await?;
    if inserted.rows_affected() == 0 {
        let stored = sqlx::query_scalar!(
            "select digest from connector_event where connector = $1 and event_id = $2",
            &*connector.name,
            report.id,
        )
        .fetch_one(&mut *tx)
        .await?;
        tx.rollback().await?;
        if stored == digest.as_ref() {
            return Ok(true);
        }
        let reason = "this id was reported with another body";
        return Err(Denial::conflict(reason).into());
    }
    let applied = apply::apply(&mut tx, core, &connector.name, report).await?;
    tx.commit().await?;
    for cause in applied.causes {
        core.metrics.orders.with_label_values(&[cause.as_str()]).inc();
    }
    Ok(applied.is_duplicate)
}

/// The document with its members in order, so that a repetition is known by its bytes.
fn canonical(document: &Value) -> String {
    let mut document = document.clone();
    document.sort_all_objects();
    document.to_string()
}

/// The context that a report is sealed for.
pub(crate) fn report_context(report: uuid::Uuid) -> String {
    format!("connector-event/{report}")
}

/// The answer to an event.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "TakenEvent")]
pub struct Taken {
    /// `true` if it was taken before, and nothing has changed now.
    duplicate: bool,
}
