//! `GET /admin/v1/dca-codes`

use http::Method;
use serde::Deserialize;
use uuid::Uuid;

use super::{Criteria, ListedPlan};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Paging, Search, limit};
use crate::platform::error::{Denial, Result};
use crate::trading::dca::code::is_code;

/// Most savings plans of one answer.
const PLANS_MAX: i64 = 200;

/// `GET /admin/v1/dca-codes`
pub struct ListPlans;

impl Endpoint for ListPlans {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/dca-codes";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List savings plans",
        details: "Plans that meet every criterion, newest first; those that are hidden, and those \
                  of erased users, too.",
        query: &[
            optional("partner", Kind::Text, "The partner's slug."),
            optional("user", Kind::Format("uuid"), "The user's uuid."),
            optional("code", Kind::Text, "The plan's code."),
            optional("after", Kind::Text, "The last code of the page before."),
            limit(PLANS_MAX),
        ],
        answer: r#"[{"code": "7K2M9QXT4B8D", "partner": "acme",
            "userId": "0199a000-0000-7000-8000-000000000005", "cryptoCurrency": "BTC",
            "bankIban": "NL77SAND0000000001", "intendedAmount": 5000, "frequency": "monthly",
            "hidden": false, "createdAt": "2026-03-01T14:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search<Criteria>;
    type Response = Page<ListedPlan>;

    fn read(input: &Input, _: &Operator) -> Result<Search<Criteria>> {
        let Query { partner, user, code, after, limit } = strict::query(input)?;
        for (name, text) in [("code", code.as_deref()), ("after", after.as_deref())] {
            if text.is_some_and(|text| !is_code(text)) {
                let reason = format!("{name}: not a savings plan's code");
                return Err(Denial::unprocessable(reason).into());
            }
        }
        let paging = Paging::of(&input.head, limit.as_deref(), PLANS_MAX)?;
        let limit = paging.rows_max();
        Ok(Search { criteria: Criteria { partner, user, code, after, limit }, paging })
    }

    async fn call(core: &Core, _: Operator, search: Search<Criteria>) -> Result<Page<ListedPlan>> {
        let plans = search.criteria.find(core).await?;
        Ok(search.paging.page(plans, |plan| plan.code.clone()))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    partner: Option<String>,
    user: Option<Uuid>,
    code: Option<String>,
    after: Option<String>,
    limit: Option<String>,
}
