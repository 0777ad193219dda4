//! `POST /admin/v1/payments/{id}/match`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{EXAMPLE, ID, Payment, find, id};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::payments::matching::match_to;
use crate::operate::admin::approvals;
use crate::operate::admin::operator::Operator;
use crate::platform::error::Result;
use crate::trading::orders::state::Cause;
use rampart_types::OrderId;

/// `POST /admin/v1/payments/{id}/match`
pub struct MatchPayment;

impl Endpoint for MatchPayment {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/payments/{id}/match";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Treasury];
    const APPROVAL: bool = true;
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Match a payment to an order",
        details: "The order goes on as if the payment had named it. 409 unless the payment is in \
                  suspense or unmatched, neither disputed nor given back, and the order waits for \
                  it.",
        path: &[ID],
        body: Shape::of::<Match>(),
        request: r#"{"orderId": 1234567890123456}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, Match);
    type Response = Json<Payment>;

    fn read(input: &Input, _: &Operator) -> Result<(String, Match)> {
        Ok((input.param("id").to_owned(), strict::body(input)?))
    }

    async fn needs_approval(
        core: &Core,
        _: &Operator,
        (text, _): &(String, Match),
    ) -> Result<bool> {
        let payment = find(core, id(text)?).await?;
        Ok(approvals::exceeds_alone_in(core, payment.amount.0, &payment.currency))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (text, Match { order_id }): (String, Match),
    ) -> Result<Json<Payment>> {
        let payment = id(&text)?;
        let actor = operator.actor();
        let mut tx = core.db.begin().await?;
        let causes = match_to(&mut tx, core, payment, order_id, actor).await?;
        let detail = json!({ "orderId": order_id });
        let target = payment.to_string();
        operator.record(&mut tx, core, "payment.match", &target, detail).await?;
        tx.commit().await?;
        Cause::count(core, causes);
        Ok(Json(find(core, payment).await?))
    }
}

/// The order that a payment was meant for.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "PaymentMatch")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Match {
    /// The order's number.
    order_id: OrderId,
}
