//! An operator's request of a page: the session, and calls of the operators' API with its rights.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LINK};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use crate::Core;
use crate::endpoint::Route;
use crate::http::plain_error;
use crate::http::reply::Reply;
use crate::http::request::Head;
use crate::http::uri;
use crate::operate::admin::login::session::Session;
use crate::operate::admin::serve;

/// A request of a page by a signed-in operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) head: &'a Head,
    pub(super) session: &'a Session,
}

/// A call that was not carried out.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    /// In words, as the API says it.
    pub(super) reason: String,
}

impl Refused {
    /// Nothing is at this path.
    pub(super) fn nothing() -> Self {
        Self { status: StatusCode::NOT_FOUND, reason: "There is no such page.".to_owned() }
    }

    /// The refusal that an answer is; `None` for a success.
    pub(super) fn of(reply: &Reply) -> Option<Self> {
        if reply.status.is_success() {
            return None;
        }
        let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let reason = body["error"].as_str().unwrap_or("The call failed; see the log.").to_owned();
        Some(Self { status: reply.status, reason })
    }
}

impl Visit<'_> {
    /// Makes a call of the operators' API as the operator of the session: the same checks, the same
    /// audit, the same second person.
    pub(super) async fn call(&self, method: Method, url: &str, body: Option<&Value>) -> Reply {
        let json = HeaderValue::from_static("application/json");
        self.send(method, url, body.map(|body| (json, body.to_string().into()))).await
    }

    /// The same with an `Idempotency-Key`: a call that takes one counts once, however often it is
    /// made.
    pub(super) async fn call_once(
        &self,
        key: &str,
        method: Method,
        url: &str,
        body: &Value,
    ) -> Reply {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Ok(key) = HeaderValue::from_str(key) {
            headers.insert("idempotency-key", key);
        }
        self.send_with(method, url, headers, body.to_string().into()).await
    }

    /// As [`Visit::call`], with a body of any media type.
    pub(super) async fn send(
        &self,
        method: Method,
        url: &str,
        body: Option<(HeaderValue, Bytes)>,
    ) -> Reply {
        let mut headers = HeaderMap::new();
        let bytes = body.map_or_else(Bytes::new, |(media_type, bytes)| {
            headers.insert(CONTENT_TYPE, media_type);
            bytes
        });
        self.send_with(method, url, headers, bytes).await
    }

    async fn send_with(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        bytes: Bytes,
    ) -> Reply {
        let (path, query) = match url.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (url, None),
        };
        let head = Head {
            method,
            path: path.to_owned(),
            query,
            headers,
            peer: self.head.peer,
            client_certificate: None,
            request_id: self.head.request_id.clone(),
        };
        // On the heap: a page makes several calls, whose states would not fit on the stack together.
        let served = Box::pin(serve(self.core, self.session.operator.clone(), head, bytes)).await;
        let request_id = &*self.head.request_id;
        let reply =
            served.unwrap_or_else(|error| plain_error::reply(self.core, &error, request_id));
        naming_request(reply, request_id)
    }

    /// Reads what a call shows.
    pub(super) async fn get(&self, url: &str) -> Result<Value, Refused> {
        let reply = self.call(Method::GET, url, None).await;
        match Refused::of(&reply) {
            Some(refused) => Err(refused),
            None => Ok(serde_json::from_slice(&reply.body).unwrap_or_default()),
        }
    }

    /// Reads a page of a list, and the query of the next one if the call names it.
    pub(super) async fn rows(&self, url: &str) -> Result<(Vec<Value>, Option<String>), Refused> {
        let reply = self.call(Method::GET, url, None).await;
        if let Some(refused) = Refused::of(&reply) {
            return Err(refused);
        }
        let link = reply.headers.get(LINK).and_then(|link| link.to_str().ok());
        let next = link.and_then(|link| link.split(['<', '>']).nth(1));
        let next = next.and_then(|url| url.split_once('?')).map(|(_, query)| query.to_owned());
        Ok((serde_json::from_slice(&reply.body).unwrap_or_default(), next))
    }

    /// The row of a list that is looked for, on whichever page it is.
    ///
    /// # Errors
    /// 404 when there is none; the refusal of a call.
    pub(super) async fn find(
        &self,
        list: &str,
        is_it: impl Fn(&Value) -> bool,
    ) -> Result<Value, Refused> {
        let mut url = list.to_owned();
        loop {
            let (rows, next) = self.rows(&url).await?;
            if let Some(found) = rows.into_iter().find(&is_it) {
                return Ok(found);
            }
            url = format!("{list}?{}", next.ok_or_else(Refused::nothing)?);
        }
    }

    /// True if a role of the operator lets them make this call, which is named as in the table of
    /// endpoints.
    pub(super) fn may(&self, method: &Method, path: &str) -> bool {
        let route = self.route(method, path);
        route.is_some_and(|route| self.session.operator.check(route.roles).is_ok())
    }

    fn route(&self, method: &Method, path: &str) -> Option<&Route> {
        let mut routes = self.core.apis.operators.endpoints.iter();
        routes.find(|route| route.method == *method && route.path == path)
    }
}

/// The answer of a call, the reason of a failure with what support looks for in the log: also where
/// the answer is kept for a second click, which is another request.
fn naming_request(reply: Reply, request_id: &str) -> Reply {
    match Refused::of(&reply) {
        Some(Refused { status, reason }) if status.is_server_error() => {
            let reason = format!("{}. Request: {request_id}", reason.trim_end_matches('.'));
            let body = json!({ "error": reason }).to_string().into();
            Reply { body, ..reply }
        }
        _ => reply,
    }
}

/// A segment of a path.
pub(super) fn segment(text: &str) -> String {
    uri::escape(text)
}

/// A path with the values of its `{names}`, in their order.
pub(super) fn fill(pattern: &str, values: &[String]) -> String {
    let mut values = values.iter();
    let segments = pattern.split('/').map(|part| match part.starts_with('{') {
        true => values.next().map_or_else(String::new, |value| segment(value)),
        false => part.to_owned(),
    });
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_request_and_a_refusal_says_what_it_said() {
        let reason = |status: StatusCode, body: &'static str| {
            let reply = Reply::with_body(status, "application/json", body.into());
            Refused::of(&naming_request(reply, "7")).map(|refused| refused.reason)
        };
        for (status, body, wanted) in [
            (500, r#"{"error":"it broke"}"#, Some("it broke. Request: 7")),
            (503, r#"{"error":"Not now."}"#, Some("Not now. Request: 7")),
            (502, "<html>", Some("The call failed; see the log. Request: 7")),
            (409, r#"{"error":"Not now."}"#, Some("Not now.")),
            (200, r#"{"error":"it broke"}"#, None),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(reason(status, body).as_deref(), wanted, "{status}");
        }
    }

    #[test]
    fn values_fill_a_path_and_cannot_leave_it() {
        let values = ["a/b".to_owned(), "ü?".to_owned()];
        assert_eq!(fill("/x/{slug}/y/{id}/z", &values), "/x/a%2Fb/y/%C3%BC%3F/z");
        assert_eq!(fill("/x", &values), "/x");
    }
}
