//! A reply as the core hands it to a listener.

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use ring::digest;
use serde::Serialize;

use crate::platform::error::{Code, Error, Result};

/// Header fields of most answers, those of the listener among them.
const FIELDS: usize = 12;
/// Bytes of most answers in JSON: an order, a quote, a sale.
const JSON_BYTES: usize = 2 * 1024;

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

/// The strong tag of a body: half of its SHA-256.
pub(crate) fn entity_tag(body: &[u8]) -> HeaderValue {
    let digest = digest::digest(&digest::SHA256, body);
    let tag = format!("\"{}\"", hex::encode(&digest.as_ref()[..16]));
    // Digits and quotes are always a header's value.
    HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""))
}
