//! Errors, as reported to the partner and to the log.
//!
//! A [`Refusal`] is the partner's error: all codes of the catalogue that one stage found.
//! A [`Denial`] is the operator's error: a status and a reason.
//! A [`Failure`] is an internal error: its cause is logged once, with the request id, and the
//! partner gets ER999 without details.

mod catalogue;
mod denial;
pub mod sqlstate;

use std::borrow::Cow;
use std::error::Error as StdError;

use http::StatusCode;

pub use self::catalogue::Code;
pub use self::denial::Denial;
use self::sqlstate::Retryable as _;
use crate::platform::rate_limit::Decision;

/// Shorthand for results of the core.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Concatenates lists of codes in a declaration; `N` is their total length.
pub const fn concat_codes<const N: usize>(lists: &[&[Code]]) -> [Code; N] {
    let mut all = [Code::GeneralError; N];
    let (mut at, mut list) = (0, 0);
    while list < lists.len() {
        let mut code = 0;
        while code < lists[list].len() {
            all[at] = lists[list][code];
            at += 1;
            code += 1;
        }
        list += 1;
    }
    assert!(at == N, "N is not the number of codes");
    all
}

/// Seconds after which a caller may try again when a dependency is down.
const UNAVAILABLE_RETRY_SECONDS: u64 = 2;

/// The reason a request did not succeed.
#[derive(Debug)]
pub enum Error {
    /// The request was refused; nothing has changed.
    Refused(Box<Refusal>),
    /// An operator's request cannot be granted; nothing has changed.
    Denied(Box<Denial>),
    /// An internal error.
    Failed(Box<Failure>),
}

/// Codes of one stage of checks, in the order found.
#[derive(Debug, Default)]
pub struct Refusal {
    violations: Vec<Violation>,
    status: Option<StatusCode>,
    retry_after_seconds: Option<u64>,
    rate_limit: Option<(&'static str, Decision)>,
    by_sender: bool,
}

/// A code of a refusal.
#[derive(Debug)]
pub struct Violation {
    /// The code.
    pub code: Code,
    /// The request's member that violates the rule, if it is one.
    pub field: Option<&'static str>,
    /// A bound or a reason, for the solution's text.
    pub detail: Option<Cow<'static, str>>,
}

/// An internal error, or one of a dependency.
#[derive(Debug)]
pub struct Failure {
    /// The failed operation, for the log.
    pub doing: &'static str,
    /// True if a dependency is down or overloaded: 503 instead of 500.
    pub unavailable: bool,
    by_sender: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Refusal {
    /// A refusal without a violation.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a code; the first detail given for a code is kept.
    pub fn add(&mut self, code: Code, detail: Option<Cow<'static, str>>) {
        self.add_violation(Violation { code, field: None, detail });
    }

    /// Adds a code by a member of the request.
    pub fn add_of_member(&mut self, code: Code, name: &'static str) {
        self.add_violation(Violation { code, field: Some(name), detail: None });
    }

    /// Adds a violation; the first one of a code is kept.
    pub fn add_violation(&mut self, violation: Violation) {
        if !self.has(violation.code) {
            self.violations.push(violation);
        }
    }

    /// True if the code was added already.
    pub fn has(&self, code: Code) -> bool {
        self.violations.iter().any(|violation| violation.code == code)
    }

    /// True if no code was added.
    pub fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    /// The codes, in order.
    pub fn codes(&self) -> impl Iterator<Item = Code> + '_ {
        self.violations.iter().map(|violation| violation.code)
    }

    /// Seconds after which the request may be retried, if known.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after_seconds
    }

    /// The rate limit that ran out, by the name of its bucket, if one did.
    pub(crate) fn rate_limit(&self) -> Option<(&'static str, Decision)> {
        self.rate_limit
    }

    /// True for an error of the server that the sender has caused.
    pub(crate) fn by_sender(&self) -> bool {
        self.by_sender
    }

    /// The violations, in order.
    pub(crate) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// HTTP status: that of the first code, unless the contract defines another for this case.
    pub(crate) fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| {
            let code = self.violations.first().map_or(500, |violation| violation.code.status());
            StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        })
    }
}

