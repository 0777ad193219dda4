//! Refusals of the operators' API: `{"error":"…"}` with a status of its own.

use std::borrow::Cow;
use std::fmt;

use http::StatusCode;

use super::{Error, UNAVAILABLE_RETRY_SECONDS};
use crate::platform::rate_limit::Decision;

/// A refusal of the operators' API: a status, and the reason in words.
#[derive(Debug)]
pub struct Denial {
    status: StatusCode,
    reason: Cow<'static, str>,
    /// Methods that the path has, for `Allow`.
    allow: Option<String>,
    /// Seconds until another try makes sense, for `Retry-After`.
    retry_after_seconds: Option<u64>,
}

impl Denial {
    /// A refusal with any status; a 503 says when to try again.
    pub fn new(status: StatusCode, reason: impl Into<Cow<'static, str>>) -> Self {
        let is_unavailable = status == StatusCode::SERVICE_UNAVAILABLE;
        let retry_after_seconds = is_unavailable.then_some(UNAVAILABLE_RETRY_SECONDS);
        Self { status, reason: reason.into(), allow: None, retry_after_seconds }
    }

    /// 400: the body cannot be parsed.
    pub fn malformed(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    /// 404: `subject`, which the path names, does not exist.
    pub fn not_found(subject: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("no such {subject}"))
    }

    /// 405: the path has other methods, these.
    pub fn method_not_allowed(allow: String) -> Self {
        let refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("use {allow}"));
        Self { allow: Some(allow), ..refusal }
    }

    /// 409: the present state forbids it.
    pub fn conflict(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, reason)
    }

    /// 422: a member or a parameter is not valid.
    pub fn unprocessable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, reason)
    }

    /// 429: the rate is exceeded, as the decision says.
    pub fn rate_limited(reason: &'static str, decision: Decision) -> Self {
        let refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, reason);
        Self { retry_after_seconds: Some(decision.retry_after_seconds.max(1)), ..refusal }
    }

    /// Status of the reply.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Value of the reply's `Allow`, which a 405 must carry (RFC 9110, section 15.5.6).
    pub fn allow(&self) -> Option<&str> {
        self.allow.as_deref()
    }

    /// Value of the reply's `Retry-After`, in seconds, which 429 and 503 carry.
    pub const fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after_seconds
    }

    /// Text of the reply's `error`.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl From<Denial> for Error {
    fn from(denial: Denial) -> Self {
        Self::Denied(Box::new(denial))
    }
}
