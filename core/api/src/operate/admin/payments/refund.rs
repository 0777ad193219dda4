//! `POST /admin/v1/payments/{id}/refund`

use http::{Method, StatusCode};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{ID, find, id};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, ClaimedKey, Endpoint, Json, save_answer};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::payments::refunds::{Decision, decide, rehearse};
use crate::money::payments::store::check_decimals;
use crate::operate::admin::approvals;
use crate::operate::admin::line;
use crate::operate::admin::operator::Operator;
use crate::platform::db::retrying_statement;
use crate::platform::error::{Denial, Result};
use crate::trading::orders::state::Cause;
use rampart_types::JsonDecimal;

/// `POST /admin/v1/payments/{id}/refund`
pub struct RefundPayment;

impl Endpoint for RefundPayment {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/payments/{id}/refund";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Treasury];
    const APPROVAL: bool = true;
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Give a payment back",
        details: "All that is left of it without an amount; what was asked for before counts \
                  towards the amount that takes two persons, and so does all that operators give \
                  back of its order, by command or by hand. Its order waits from then on, and is \
                  refunded when the payment's connector reports so; a payment by hand is given \
                  back by hand, and reported by another one of kind `refunded`. 409 when less is \
                  left of it, its provider has given it back, or its coins have left.",
        path: &[ID],
        body: Shape::of::<NewRefund>(),
        request: r#"{"amount": 50, "reason": "paid too much"}"#,
        answer: r#"{"id": "0199a000-0000-7000-8000-000000000022",
            "paymentId": "0199a000-0000-7000-8000-000000000021", "amount": 50,
            "currency": "EUR"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, NewRefund);
    type Response = Json<RequestedRefund>;

    fn read(input: &Input, _: &Operator) -> Result<(String, NewRefund)> {
        let refund: NewRefund = strict::body(input)?;
        if refund.amount.is_some_and(|JsonDecimal(amount)| amount <= Decimal::ZERO) {
            return Err(Denial::unprocessable("amount: above zero").into());
        }
        line::check("reason", &refund.reason)?;
        Ok((input.param("id").to_owned(), refund))
    }

    async fn needs_approval(
        core: &Core,
        operator: &Operator,
        request: &(String, NewRefund),
    ) -> Result<bool> {
        let (text, refund) = request;
        let payment = find(core, id(text)?).await?;
        if let Some(JsonDecimal(amount)) = refund.amount {
            check_decimals(core, amount, &payment.currency)?;
        }
        // Parts of one payment count together.
        let all = match refund.amount {
            Some(JsonDecimal(amount)) => amount.checked_add(payment.refund_requested.0),
            None => Some(payment.amount.0),
        };
        let all = all.unwrap_or(Decimal::MAX);
        let is_large = approvals::exceeds_alone_in(core, all, &payment.currency);
        if is_large || payment.kind != "received" {
            return Ok(true);
        }
        if payment.order_id.is_none() || operator.is_break_glass() {
            return Ok(false);
        }
        // All refunds of one order count together, too: only the books know what is left of it.
        let amount = refund.amount.map(|JsonDecimal(amount)| amount);
        let (reason, actor) = (refund.reason.as_str(), operator.actor());
        let decision = Decision { payment: payment.id, amount, reason, actor };
        let requested = retrying_statement(|| rehearse(core, &decision)).await?;
        Ok(approvals::exceeds_alone_in(core, requested.all, &requested.currency))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        request: (String, NewRefund),
    ) -> Result<Json<RequestedRefund>> {
        Self::call_with_key(core, operator, request, None).await
    }

    async fn call_with_key(
        core: &Core,
        operator: Operator,
        (text, refund): (String, NewRefund),
        key: Option<&ClaimedKey>,
    ) -> Result<Json<RequestedRefund>> {
        let payment = id(&text)?;
        let NewRefund { amount, reason } = refund;
        let (amount, actor) = (amount.map(|JsonDecimal(amount)| amount), operator.actor());
        let mut tx = core.db.begin().await?;
        let decision = Decision { payment, amount, reason: &reason, actor };
        let requested = decide(&mut tx, core, &decision).await?;
        if approvals::exceeds_alone_in(core, requested.all, &requested.currency) {
            approvals::require(&operator)?;
        }
        let answer = RequestedRefund {
            id: requested.id,
            payment_id: payment,
            amount: JsonDecimal(requested.amount),
            currency: requested.currency,
        };
        let detail = json!({"refund": answer.id, "amount": answer.amount, "reason": reason});
        let target = payment.to_string();
        operator.record(&mut tx, core, "payment.refund", &target, detail).await?;
        save_answer(key, core, &mut tx, &answer).await?;
        tx.commit().await?;
        Cause::count(core, requested.causes);
        Ok(Json(answer))
    }
}

/// A refund to be asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NewRefund")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewRefund {
    /// Above zero, in whole smallest units; all that is left if left out.
    amount: Option<JsonDecimal>,
    /// For the refund and the audit. 1 to 255 characters.
    reason: String,
}

/// A refund that was asked for.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "Refund")]
#[serde(rename_all = "camelCase")]
pub struct RequestedRefund {
    /// The refund's id.
    id: Uuid,
    /// The payment that is given back.
    payment_id: Uuid,
    /// The amount that is given back.
    amount: JsonDecimal,
    /// The payment's currency.
    currency: String,
}
