//! A reply as the core passes it to a listener.

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;

use crate::http::event_stream::EventStream;
use crate::http::file_stream::FileStream;
use crate::platform::crypto::sha256;
use crate::platform::error::{Code, Error, Result};
use crate::platform::rate_limit::Decision;

/// Initial capacity for header fields, including those of the listener.
const HEADERS_CAPACITY: usize = 16;
/// Initial capacity of the headers about rate limits.
const RATE_LIMITS_CAPACITY: usize = 64;
/// Initial capacity of a JSON body: that of most orders and quotes.
const JSON_CAPACITY: usize = 2 * 1024;

/// A response: complete, or one that goes on with events or with a file. The listener adds only connection headers
/// and the length.
#[derive(Clone, Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: StatusCode,
    /// Headers, except `Content-Length`.
    pub headers: HeaderMap,
    /// Body, empty for 204 and 304.
    pub body: Bytes,
    /// Codes of the error envelope in `body`, for metrics and the access log.
    pub codes: Vec<Code>,
    /// True for an error of the server that its sender caused: its share is used up, or it asked the
    /// sandbox for the error.
    pub by_sender: bool,
    /// Events that follow in the place of a body, as they happen.
    pub events: Option<EventStream>,
    /// File that follows in the place of a body, as it is made.
    pub file: Option<FileStream>,
}

impl Reply {
    /// A reply without a body.
    pub fn empty(status: StatusCode) -> Self {
        let headers = HeaderMap::with_capacity(HEADERS_CAPACITY);
        let (body, codes) = (Bytes::new(), Vec::new());
        Self { status, headers, body, codes, by_sender: false, events: None, file: None }
    }

    /// Leads to another page by GET, so that a reload repeats nothing.
    pub fn see_other(location: &str) -> Self {
        let mut reply = Self::empty(StatusCode::SEE_OTHER);
        reply.set("location", location);
        reply
    }

    /// A JSON reply.
    ///
    /// # Errors
    /// An internal error when `value` cannot be serialized.
    pub fn json(status: StatusCode, value: &impl Serialize) -> Result<Self> {
        let mut body = Vec::with_capacity(JSON_CAPACITY);
        serde_json::to_writer(&mut body, value)
            .map_err(|e| Error::internal("write the reply", e))?;
        Ok(Self::with_body(status, "application/json", body.into()))
    }

    /// An HTML page.
    pub fn html(status: StatusCode, page: String) -> Self {
        Self::with_body(status, "text/html; charset=utf-8", page.into())
    }

    /// A reply with a body of this media type.
    pub fn with_body(status: StatusCode, media_type: &'static str, body: Bytes) -> Self {
        let mut reply = Self { body, ..Self::empty(status) };
        reply.headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        reply
    }

    /// Sets a header; an invalid value is logged and left out.
    pub fn set(&mut self, name: &'static str, value: impl TryInto<HeaderValue>) {
        match value.try_into() {
            Ok(value) => {
                self.headers.insert(HeaderName::from_static(name), value);
            }
            Err(_) => tracing::error!(header = name, "a reply header cannot be carried by HTTP"),
        }
    }
}

impl Reply {
    /// Sets `RateLimit-Policy` and `RateLimit` to these decisions, by the names of their buckets.
    pub(crate) fn set_rate_limits(&mut self, decisions: &[(&'static str, Decision)]) {
        self.set("ratelimit-policy", listed(decisions, Decision::write_policy));
        self.set(RATE_LIMIT, listed(decisions, Decision::write_limit));
    }

    /// True if it says already which limit ran out.
    pub(crate) fn has_rate_limits(&self) -> bool {
        self.headers.contains_key(RATE_LIMIT)
    }
}

const RATE_LIMIT: &str = "ratelimit";

/// The decision of each bucket, as a comma-separated header value.
fn listed(
    decisions: &[(&'static str, Decision)],
    write: fn(&Decision, &str, &mut String),
) -> String {
    let mut list = String::with_capacity(RATE_LIMITS_CAPACITY);
    for (bucket, decision) in decisions {
        if !list.is_empty() {
            list.push_str(", ");
        }
        write(decision, bucket, &mut list);
    }
    list
}

/// The strong entity tag of a body: half of its SHA-256.
pub fn entity_tag(body: &[u8]) -> HeaderValue {
    let tag = format!("\"{}\"", hex::encode(&sha256(body)[..16]));
    // Hexadecimal digits and quotes are a valid header value.
    HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""))
}
