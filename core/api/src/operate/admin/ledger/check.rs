//! `GET /admin/v1/ledger/check`

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::ledger::check::check;
use crate::operate::admin::operator::Operator;
use crate::platform::error::Result;

/// `GET /admin/v1/ledger/check`
pub struct CheckLedger;

impl Endpoint for CheckLedger {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/ledger/check";
    const ROLES: &'static [Role] = &[Role::Viewer, Role::Treasury, Role::Compliance];
    const DOC: Doc = Doc {
        summary: "Check the books",
        details: "Recomputes a page of orders, then of entries, then the accounts at providers, \
                  then settled sums: orders whose postings do not fit their state or that owe a \
                  refund of 90 days ago, entries that do not balance, what is open of each \
                  account's last reconciliation, and accounts whose settled sum is not that of \
                  their postings; one of 20,000 postings and more is checked with its book, whose \
                  sums come to zero. `after` with the answer's `next` continues, until it is null.",
        query: &[optional("after", Kind::Text, "The `next` of the page before.")],
        answer: r#"{"checked": 412, "problems": [{"subject": "order 1234567890123456",
            "problem": "it is completed, and its payout was not booked"}], "next": null}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Place;
    type Response = Json<Checked>;

    fn read(input: &Input, _: &Operator) -> Result<Place> {
        strict::query(input)
    }

    async fn call(core: &Core, _: Operator, place: Place) -> Result<Json<Checked>> {
        let page = check(core, place.after.as_deref()).await?;
        let problems = page.problems.into_iter();
        let problems = problems
            .map(|found| Problem { subject: found.subject, problem: found.problem.into_owned() });
        Ok(Json(Checked { checked: page.checked, problems: problems.collect(), next: page.next }))
    }
}

/// The place where a page begins.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    after: Option<String>,
}

/// A page of a check.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "LedgerCheck")]
pub struct Checked {
    /// Orders, entries or accounts that were looked at.
    checked: usize,
    /// Things that do not hold.
    problems: Vec<Problem>,
    /// Begin of the next page; null after the last one.
    next: Option<String>,
}

/// Something in the books that does not hold.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "LedgerProblem")]
struct Problem {
    /// The order, the entry, the account or the book.
    subject: String,
    /// The finding, in words.
    problem: String,
}
