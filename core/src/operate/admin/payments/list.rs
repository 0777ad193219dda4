//! `GET /admin/v1/payments`

use http::Method;
use serde::Deserialize;
use uuid::Uuid;

use super::{EXAMPLE_LIST, Payment, STATES, Wanted};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::payments::PaymentState;
use crate::operate::admin::limit;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};
use rampart_types::OrderId;

/// Most payments of one answer.
const PAYMENTS_MAX: i64 = 200;

/// `GET /admin/v1/payments`
pub struct ListPayments;

impl Endpoint for ListPayments {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/payments";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List payments",
        details: "Payments that meet every criterion, newest first, at most 200; `after` with the \
                  last `id` continues.",
        query: &[
            optional("partner", Kind::Text, "The partner's slug; `house` for nobody's."),
            optional("order", Kind::Text, "The order's number."),
            optional("state", Kind::OneOf(&STATES), "The payment's state."),
            optional("after", Kind::Format("uuid"), "The last id of the page before."),
            optional("limit", Kind::Integer(1, PAYMENTS_MAX), "Most payments of the answer."),
        ],
        answer: EXAMPLE_LIST,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search;
    type Response = Json<Vec<Payment>>;

    fn read(input: &Input, _: &Operator) -> Result<Search> {
        let Criteria { partner, order, state, after, limit: most } = strict::query(input)?;
        let order: Option<OrderId> = order
            .map(|order| order.parse())
            .transpose()
            .map_err(|_| Denial::unprocessable("order: not an order's number"))?;
        let unknown = || Denial::unprocessable("state: matched, unmatched or suspense");
        let state = state.map(|name| PaymentState::from_name(&name).ok_or_else(unknown));
        let (state, limit) = (state.transpose()?, limit(most.as_deref(), PAYMENTS_MAX)?);
        Ok(Search(Wanted { partner, order, state, after, id: None, limit }))
    }

    async fn call(core: &Core, _: Operator, search: Search) -> Result<Json<Vec<Payment>>> {
        Ok(Json(search.0.find(core).await?))
    }
}

/// A search for payments.
#[derive(Debug)]
pub struct Search(Wanted);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Criteria {
    partner: Option<String>,
    order: Option<String>,
    state: Option<String>,
    after: Option<Uuid>,
    limit: Option<String>,
}
