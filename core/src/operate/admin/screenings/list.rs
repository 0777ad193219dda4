//! `GET /admin/v1/screenings`

use http::Method;
use serde::Deserialize;
use uuid::Uuid;

use super::{STATES, Screening, Wanted, example};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::limit;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};

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
        details: "Oldest first, at most 200; `after` with the last `id` continues. Those of state \
                  `review` wait for an operator.",
        query: &[
            optional("partner", Kind::Text, "The partner's slug."),
            optional("state", Kind::OneOf(&STATES), "The screening's state."),
            optional("after", Kind::Format("uuid"), "The last id of the page before."),
            optional("limit", Kind::Integer(1, SCREENINGS_MAX), "Most screenings of the answer."),
        ],
        answer: concat!("[", example!(), "]"),
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search;
    type Response = Json<Vec<Screening>>;

    fn read(input: &Input, _: &Operator) -> Result<Search> {
        let Criteria { partner, state, after, limit: most } = strict::query(input)?;
        if state.as_deref().is_some_and(|state| !STATES.contains(&state)) {
            return Err(Denial::unprocessable("state: pending, clear, review or block").into());
        }
        let limit = limit(most.as_deref(), SCREENINGS_MAX)?;
        Ok(Search(Wanted { partner, state, after, id: None, limit }))
    }

    async fn call(core: &Core, _: Operator, search: Search) -> Result<Json<Vec<Screening>>> {
        Ok(Json(search.0.find(core).await?))
    }
}

/// A search for screenings.
#[derive(Debug)]
pub struct Search(Wanted);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Criteria {
    partner: Option<String>,
    state: Option<String>,
    after: Option<Uuid>,
    limit: Option<String>,
}
