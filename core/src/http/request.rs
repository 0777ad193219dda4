//! A request as a listener passes it to the core: plain values, no server types.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::header::{COOKIE, HeaderMap};
use http::{Extensions, Method};

use crate::http::upload::body::UploadedBody;
use crate::platform::clock::Clock;
use crate::platform::error::Result;

/// Longest path with its query, in bytes (section 1 of the contract).
pub const TARGET_BYTES_MAX: usize = 8 * 1024;
/// Largest body of an ordinary endpoint, in bytes (section 1 of the contract).
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Largest form of a page, in bytes: the photos of both sides of a document.
pub const FORM_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest request id that is taken over.
const REQUEST_ID_BYTES_MAX: usize = 64;

/// The head of a request, as validated by a listener: framing checked, path normalized.
#[derive(Clone, Debug)]
pub struct Head {
    /// Method as sent.
    pub method: Method,
    /// Normalized path, at most 8 KiB together with the query.
    pub path: String,
    /// Query as sent, without the question mark. Never logged: it may hold personal data.
    pub query: Option<String>,
    /// Headers, at most 16 KiB together.
    pub headers: HeaderMap,
    /// Address of the client.
    pub peer: IpAddr,
    /// Subject of the client's TLS certificate, which has been verified; `None` without one.
    pub client_certificate: Option<Arc<str>>,
    /// The caller's `X-Request-Id` if it is well formed, else a new one.
    pub request_id: String,
}

impl Head {
    /// The value of a header that occurs exactly once and is visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        single_header(&self.headers, name)
    }

    /// The value of the first cookie of this name.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        let lines = self.headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).map(str::trim);
        pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }
}

/// The value of a header that occurs exactly once and is visible ASCII.
pub(crate) fn single_header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

/// The body of a request.
#[derive(Debug)]
pub enum Entity {
    /// In memory.
    Bytes(Bytes),
    /// A large body with images.
    Upload(UploadedBody),
}

impl Entity {
    /// The body; of an upload, the JSON with placeholders for its long strings.
    pub fn text(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Upload(upload) => &upload.text,
        }
    }
}

impl From<Bytes> for Entity {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

/// The body of a request whose caller is looked at first.
pub trait UnreadBody: Send {
    /// Reads the body; those of callers who are not `proven` have little memory together.
    ///
    /// # Errors
    /// The refusal of a body that is too large, too slow or malformed, or for which there is no memory.
    fn read(self, proven: bool) -> impl Future<Output = Result<Bytes>> + Send;
}

impl UnreadBody for Bytes {
    async fn read(self, _proven: bool) -> Result<Bytes> {
        Ok(self)
    }
}

/// The input of an endpoint, besides its caller.
#[derive(Debug)]
pub struct Input {
    /// The request's head.
    pub head: Head,
    /// Body as received, byte for byte; of an upload, the JSON with placeholders for its long strings.
    pub body: Bytes,
    /// The upload that a large body came as.
    pub upload: Option<UploadedBody>,
    /// The body as JSON, for endpoints that take one; `Null` otherwise.
    pub document: serde_json::Value,
    /// Decoded `{name}` segments of the route's path, in order.
    pub params: Vec<(&'static str, String)>,
    /// Time of the request, for rules about time.
    pub now: DateTime<Utc>,
    /// Values that the listener has proven already, such as the operator.
    pub proven: Extensions,
}

impl Input {
    /// The decoded path segment `{name}`; empty when the route has none of that name.
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value)
    }

    /// The same request with this JSON as its body.
    pub fn with_document(&self, document: serde_json::Value) -> Self {
        Self {
            head: self.head.clone(),
            body: document.to_string().into(),
            upload: None,
            document,
            params: self.params.clone(),
            now: self.now,
            proven: self.proven.clone(),
        }
    }
}

/// The caller's id if it matches `[A-Za-z0-9._-]{1,64}`, else a new UUIDv7 (section 1.4 of the
/// contract).
pub fn request_id(sent: Option<&[u8]>, clock: &Clock) -> String {
    let fits = |id: &&[u8]| {
        (1..=REQUEST_ID_BYTES_MAX).contains(&id.len())
            && id.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
    };
    match sent.filter(fits).and_then(|id| std::str::from_utf8(id).ok()) {
        Some(id) => id.to_owned(),
        // Without entropy nothing else works either; the answer still needs an id of some kind.
        None => {
            clock.uuid().map_or_else(|_| format!("t{}", clock.monotonic_ns()), |id| id.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_well_formed_id_is_taken_over() {
        let clock = Clock::system();
        for id in ["a", "A.b_c-9", &"x".repeat(REQUEST_ID_BYTES_MAX)] {
            assert_eq!(request_id(Some(id.as_bytes()), &clock), id);
        }
    }

    #[test]
    fn any_other_id_is_replaced_by_a_uuid() {
        let clock = Clock::system();
        let long = "x".repeat(REQUEST_ID_BYTES_MAX + 1);
        for sent in [None, Some(""), Some("a b"), Some("a\u{e4}"), Some("a;b"), Some(long.as_str())]
        {
            let id = request_id(sent.map(str::as_bytes), &clock);
            assert_eq!(id.len(), 36, "{sent:?} gave {id}");
            assert_eq!(id.as_bytes()[14], b'7');
        }
    }
}
