//! A page of a list, with the way to the next one.

use http::StatusCode;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use url::form_urlencoded;

use crate::endpoint::{Respond, Success};
use crate::http::reply::Reply;
use crate::http::request::Head;
use crate::platform::error::Result;

/// Rows of a list, and the `Link` to those behind them (RFC 8288).
#[derive(Debug)]
pub struct Page<T> {
    rows: Vec<T>,
    link: Option<String>,
}

/// The path and query of a list, for the link to its next page.
#[derive(Clone, Debug)]
pub(super) struct ListUrl {
    path: String,
    /// Without `after`.
    query: Vec<(String, String)>,
}

impl ListUrl {
    /// That of a request.
    pub(super) fn of(head: &Head) -> Self {
        let query = form_urlencoded::parse(head.query.as_deref().unwrap_or_default().as_bytes());
        let kept = query.into_owned().filter(|(name, _)| name != "after");
        Self { path: head.path.clone(), query: kept.collect() }
    }

    /// The page of these rows; `after` is what the next one begins behind, if there is one.
    pub(super) fn page<T>(self, rows: Vec<T>, after: Option<String>) -> Page<T> {
        let link = after.map(|after| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(&self.query).append_pair("after", &after);
            format!("<{}?{}>; rel=\"next\"", self.path, query.finish())
        });
        Page { rows, link }
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
