//! `GET /admin/v1/payment-methods` and `PATCH /admin/v1/payment-methods/{code}`

use http::{Method, StatusCode};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{outside_bounds, publish};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional, required};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::line;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Part, limit};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use rampart_types::JsonDecimal;

/// Most payment methods of one answer; the catalogue has fewer.
const METHODS_MAX: i64 = 1_000;

/// `GET /admin/v1/payment-methods`
pub struct ListPaymentMethods;

impl Endpoint for ListPaymentMethods {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/payment-methods";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List the payment methods",
        details: "With their terms, in the order of their codes.",
        query: &[
            optional("after", Kind::Text, "The last code of the page before."),
            limit(METHODS_MAX),
        ],
        answer: r#"[{"code": "creditCard", "enabled": true, "label": "Credit card", "limit": 5000,
            "fees": {"fixed": 0.5, "percentage": 2.5}, "expirationPeriod": 1800,
            "usesEstimatedQuote": false}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Part;
    type Response = Page<PaymentMethod>;

    fn read(input: &Input, _: &Operator) -> Result<Part> {
        Part::read(input, METHODS_MAX)
    }

    async fn call(core: &Core, _: Operator, part: Part) -> Result<Page<PaymentMethod>> {
        let mut conn = core.db.acquire().await?;
        part.of(PaymentMethod::all(&mut conn).await?, |method| method.code.clone())
    }
}

/// `PATCH /admin/v1/payment-methods/{code}`
pub struct UpdatePaymentMethod;

impl Endpoint for UpdatePaymentMethod {
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/admin/v1/payment-methods/{code}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Treasury];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Update a payment method",
        details: "Members that are left out stay as they are. Every edge follows within a second.",
        path: &[required("code", Kind::Text, "A payment method, such as `creditCard`.")],
        body: Shape::of::<ChangeMethod>(),
        request: r#"{"fees": {"fixed": 0.5}, "enabled": true}"#,
        answer: r#"{"code": "creditCard", "enabled": true, "label": "Credit card", "limit": 5000,
            "fees": {"fixed": 0.5, "percentage": 2.5}, "expirationPeriod": 1800,
            "usesEstimatedQuote": false}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Update;
    type Response = Json<PaymentMethod>;

    fn read(input: &Input, _: &Operator) -> Result<Update> {
        let change: ChangeMethod = strict::body(input)?;
        change.check()?;
        Ok(Update { code: input.param("code").to_owned(), change, detail: input.document.clone() })
    }

    async fn call(core: &Core, operator: Operator, update: Update) -> Result<Json<PaymentMethod>> {
        let Update { code, change, detail } = update;
        let mut tx = core.db.begin().await?;
        let changed = change.write(&mut tx, &code).await?;
        publish(core, tx, &operator, "payment-method.change", &code, detail).await?;
        Ok(Json(changed))
    }
}

/// A change of one payment method.
#[derive(Debug)]
pub struct Update {
    code: String,
    change: ChangeMethod,
    /// The body, for the audit.
    detail: Value,
}

/// The terms of a payment method; one that is left out stays as it is.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "PaymentMethodUpdate")]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(in crate::operate::admin) struct ChangeMethod {
    /// `true` if it is offered.
    enabled: Option<bool>,
    /// 1 to 255 characters.
    label: Option<String>,
    /// Highest amount of one order, in the order's fiat currency.
    limit: Option<JsonDecimal>,
    /// Its fees.
    fees: ChangeFees,
    /// Seconds that a user has for the payment.
    expiration_period: Option<i32>,
    /// `true` if the price is fixed when the payment arrives.
    uses_estimated_quote: Option<bool>,
}

impl ChangeMethod {
    /// Checks what one look at the members shows.
    ///
    /// # Errors
    /// 422 for a label that is too long, blank, or has a control character.
    pub(in crate::operate::admin) fn check(&self) -> Result<()> {
        self.label.as_deref().map_or(Ok(()), |label| line::check("label", label))
    }

