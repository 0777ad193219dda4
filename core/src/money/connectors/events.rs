//! `POST /connectors/v1/events`: what a provider says, taken at least once and applied once.

mod apply;
mod earlier_names;
mod kind;
mod report;
mod retention;
mod subject;

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use self::apply::Applied;
use self::report::MEMBERS;
pub(super) use self::report::{Report, storable};
use super::caller::Connector;
use crate::Core;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::request::Input;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use crate::trading::orders::state::Cause;

/// `POST /connectors/v1/events`
pub struct ReportEvent;

impl Endpoint for ReportEvent {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/connectors/v1/events";
    const STATUSES: &'static [StatusCode] = &[StatusCode::FORBIDDEN, StatusCode::CONFLICT];
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Report an event",
        details: "A fact, stored with all of its members, whether or not an order wants it; of an \
                  identity check the outcome alone is kept. The same `id` and body again is \
                  answered `{\"duplicate\": true}`, and the same `id` with another body 409. Money and coins need `providerReference`, `amount`, and \
                  `currency` or `asset`; those that fit no order of the partner wait for an \
                  operator. 403 refuses money and coins of a connector whose capabilities are all \
                  checks, and the end of an identity check of one without `identity.start`.",
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
        Ok(Json(Taken { duplicate: take(core, &connector, &report).await? }))
    }
}

/// Stores the report and lets the state follow, in one transaction. `true` if it was taken before.
///
/// # Errors
/// 403 for a kind that is not within the connector's capabilities, 409 for a known id with another
/// body, 422 for an amount of coins that is of two assets: nothing is stored then.
async fn take(core: &Core, connector: &Connector, report: &Report) -> Result<bool> {
    if !report.kind.is_within(&connector.capabilities) {
        let (connector, kind) = (&*connector.name, report.kind.as_str());
        tracing::warn!(connector, kind, "an event is not within a connector's capabilities");
        let reason = format!("kind: {kind} is not within the connector's capabilities");
        return Err(Denial::new(StatusCode::FORBIDDEN, reason).into());
    }
    let mut tx = core.db.begin().await?;
    let reporter = Reporter { connector: &connector.name, actor: &connector.name };
    match take_in(&mut tx, core, reporter, report).await? {
        Stored::Now(applied) => {
            tx.commit().await?;
            Cause::count(core, applied.causes);
            Ok(applied.is_duplicate)
        }
        Stored::Before { is_same } => {
            tx.rollback().await?;
            if is_same {
                return Ok(true);
            }
            Err(Denial::conflict("this id was reported with another body").into())
        }
    }
}

/// The author of a report.
#[derive(Clone, Copy)]
pub(super) struct Reporter<'a> {
    /// Name of the connector.
    pub(super) connector: &'a str,
    /// The one that the order's timeline names.
    pub(super) actor: &'a str,
}

/// The effect of a report.
pub(super) enum Stored {
    /// It is stored, with what follows.
    Now(Applied),
    /// Its id was reported before, with the same body or another one, and nothing has changed.
    Before { is_same: bool },
}

/// Stores a connector's report and lets the state follow, in the caller's transaction, which gives up
/// what was not stored now.
///
/// # Errors
/// 422 for an amount of coins that is of two assets; the database's.
pub(super) async fn take_in(
    conn: &mut Connection,
    core: &Core,
    reporter: Reporter<'_>,
    report: &Report,
) -> Result<Stored> {
    let connector = reporter.connector;
    let text = canonical(&report.raw);
    let digest = sha256(&text);
    let report_id = core.clock.uuid()?;
    let seal = || core.keys.seal(&core.clock, &report_context(report_id), text.as_bytes());
    let sealed = report.kind.is_kept().then(seal).transpose()?;
    // Of two at once, one waits here for the other.
    let inserted = sqlx::query!(
        "insert into connector_event (connector, event_id, report_id, kind, digest, sealed_report, \
             occurred_at, recorded_at) \
         values ($1, $2, $3, $4, $5, $6, $7, now()) \
         on conflict (connector, event_id) do nothing",
        connector,
        report.id,
        report_id,
        report.kind.as_str(),
        &digest[..],
        sealed,
        report.occurred_at,
    )
    .execute(&mut *conn)
    .await?;
    if inserted.rows_affected() == 0 {
        let stored = sqlx::query_scalar!(
            "select digest from connector_event where connector = $1 and event_id = $2",
            connector,
            report.id,
        )
        .fetch_one(&mut *conn)
        .await?;
        return Ok(Stored::Before { is_same: stored == digest });
    }
    report.check_asset(core)?;
    let known = earlier_names::take(conn, core, connector, report).await?;
    let applied = match known {
        Some(_) => Applied { is_duplicate: true, payment: known, ..Applied::default() },
        // On the heap: unoptimised, the books' state does not fit beside this one's.
        None => Box::pin(apply::apply(conn, core, reporter, report)).await?,
    };
    if let Some((client, payment)) = applied.payment {
        sqlx::query!(
            r#"
            update connector_event set payment_client_id = $2, payment_id = $3,
                -- what is told of a payer who is erased is not kept
                sealed_report = case when not exists (
                    select from payment p
                    left join payment_match m
                        on m.client_id = p.client_id and m.payment_id = p.payment_id
                    cross join lateral erased_user_of(
                        coalesce(m.to_client_id, p.client_id), coalesce(m.order_id, p.order_id))
                    where p.client_id = $2 and p.payment_id = $3) then sealed_report end
            where report_id = $1
            "#,
            report_id,
            client.uuid(),
            payment,
        )
        .execute(conn)
        .await?;
    }
    Ok(Stored::Now(applied))
}

/// The document with its members in order, so that a repetition is known by its bytes.
fn canonical(document: &Value) -> String {
    let mut document = document.clone();
    document.sort_all_objects();
    document.to_string()
}

/// The context that a report is sealed for.
pub fn report_context(report: uuid::Uuid) -> String {
    format!("connector-event/{report}")
}

/// The answer to an event.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "TakenEvent")]
pub struct Taken {
    /// `true` if it was taken before, and nothing has changed now.
    duplicate: bool,
}
