//! `GET /admin/v1/payments/{id}`

use chrono::{DateTime, Utc};
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
use crate::money::payments::refunds::refundable;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Error, Result};
use rampart_types::JsonDecimal;

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
        details: "With the report as it came, which may name people, and for a refund that was \
                  booked by hand with what providers have told of it since.",
        path: &[ID],
        answer: r#"{
            "id": "0199a000-0000-7000-8000-000000000021", "partner": "acme", "connector": "manual",
            "providerReference": "2026-03-01-17", "kind": "received", "amount": 250,
            "currency": "EUR", "orderId": 1234567890123456, "state": "matched",
            "refundRequested": 0, "actor": "ada", "reason": "seen on the statement",
            "occurredAt": "2026-03-01T11:58:00Z", "recordedAt": "2026-03-01T12:00:00Z",
            "refundable": 250, "report": {"name": "A. Lovelace"}, "confirmations": []
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
        let (report, confirmations) = (report(core, id).await?, confirmations(core, id).await?);
        let mut conn = core.db.acquire().await?;
        let refundable = JsonDecimal(refundable(&mut conn, id).await?);
        Ok(Json(PaymentInFull { payment, refundable, report, confirmations }))
    }
}

/// A payment with its report.
#[derive(Debug, JsonSchema, Serialize)]
pub struct PaymentInFull {
    #[serde(flatten)]
    payment: Payment,
    /// Amount that is left of it to be given back; zero where nothing is, or its coins have left.
    refundable: JsonDecimal,
    /// The report as it came; null without one, or after it was erased.
    report: Option<Value>,
    /// Reports of providers that have confirmed this refund, which an operator's event of its order
    /// had booked before; the earliest first.
    confirmations: Vec<RefundConfirmation>,
}

/// A provider's report of a refund, or of a part of it, that was booked before.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RefundConfirmation {
    /// The program that reported it.
    connector: String,
    /// The provider's own name for it.
    provider_reference: String,
    /// The amount that it confirms, in the payment's currency.
    amount: JsonDecimal,
    /// When it happened, as the provider says.
    occurred_at: DateTime<Utc>,
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

async fn confirmations(core: &Core, payment: Uuid) -> Result<Vec<RefundConfirmation>> {
    let rows = sqlx::query!(
        r#"
        select c.connector, c.provider_reference, c.amount, c.occurred_at
        from payment p
        join refund_confirmation c on c.client_id = p.client_id and c.payment_id = p.payment_id
        where p.payment_id = $1
        order by c.occurred_at, c.connector, c.provider_reference
        "#,
        payment,
    )
    .fetch_all(&core.db)
    .await?;
    let confirmations = rows.into_iter().map(|row| RefundConfirmation {
        connector: row.connector,
        provider_reference: row.provider_reference,
        amount: JsonDecimal(row.amount),
        occurred_at: row.occurred_at,
    });
    Ok(confirmations.collect())
}
