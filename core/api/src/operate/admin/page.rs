//! Pages of lists: each list that has pages takes `limit` and `after`, and its `Link` leads to the
//! next one.

use http::StatusCode;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use url::form_urlencoded;

use crate::endpoint::openapi::doc::{Kind, Member, optional};
use crate::endpoint::{Respond, Success};
use crate::http::fields::strict;
use crate::http::reply::Reply;
use crate::http::request::{Head, Input};
use crate::platform::error::{Denial, Result};

/// The query's `after` of a list that continues behind an id.
pub(super) const AFTER: Member =
    optional("after", Kind::Format("uuid"), "The last id of the page before.");

/// The query's `limit` of a list whose pages have at most so many rows.
pub(super) const fn limit(most: i64) -> Member {
    optional("limit", Kind::Integer(1, most), "Most rows of the page.")
}

/// Refuses an `after` that no row has: the list would seem to end there. It is looked for before the
/// page is read, on the same connection: a replica that lacks the row says so.
///
/// # Errors
/// 422 unless it `exists`.
pub(super) fn check_after(exists: bool) -> Result<()> {
    let unknown = || Denial::unprocessable("after: no row of this list has it").into();
    exists.then_some(()).ok_or_else(unknown)
}

/// Rows of a list, and the `Link` to those behind them (RFC 8288).
#[derive(Debug)]
pub struct Page<T> {
    rows: Vec<T>,
    link: Option<String>,
}

/// The page of a list that a request asks for.
#[derive(Debug)]
pub(super) struct Paging {
    /// Most rows of the page.
    limit: i64,
    path: String,
    /// Without `after`.
    query: Vec<(String, String)>,
}

impl Paging {
    /// That of a request with this `limit`; `most` rows if it has none.
    ///
    /// # Errors
    /// 422 for anything but a number from 1 to `most`.
    pub(super) fn of(head: &Head, limit: Option<&str>, most: i64) -> Result<Self> {
        let asked = limit.map_or(Some(most), |limit| limit.parse().ok());
        let limit = asked.filter(|limit| (1..=most).contains(limit));
        let limit = limit.ok_or_else(|| Denial::unprocessable(format!("limit: 1 to {most}")))?;
        let query = form_urlencoded::parse(head.query.as_deref().unwrap_or_default().as_bytes());
        let kept = query.into_owned().filter(|(name, _)| name != "after");
        Ok(Self { limit, path: head.path.clone(), query: kept.collect() })
    }

    /// Most rows to read: those of the page, and one that tells that another page follows.
    pub(super) const fn rows_max(&self) -> i64 {
        self.limit.saturating_add(1)
    }

    /// The page of the rows that were read. `id` names the last one, behind which the next page
    /// begins.
    pub(super) fn page<T, I: ToString>(
        self,
        mut rows: Vec<T>,
        id: impl FnOnce(&T) -> I,
    ) -> Page<T> {
        let has_more = self.cut(&mut rows);
        let last = rows.last().filter(|_| has_more).map(|last| id(last).to_string());
        self.page_until(rows, last)
    }

    /// The page of these rows; `last` is what the next one begins behind, if there is one.
    pub(super) fn page_until<T>(self, rows: Vec<T>, last: Option<String>) -> Page<T> {
        let link = last.map(|last| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(&self.query).append_pair("after", &last);
            format!("<{}?{}>; rel=\"next\"", self.path, query.finish())
        });
        Page { rows, link }
    }

    /// Leaves the rows of the page; `true` if another page follows.
    pub(super) fn cut<T>(&self, rows: &mut Vec<T>) -> bool {
        let most = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > most;
        rows.truncate(most);
        has_more
    }
}

/// A search in a list: its criteria, and the page of what meets them.
#[derive(Debug)]
pub struct Search<C> {
    pub(super) criteria: C,
    pub(super) paging: Paging,
}

/// The page of a list without criteria.
#[derive(Debug)]
pub struct Part<A = String> {
    /// The row of the page before that this one begins behind.
    pub(super) after: Option<A>,
    pub(super) paging: Paging,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartQuery<A> {
    after: Option<A>,
    limit: Option<String>,
}

impl<A: DeserializeOwned> Part<A> {
    /// That of a request; `most` rows if it has no `limit`.
    ///
    /// # Errors
    /// 422 for an unknown parameter, an `after` of another form, and a `limit` out of bounds.
    pub(super) fn read(input: &Input, most: i64) -> Result<Self> {
        let PartQuery { after, limit } = strict::query(input)?;
        Ok(Self { after, paging: Paging::of(&input.head, limit.as_deref(), most)? })
    }
}

impl Part {
    /// The page of all rows of a list that is short enough to be read whole, in its order. `id` names
    /// a row.
    ///
    /// # Errors
    /// 422 for an `after` that no row has.
    pub(super) fn of<T>(self, mut rows: Vec<T>, id: impl Fn(&T) -> String) -> Result<Page<T>> {
        if let Some(after) = self.after {
            let last = rows.iter().position(|row| id(row) == after);
            check_after(last.is_some())?;
            rows.drain(..=last.unwrap_or_default());
        }
        Ok(self.paging.page(rows, id))
    }
}

impl<T: JsonSchema + Serialize + Send> Respond for Page<T> {
    fn respond(self) -> Result<Reply> {
        let mut reply = Reply::json(StatusCode::OK, &self.rows)?;
        if let Some(link) = &self.link {
            reply.set("link", link);
        }
        Ok(reply)
    }

    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success> {
        let headers = &[("Link", "`rel=\"next\"`: the next page, if there is one now.")];
        vec![Success { headers, ..Success::json::<Vec<T>>(StatusCode::OK, schemas) }]
    }
}
