//! A request as a listener hands it to the core: plain values, no server types.

use std::net::IpAddr;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::Method;
use http::header::HeaderMap;

use crate::http::upload::Uploaded;

/// Largest body of an ordinary endpoint, in bytes (section 1 of the contract).
pub const BODY_BYTES_MAX: usize = 256 * 1024;

/// The head of a request, as a listener has checked it: framing sound, path in normal form.
#[derive(Clone, Debug)]
pub struct Head {
    /// Method as sent.
    pub method: Method,
    /// Path as sent, in normal form, at most 8 KiB together with the query.
    pub path: String,
    /// Query as sent, without the question mark. Never logged: it may hold personal data.
    pub query: Option<String>,
    /// Headers, at most 16 KiB together.
    pub headers: HeaderMap,
    /// Address of the connection's other end.
    pub peer: IpAddr,
    /// The caller's `X-Request-Id` if it is well formed, else a new one.
    pub request_id: String,
}

impl Head {
    /// The value of a header that occurs exactly once and is visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next()?.to_str().ok()?;
        values.next().is_none().then_some(first)
    }
}

/// The body of a request.
#[derive(Debug)]
pub enum Entity {
    /// In memory.
    Bytes(Bytes),
    /// Too large for that.
    Upload(Uploaded),
}

impl From<Bytes> for Entity {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

/// What an endpoint gets besides its caller.
#[derive(Debug)]
pub struct Input {
    /// The request's head.
    pub head: Head,
    /// Body as received, byte for byte; of an upload, the JSON without its long strings.
    pub body: Bytes,
    /// What was taken out of a large body.
    pub upload: Option<Uploaded>,
    /// The body as JSON, for endpoints that take one; `Null` otherwise.
    pub document: serde_json::Value,
    /// Decoded `{name}` segments of the route's path, in order.
    pub params: Vec<(&'static str, String)>,
    /// When the request is judged, for rules about time that a member must keep.
    pub now: DateTime<Utc>,
}

impl Input {
    /// The decoded path segment `{name}`; empty when the route has none of that name.
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value)
    }
}