    /// Writes the members that are there; returns the method's terms. The table checks the bounds.
    ///
    /// # Errors
    /// 404 without the method, 422 for a value out of its bounds.
    pub(in crate::operate::admin) async fn write(
        &self,
        conn: &mut Connection,
        code: &str,
    ) -> Result<PaymentMethod> {
        let amount = |given: &Option<JsonDecimal>| given.as_ref().map(|amount| amount.0);
        let changed = sqlx::query_as!(
            MethodRow,
            r#"
            update payment_method set
                enabled = coalesce($2, enabled), label = coalesce($3, label),
                amount_limit = coalesce($4, amount_limit), fee_fixed = coalesce($5, fee_fixed),
                fee_percentage = coalesce($6, fee_percentage),
                expiration_period_seconds = coalesce($7, expiration_period_seconds),
                uses_estimated_quote = coalesce($8, uses_estimated_quote)
            where code = $1
            returning code, enabled, label, amount_limit, fee_fixed, fee_percentage,
                expiration_period_seconds, uses_estimated_quote
            "#,
            code,
            self.enabled,
            self.label,
            amount(&self.limit),
            amount(&self.fees.fixed),
            amount(&self.fees.percentage),
            self.expiration_period,
            self.uses_estimated_quote,
        )
        .fetch_optional(conn)
        .await
        .map_err(outside_bounds)?
        .ok_or_else(|| Denial::not_found("payment method"))?;
        Ok(changed.into())
    }
}

/// The fees of a payment method; one that is left out stays as it is.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "PaymentMethodFeesUpdate")]
#[serde(deny_unknown_fields, default)]
struct ChangeFees {
    /// Fixed part, in the fiat currency.
    fixed: Option<JsonDecimal>,
    /// Part in percent of the amount.
    percentage: Option<JsonDecimal>,
}

/// A payment method's terms.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentMethod {
    /// Code, which quotes take.
    code: String,
    /// `true` if it is offered.
    enabled: bool,
    /// Name for people.
    label: String,
    /// Highest amount of one order, in the order's fiat currency.
    limit: JsonDecimal,
    /// Its fees.
    fees: Fees,
    /// Seconds that a user has for the payment.
    expiration_period: i32,
    /// `true` if the price is fixed when the payment arrives.
    uses_estimated_quote: bool,
}

/// A payment method as stored.
struct MethodRow {
    code: String,
    enabled: bool,
    label: String,
    amount_limit: Decimal,
    fee_fixed: Decimal,
    fee_percentage: Decimal,
    expiration_period_seconds: i32,
    uses_estimated_quote: bool,
}

impl From<MethodRow> for PaymentMethod {
    fn from(row: MethodRow) -> Self {
        let (fixed, percentage) = (JsonDecimal(row.fee_fixed), JsonDecimal(row.fee_percentage));
        Self {
            code: row.code,
            enabled: row.enabled,
            label: row.label,
            limit: JsonDecimal(row.amount_limit),
            fees: Fees { fixed, percentage },
            expiration_period: row.expiration_period_seconds,
            uses_estimated_quote: row.uses_estimated_quote,
        }
    }
}

impl PaymentMethod {
    /// All methods, by their code.
    pub(in crate::operate::admin) async fn all(conn: &mut Connection) -> Result<Vec<Self>> {
        let rows = sqlx::query_as!(
            MethodRow,
            "select code, enabled, label, amount_limit, fee_fixed, fee_percentage, \
                 expiration_period_seconds, uses_estimated_quote \
             from payment_method order by code",
        )
        .fetch_all(conn)
        .await?;
        Ok(rows.into_iter().map(Self::from).collect())
    }
}

/// Fees of a payment method.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PaymentMethodFees")]
struct Fees {
    /// Fixed part, in the fiat currency.
    fixed: JsonDecimal,
    /// Part in percent of the amount.
    percentage: JsonDecimal,
}
