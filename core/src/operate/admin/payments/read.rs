//! `GET /admin/v1/payments/{id}`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{ID, Payment, find, id};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::money::payments::record::report_context;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Error, Result};

/// `GET /admin/v1/payments/{id}`
pub struct ReadPayment;

impl Endpoint for ReadPayment {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/payments/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Support, Role::Compliance, Role::Treasury];
    const READ_AUDIT: Option<&'static str> = Some("payment.read");
    const DOC: Doc = Doc {
        summary: "Read a payment",
        details: "With the report as it came, which may name people.",
        path: &[ID],
        answer: r#"{
            "id": "0199a000-0000-7000-8000-000000000021", "partner": "acme", "connector": "manual",
            "providerReference": "2026-03-01-17", "kind": "received", "amount": 250,
            "currency": "EUR", "orderId": 1234567890123456, "state": "matched",
            "refundRequested": 0, "actor": "ada", "reason": "seen on the statement",
            "occurredAt": "2026-03-01T11:58:00Z", "recordedAt": "2026-03-01T12:00:00Z",
            "report": {"name": "A. Lovelace"}
        }"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = String;
    type Response = Json<PaymentInFull>;

    fn read(input: &Input, _: &Operator) -> Result<String> {
        Ok(input.param("id").to_owned())
    }

    async fn call(core: &Core, _: Operator, text: String) -> Result<Json<PaymentInFull>> {
        let id = id(&text)?;
        let payment = find(core, id).await?;
        Ok(Json(PaymentInFull { payment, report: report(core, id).await? }))
    }
}

/// A payment with its report.
#[derive(Debug, JsonSchema, Serialize)]
pub struct PaymentInFull {
    #[serde(flatten)]
    payment: Payment,
    /// The report as it came; null without one, or after it was erased.
    report: Option<Value>,
}

pub(super) async fn report(core: &Core, payment: Uuid) -> Result<Option<Value>> {
    let row =
        sqlx::query!("select client_id, sealed from payment_report where payment_id = $1", payment)
            .fetch_optional(&core.db)
            .await?;
    let Some(row) = row else { return Ok(None) };
    let context = report_context(row.client_id.into(), payment);
    let text = core.cipher(row.client_id.into()).open(&context, &row.sealed)?;
    let report = serde_json::from_slice(&text);
    report.map(Some).map_err(|error| Error::internal("read a payment's report", error))
}
