//! `GET /admin/v1/payments`

use http::Method;
use serde::Deserialize;
use uuid::Uuid;

use super::{Criteria, EXAMPLE_LIST, Payment};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::payments::PaymentState;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{AFTER, Page, Paging, Search, limit};
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
        details: "Payments that meet every criterion, newest first.",
        query: &[
            optional(
                "partner",
                Kind::Text,
                "The partner's slug, also of payments of others that are matched to its orders; \
                 `house` for those that came as nobody's.",
            ),
            optional("order", Kind::Text, "The order's number."),
            optional(
                "state",
                Kind::OneOf(&PaymentState::NAMES),
                "The payment's state; of those that are `unmatched` or in `suspense`, the ones that \
                 were not given back.",
            ),
            AFTER,
            limit(PAYMENTS_MAX),
        ],
        answer: EXAMPLE_LIST,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search<Criteria>;
    type Response = Page<Payment>;

    fn read(input: &Input, _: &Operator) -> Result<Search<Criteria>> {
        let Query { partner, order, state, after, limit } = strict::query(input)?;
        let order: Option<OrderId> = order
            .map(|order| order.parse())
            .transpose()
            .map_err(|_| Denial::unprocessable("order: not an order's number"))?;
        let unknown = || Denial::unprocessable("state: matched, unmatched or suspense");
        let state = state.map(|name| PaymentState::from_name(&name).ok_or_else(unknown));
        let (state, id) = (state.transpose()?, None);
        let paging = Paging::of(&input.head, limit.as_deref(), PAYMENTS_MAX)?;
        let limit = paging.rows_max();
        let criteria = Criteria { partner, order, state, after, id, limit };
        Ok(Search { criteria, paging })
    }

    async fn call(core: &Core, _: Operator, search: Search<Criteria>) -> Result<Page<Payment>> {
        Ok(search.paging.page(search.criteria.find(core).await?, |payment| payment.id))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    partner: Option<String>,
    order: Option<String>,
    state: Option<String>,
    after: Option<Uuid>,
    limit: Option<String>,
}
