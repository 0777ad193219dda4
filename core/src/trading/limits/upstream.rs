//! `limits.upstream`: a backend that has the users' limits instead of the built-in rules. The edge
//! proxies `GET /api/v2/user/limit` to it and returns its response unchanged.
//!
//! The edge authenticates the caller and applies the tenant's rate limits first. The backend gets
//! their ids in headers ([`CLIENT_HEADER`], [`USER_HEADER`], `X-Request-Id`) and must be reachable
//! by the edge alone. Credentials of the tenant or the user are never forwarded.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;
use url::{Host, Url};

use super::read::V2;
use crate::Core;
use crate::auth::caller::{Caller as _, Client, ClientAndUser};
use crate::endpoint::Endpoint;
use crate::endpoint::admission::Admission;
use crate::http::reply::Reply;
use crate::http::request::{Head, Input};
use crate::platform::db::tenant;
use crate::platform::error::Error;

/// Header with the tenant's id, a UUID.
pub const CLIENT_HEADER: &str = "x-client-id";
/// Header with the user's id, a UUID.
pub const USER_HEADER: &str = "x-user-id";
/// Request headers that are forwarded unchanged.
const FORWARDED_HEADERS: [&str; 5] =
    ["accept", "accept-encoding", "accept-language", "if-none-match", "user-agent"];

/// Address of the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Host name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Protocol of its connections.
    pub protocol: Protocol,
    /// Host and optional port, for the `Host` header.
    pub authority: String,
    /// Path prefix, without a trailing slash.
    base: String,
}

/// Protocol of connections to the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `https://`: TLS, with HTTP/2 if the backend offers it.
    Tls,
    /// `http://`: HTTP/1.1.
    Http1,
    /// `h2c://`: HTTP/2 without TLS, by prior knowledge.
    Http2,
}

impl Upstream {
    /// Parses a base URL; `None` if it is invalid, or has a user, a query or a fragment.
    pub fn parse(text: &str) -> Option<Self> {
        let (protocol, default_port) = match text.split_once("://")?.0 {
            "https" => (Protocol::Tls, 443),
            "http" => (Protocol::Http1, 80),
            "h2c" => (Protocol::Http2, 80),
            _ => return None,
        };
        // A scheme that the URL standard knows, so that the host is parsed by its rules.
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

    /// Path and query of the upstream request.
    fn target(&self, head: &Head) -> String {
        let query = head.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}{}{query}", self.base, head.path)
    }
}

/// A request for the backend.
#[derive(Debug)]
pub struct UpstreamRequest {
    /// Path and query.
    pub target: String,
    /// Every header but `Host`.
    pub headers: HeaderMap,
    /// Headers that every response carries (section 1 of the contract).
    pub answer: HeaderMap,
}

impl Core {
    /// The backend of an admitted request; `None` if this core handles it.
    pub fn upstream_of(&self, admission: &Admission) -> Option<&Upstream> {
        let route = admission.route;
        let limits = route.method == V2::METHOD && route.path == V2::PATH;
        self.upstream.as_ref().filter(|_| limits)
    }

    /// Authenticates the caller and builds the request for the backend.
    ///
    /// # Errors
    /// The finished error response.
    pub async fn pass_on(
        &self,
        upstream: &Upstream,
        admission: &Admission,
        head: Head,
    ) -> Result<UpstreamRequest, Box<Reply>> {
        let request_id = head.request_id.clone();
        let target = upstream.target(&head);
        let input = Input {
            head,
            body: Bytes::new(),
            upload: None,
            document: Value::Null,
            params: Vec::new(),
            now: self.clock.now(),
            proven: http::Extensions::new(),
        };
        let client = admission.client.clone();
        let tenant = client.as_ref().map(Client::id);
        let identifying = ClientAndUser::identify(self, client, &input);
        let identified = tenant::run(tenant, identifying).await;
        let headers = identified.and_then(|caller| headers(&input.head, &caller));
        let mut reply = match &headers {
            Ok(_) => Reply::empty(StatusCode::OK),
            Err(error) => self.reply_to(error, &request_id),
        };
        self.finish(&mut reply, &request_id, Some(admission));
        match headers {
            Ok(headers) => Ok(UpstreamRequest { target, headers, answer: reply.headers }),
            Err(_) => Err(Box::new(reply)),
        }
    }
}

fn headers(head: &Head, caller: &ClientAndUser) -> Result<HeaderMap, Error> {
    let invalid = |error| Error::internal("name the caller to the upstream", error);
    let value = |text: &str| HeaderValue::from_str(text).map_err(invalid);
    let mut headers = HeaderMap::new();
    for name in FORWARDED_HEADERS {
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
    fn a_base_url_gives_address_and_protocol() {
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
