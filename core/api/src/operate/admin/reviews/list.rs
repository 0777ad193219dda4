//! `GET /admin/v1/reviews`

use chrono::{DateTime, SecondsFormat, Utc};
use http::Method;
use serde::Deserialize;

use super::{Criteria, REVIEWERS, Review, SUBJECTS, example, stored_id};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Paging, Search, limit};
use crate::platform::error::{Denial, Result};

/// Most subjects of one answer.
const REVIEWS_MAX: i64 = 200;

/// `GET /admin/v1/reviews`
pub struct ListReviews;

impl Endpoint for ListReviews {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/reviews";
    const ROLES: &'static [Role] = REVIEWERS;
    const DOC: Doc = Doc {
        summary: "List users and orders that wait for a person",
        details: "Oldest first: users with a document, a proof of an account or a \
                  screening to decide about, orders that are blocked, in a dispute that is \
                  not over, whose payout came back when they were over, or whose screening is \
                  to decide: one that its provider has blocked, too. A paid order that is held \
                  by a user or an account that is disabled, or by a screening that an operator \
                  has blocked, waits until that is undone or it is given back. So does a live \
                  sale of a user without an account, until its money was sent by hand \
                  (`transfer-sent`, then `transfer-completed`). An order is \
                  `owed` while money of it is with us that nobody gives back: a refund that was \
                  rejected after the release or was not told of for a week after its command was \
                  done, or a dispute that is won after the order was given back. That and what \
                  came back wait until a payment by hand tells that it was sent again \
                  (`payout-sent`, `transfer-sent`) or given back (`refunded`). More has left of \
                  an order with an `excess` than it owes: it waits until that came back \
                  (`payout-failed`, `transfer-returned`), or is owed after all. A `shortfall` is \
                  a part of a payout that no command sends: it waits until it was sent by hand. \
                  Of an order that is `unknown` nobody knows if its payout or a refund was made: an \
                  attempt at it has reported nothing, and `connectors.attempts_max` others that it \
                  is to be tried again. It waits until its connector reports that it is done or \
                  rejected. Of one that is `unpayable` its connector has named a bank account or a \
                  `redirectUrl` that is not valid, or a `clientToken` without a card form: it waits \
                  until it is paid or over.",
        query: &[
            optional("subject", Kind::OneOf(&SUBJECTS), "Users or orders alone."),
            optional("partner", Kind::Text, "The partner's slug."),
            optional("id", Kind::Text, "The uuid of a user, or an order's number."),
            optional("after", Kind::Text, "As the `Link` to the next page has it."),
            limit(REVIEWS_MAX),
        ],
        answer: concat!("[", example!(), "]"),
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search<Criteria>;
    type Response = Page<Review>;

    fn read(input: &Input, _: &Operator) -> Result<Search<Criteria>> {
        let Query { subject, partner, id, after, limit } = strict::query(input)?;
        if subject.as_deref().is_some_and(|subject| !SUBJECTS.contains(&subject)) {
            return Err(Denial::unprocessable("subject: user or order").into());
        }
        let id = id.map(|id| stored_id(&id).ok_or(id)).transpose();
        let id = id.map_err(|_| Denial::unprocessable("id: a user's uuid or an order's number"))?;
        let after = after.map(|text| cursor(&text).ok_or(text)).transpose();
        let after = after.map_err(|_| Denial::unprocessable("after: not of a Link"))?;
        let paging = Paging::of(&input.head, limit.as_deref(), REVIEWS_MAX)?;
        let limit = paging.rows_max();
        Ok(Search { criteria: Criteria { subject, partner, after, id, limit }, paging })
    }

    async fn call(core: &Core, _: Operator, search: Search<Criteria>) -> Result<Page<Review>> {
        Ok(search.paging.page(search.criteria.find(core).await?, |last| {
            let since = last.waiting_since.to_rfc3339_opts(SecondsFormat::Micros, true);
            format!("{since},{}", last.id)
        }))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    subject: Option<String>,
    partner: Option<String>,
    id: Option<String>,
    after: Option<String>,
    limit: Option<String>,
}

/// The last subject of the page before.
fn cursor(text: &str) -> Option<(DateTime<Utc>, String)> {
    let (since, id) = text.split_once(',')?;
    Some((since.parse().ok()?, id.to_owned()))
}