impl Failure {
    /// A failure of ours without a cause.
    const fn new(doing: &'static str) -> Self {
        Self { doing, unavailable: false, by_sender: false, source: None }
    }

    /// True if the sender has used up its own share: no failure of ours.
    pub(crate) const fn by_sender(&self) -> bool {
        self.by_sender
    }

    /// The refusal sent to the partner: ER999 without details.
    pub(crate) fn refusal(&self) -> Refusal {
        let mut refusal = Refusal::new();
        refusal.add(Code::GeneralError, None);
        refusal.by_sender = self.by_sender;
        if self.unavailable {
            refusal.status = Some(StatusCode::SERVICE_UNAVAILABLE);
            refusal.retry_after_seconds = Some(UNAVAILABLE_RETRY_SECONDS);
        }
        refusal
    }
}

impl Error {
    /// A refusal with a detail (a member's name, a bound) added to the solution's text.
    pub fn with_detail(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let mut refusal = Refusal::new();
        refusal.add(code, Some(detail.into()));
        refusal.into()
    }

    /// A refusal by a member of the request.
    pub fn of_member(code: Code, name: &'static str) -> Self {
        let mut refusal = Refusal::new();
        refusal.add_of_member(code, name);
        refusal.into()
    }

    /// A refusal by a member of the request, with a detail for the solution's text.
    pub fn of_member_with(code: Code, name: &'static str, detail: &'static str) -> Self {
        let mut refusal = Refusal::new();
        let detail = Some(detail.into());
        refusal.add_violation(Violation { code, field: Some(name), detail });
        refusal.into()
    }

    /// A refusal with another status than the code's own, as the contract defines for some cases.
    pub fn with_status(
        code: Code,
        status: StatusCode,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        let mut refusal = Refusal::new();
        refusal.add(code, Some(detail.into()));
        refusal.status = Some(status);
        refusal.into()
    }

    /// A refusal that the sandbox simulates, with the seconds to wait where its status has them.
    pub(crate) fn simulated(code: Code, status: StatusCode) -> Self {
        let mut refusal = Refusal::new();
        refusal.add(code, Some("simulated".into()));
        refusal.status = Some(status);
        let can_wait = matches!(status.as_u16(), 429 | 503);
        refusal.retry_after_seconds = can_wait.then_some(UNAVAILABLE_RETRY_SECONDS);
        refusal.by_sender = true;
        refusal.into()
    }

    /// Code 920 with the limit that ran out, by the name of its bucket, and the seconds to wait.
    pub fn rate_limited(bucket: &'static str, decision: Decision) -> Self {
        let mut refusal = Refusal::new();
        refusal.add(Code::RateLimited, None);
        refusal.retry_after_seconds = Some(decision.retry_after_seconds.max(1));
        refusal.rate_limit = Some((bucket, decision));
        refusal.into()
    }

    /// An internal error: 500.
    pub fn internal(doing: &'static str, source: impl StdError + Send + Sync + 'static) -> Self {
        Self::Failed(Box::new(Failure { source: Some(source.into()), ..Failure::new(doing) }))
    }

    /// An invariant does not hold: 500.
    pub fn invariant(doing: &'static str) -> Self {
        Self::Failed(Box::new(Failure::new(doing)))
    }

    /// A dependency is down, or load is shed: 503 with `Retry-After`.
    pub fn unavailable(doing: &'static str) -> Self {
        Self::Failed(Box::new(Failure { unavailable: true, ..Failure::new(doing) }))
    }

    /// The sender has used up its own share of something: 503 with `Retry-After`, and no failure of
    /// ours.
    pub fn share_used_up(doing: &'static str) -> Self {
        let failure = Failure { unavailable: true, by_sender: true, ..Failure::new(doing) };
        Self::Failed(Box::new(failure))
    }

