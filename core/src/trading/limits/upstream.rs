//! `limits.upstream`: a backend that knows the users' limits in place of the built-in book. The edge
//! passes `GET /api/v2/user/limit` on to it, and its answer back unchanged.
//!
//! Who calls is proven here, and the client's rates are taken, before anything is passed on. The
//! backend is told by headers ([`CLIENT_HEADER`], [`USER_HEADER`], `X-Request-Id`); it must be
//! reachable for the edge alone. No credential of the client or its user ever goes there.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;
use url::{Host, Url};

use super::read::V2;
use crate::Core;
use crate::auth::caller::{Caller as _, ClientAndUser};
use crate::endpoint::Endpoint;
use crate::endpoint::admission::Admission;
use crate::http::reply::Reply;
use crate::http::request::{Head, Input};
use crate::platform::error::Error;

/// Names the client to the backend: its id, a UUID.
pub const CLIENT_HEADER: &str = "x-client-id";
/// Names the user to the backend: its id, a UUID.
pub const USER_HEADER: &str = "x-user-id";
/// What of the request's head the backend gets besides.
const PASSED: [&str; 5] =
    ["accept", "accept-encoding", "accept-language", "if-none-match", "user-agent"];

/// Where the backend is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Host name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// What is spoken.
    pub protocol: Protocol,
    /// Host and port as the backend is addressed.
    pub authority: String,
    /// What stands in front of the path, without a slash at its end.
    base: String,
}

/// What is spoken with the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `https://`: TLS, and HTTP/2 where the backend offers it.
    Tls,
    /// `http://`: HTTP/1.1.
    Http1,
    /// `h2c://`: HTTP/2 without TLS, which the backend is known to speak.
    Http2,
}

impl Upstream {
    /// The backend at a base URL; `None` when it is none, or names a user, a query or a fragment.
    pub fn parse(text: &str) -> Option<Self> {
        let (protocol, default_port) = match text.split_once("://")?.0 {
            "https" => (Protocol::Tls, 443),
            "http" => (Protocol::Http1, 80),
            "h2c" => (Protocol::Http2, 80),
            _ => return None,
        };
        // A scheme that the standard knows, so that the host is read as one.
        let url = Url::parse(&text.replacen("h2c://", "http://", 1)).ok()?;
        let plain = url.username().is_empty() && url.password().is_none();
        if !plain || url.query().is_some() || url.fragment().is_some() {
            return None;
        }
        let host = match url.host()? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let port = url.port();
        let shown = url.host_str()?;
        let authority = port.map_or(shown.to_owned(), |port| format!("{shown}:{port}"));
        let base = url.path().trim_end_matches('/').to_owned();
        let port = port.unwrap_or(default_port);
        Some(Self { host, port, protocol, authority, base })
    }

    /// The request's target there.
    fn target(&self, head: &Head) -> String {
        let query = head.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}{}{query}", self.base, head.path)
    }
}

/// A request for the backend.
#[derive(Debug)]
pub struct PassedOn {
    /// Path and query there.
    pub target: String,
    /// Every header that goes there, `Host` excepted.
    pub headers: HeaderMap,
    /// Headers that the answer carries as every answer does (section 1 of the contract).
    pub answer: HeaderMap,
}

impl Core {
    /// The backend that answers an admitted request, if it is not this core.
    pub fn upstream_of(&self, admission: &Admission) -> Option<&Upstream> {
        let route = admission.route;
        let limits = route.method == V2::METHOD && route.path == V2::PATH;
        self.upstream.as_ref().filter(|_| limits)
    }

    /// Proves who calls and writes the request for the backend.
    ///
    /// # Errors
    /// The finished answer.
    pub async fn pass_on(
        &self,
        upstream: &Upstream,
        admission: &Admission,
        head: Head,
    ) -> Result<PassedOn, Box<Reply>> {
        let request_id = head.request_id.clone();
        let target = upstream.target(&head);
        let input = Input {
            head,
            body: Bytes::new(),
            upload: None,
            document: Value::Null,
            params: Vec::new(),
            now: self.clock.now(),
        };
        let identified = ClientAndUser::identify(self, admission.client.clone(), &input).await;
        let headers = identified.and_then(|caller| headers(&input.head, &caller));
        let mut reply = match &headers {
            Ok(_) => Reply::empty(StatusCode::OK),
            Err(error) => error.reply(&request_id),
        };
        self.finish(&mut reply, &request_id, Some(admission));
        match headers {
            Ok(headers) => Ok(PassedOn { target, headers, answer: reply.headers }),
            Err(_) => Err(Box::new(reply)),
        }
    }
}

fn headers(head: &Head, caller: &ClientAndUser) -> Result<HeaderMap, Error> {
    let unsayable = |error| Error::internal("name the caller to the upstream", error);
    let value = |text: &str| HeaderValue::from_str(text).map_err(unsayable);
    let mut headers = HeaderMap::new();
    for name in PASSED {
        if let Some(sent) = head.headers.get(name) {
            headers.insert(name, sent.clone());
        }
    }
    headers.insert(CLIENT_HEADER, value(&caller.client.id().to_string())?);
    headers.insert(USER_HEADER, value(&caller.user.to_string())?);
    headers.insert("x-request-id", value(&head.request_id)?);
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_says_where_and_how() {
        let parsed = |text| Upstream::parse(text);
        let found = parsed("https://limits.example.com/base/").unwrap();
        assert_eq!((&*found.host, found.port), ("limits.example.com", 443));
        assert_eq!((found.protocol, &*found.base), (Protocol::Tls, "/base"));
        assert_eq!(found.authority, "limits.example.com");
        let found = parsed("h2c://[::1]:9000").unwrap();
        assert_eq!((&*found.host, found.port, &*found.base), ("::1", 9000, ""));
        assert_eq!((found.protocol, &*found.authority), (Protocol::Http2, "[::1]:9000"));
        assert_eq!(parsed("http://10.0.0.1").unwrap().protocol, Protocol::Http1);
        for bad in ["", "limits", "ftp://a", "http://", "http://a:b@c", "http://a?b", "http://a#b"]
        {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
