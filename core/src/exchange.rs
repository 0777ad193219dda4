//! What passes between a listener and the core: plain values, no server types.

use std::net::IpAddr;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde::Serialize;

use crate::error::{Code, Error, Result};
use crate::upload::Uploaded;

/// Header fields of most answers, those of the listener among them.
const FIELDS: usize = 12;
/// Bytes of most answers in JSON: an order, a quote, a sale.
const JSON_BYTES: usize = 2 * 1024;

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

/// An answer, ready to be written. The listener adds only connection headers and the length.
#[derive(Clone, Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: StatusCode,
    /// Headers of the answer, `Content-Length` excepted.
    pub headers: HeaderMap,
    /// Body, empty for 204 and 304.
    pub body: Bytes,
    /// Codes of the error envelope in `body`, for metrics and the access log.
    pub codes: Vec<Code>,
}

impl Reply {
    /// An answer without a body.
    pub fn empty(status: StatusCode) -> Self {
        let headers = HeaderMap::with_capacity(FIELDS);
        Self { status, headers, body: Bytes::new(), codes: Vec::new() }
    }

    /// A JSON answer.
    ///
    /// # Errors
    /// When `value` cannot be written as JSON, which is our fault.
    pub fn json(status: StatusCode, value: &impl Serialize) -> Result<Self> {
        let mut body = Vec::with_capacity(JSON_BYTES);
        serde_json::to_writer(&mut body, value)
            .map_err(|e| Error::internal("write the reply", e))?;
        Ok(Self::with_body(status, "application/json", body.into()))
    }

    /// An HTML page.
    pub fn html(status: StatusCode, page: String) -> Self {
        Self::with_body(status, "text/html; charset=utf-8", page.into())
    }

    /// An answer with a body of the given media type.
    pub fn with_body(status: StatusCode, media_type: &'static str, body: Bytes) -> Self {
        let mut reply = Self { body, ..Self::empty(status) };
        reply.headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        reply
    }

    /// Sets a header whose value we made; one that HTTP cannot carry is left out and logged.
    pub fn set(&mut self, name: &'static str, value: &str) {
        match HeaderValue::from_str(value) {
            Ok(value) => {
                self.headers.insert(HeaderName::from_static(name), value);
            }
            Err(_) => tracing::error!(header = name, "a reply header cannot be carried by HTTP"),
        }
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