    /// True if a dependency is down or overloaded.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Failed(failure) if failure.unavailable)
    }

    /// True for a refusal that the same request would meet again: no rate, and no fault of ours.
    pub(crate) fn is_final(&self) -> bool {
        let Self::Refused(refusal) = self else { return false };
        !refusal.has(Code::RateLimited) && !refusal.status().is_server_error()
    }

    /// True if a lock was not free in time.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        self.database_error().is_some_and(sqlstate::is_lock_timeout)
    }

    /// True if the server ended this one statement, at its timeout or because of a deadlock: it
    /// answers, and others may succeed.
    pub(crate) fn is_of_one_statement(&self) -> bool {
        self.is_retryable() || self.database_error().is_some_and(sqlstate::is_canceled)
    }

    fn database_error(&self) -> Option<&sqlx::Error> {
        let Self::Failed(failure) = self else { return None };
        failure.source.as_deref().and_then(|source| source.downcast_ref())
    }

    /// True if this is a refusal with the code.
    pub fn is(&self, code: Code) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.has(code))
    }
}

/// The text of a database error: the server's own message where it is one, without the line of
/// Postgres's source that sqlx adds.
pub(crate) fn database_message(error: &sqlx::Error) -> Cow<'_, str> {
    match error {
        sqlx::Error::Database(error) => error.message().into(),
        // Ours: there is no such driver.
        sqlx::Error::AnyDriverError(error) => error.to_string().into(),
        other => other.to_string().into(),
    }
}

/// Formats the causes of a failure, outermost first, in one line.
pub(crate) struct Chain<'a>(pub(crate) &'a Failure);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use sqlx::Error::{AnyDriverError, Database};
        let mut cause = self.0.source.as_deref().map(|e| e as &dyn StdError);
        let mut first = true;
        while let Some(error) = cause {
            if !first {
                f.write_str(": ")?;
            }
            if let Some(error @ (Database(_) | AnyDriverError(_))) = error.downcast_ref() {
                return f.write_str(&database_message(error));
            }
            write!(f, "{error}")?;
            first = false;
            cause = error.source();
        }
        Ok(())
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refusal) => {
                let codes: Vec<_> = refusal.codes().map(Code::as_str).collect();
                write!(f, "refused with {}", codes.join(", "))
            }
            Self::Denied(denial) => denial.fmt(f),
            Self::Failed(failure) if failure.source.is_none() => {
                write!(f, "could not {}", failure.doing)
            }
            Self::Failed(failure) => write!(f, "could not {}: {}", failure.doing, Chain(failure)),
        }
    }
}

impl StdError for Error {}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<Code> for Error {
    fn from(code: Code) -> Self {
        let mut refusal = Refusal::new();
        refusal.add(code, None);
        refusal.into()
    }
}

impl From<crate::platform::clock::NoEntropy> for Error {
    fn from(error: crate::platform::clock::NoEntropy) -> Self {
        Self::internal("draw random bytes", error)
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if sqlstate::is_unstorable_text(&error) {
            return Self::with_detail(Code::RequestMalformed, "a text holds the character U+0000");
        }
        if sqlstate::is_unstorable_time(&error) {
            return Self::with_detail(Code::RequestMalformed, "a time is out of range");
        }
        // One that was given up to end a deadlock has changed nothing either.
        let unavailable = sqlstate::is_unavailable(&error) || error.is_retryable();
        let by_sender = sqlstate::is_share_used_up(&error);
        let source = Some(error.into());
        let doing = "use the database";
        Self::Failed(Box::new(Failure { doing, unavailable, by_sender, source }))
    }
}

/// Maps a violation of a named constraint to a code, so that Postgres alone decides uniqueness.
pub trait OnConstraint<T> {
    /// Maps a violation of `constraint` to `code`.
    ///
    /// # Errors
    /// `code` for that constraint, the database's error otherwise.
    fn on_constraint(self, constraint: &str, code: Code) -> Result<T>;
}

impl<T> OnConstraint<T> for std::result::Result<T, sqlx::Error> {
    fn on_constraint(self, constraint: &str, code: Code) -> Result<T> {
        self.map_err(|error| match error.as_database_error().and_then(|e| e.constraint()) {
            Some(name) if name == constraint => code.into(),
            _ => error.into(),
        })
    }
}
