//! `GET /admin/v1/screenings`

use http::Method;
use serde::Deserialize;
use uuid::Uuid;

use super::{Criteria, STATES, Screening, example};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{AFTER, Page, Paging, Search, limit};
use crate::platform::error::{Denial, Result};
use rampart_types::OrderId;

/// Most screenings of one answer.
const SCREENINGS_MAX: i64 = 200;

/// `GET /admin/v1/screenings`
pub struct ListScreenings;

impl Endpoint for ListScreenings {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/screenings";
    const ROLES: &'static [Role] = &[Role::Support, Role::Compliance];
    const DOC: Doc = Doc {
        summary: "List screenings",
        details: "Oldest first; that of a person whose name or country has changed keeps its \
                  place. Those of state `review` wait for an operator.",
        query: &[
            optional("partner", Kind::Text, "The partner's slug."),
            optional("state", Kind::OneOf(&STATES), "The screening's state."),
            optional("orderId", Kind::Text, "The number of the order whose wallet it is of."),
            optional("userId", Kind::Format("uuid"), "The person that it is of."),
            AFTER,
            limit(SCREENINGS_MAX),
        ],
        answer: concat!("[", example!(), "]"),
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search<Criteria>;
    type Response = Page<Screening>;

    fn read(input: &Input, _: &Operator) -> Result<Search<Criteria>> {
        let Query { partner, state, order_id, user_id, after, limit } = strict::query(input)?;
        if state.as_deref().is_some_and(|state| !STATES.contains(&state)) {
            return Err(Denial::unprocessable("state: pending, clear, review or block").into());
        }
        let order = order_id.map(|text| text.parse::<OrderId>()).transpose();
        let order = order.map_err(|_| Denial::unprocessable("orderId: not an order's number"))?;
        let paging = Paging::of(&input.head, limit.as_deref(), SCREENINGS_MAX)?;
        let limit = paging.rows_max();
        let criteria = Criteria { partner, state, order, user: user_id, after, id: None, limit };
        Ok(Search { criteria, paging })
    }

    async fn call(core: &Core, _: Operator, search: Search<Criteria>) -> Result<Page<Screening>> {
        Ok(search.paging.page(search.criteria.find(core).await?, |screening| screening.id))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Query {
    partner: Option<String>,
    state: Option<String>,
    order_id: Option<String>,
    user_id: Option<Uuid>,
    after: Option<Uuid>,
    limit: Option<String>,
}
