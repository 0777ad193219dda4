//! Refusals of the operators' API: `{"error":"…"}` with a status of its own.

use std::borrow::Cow;
use std::fmt;

use http::StatusCode;

use super::Error;

/// A refusal of the operators' API: a status, and the reason in words.
#[derive(Debug)]
pub struct Denial {
    status: StatusCode,
    reason: Cow<'static, str>,
    /// Methods that the path has, for `Allow`.
    allow: Option<String>,
}

impl Denial {
    /// A refusal with any status.
    pub fn new(status: StatusCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { status, reason: reason.into(), allow: None }
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

    /// Status of the reply.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Value of the reply's `Allow`, which a 405 must carry (RFC 9110, section 15.5.6).
    pub fn allow(&self) -> Option<&str> {
        self.allow.as_deref()
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
