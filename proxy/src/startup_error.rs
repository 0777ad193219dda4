//! Why a command cannot do what it was told.

use std::fmt;

use rampart_core::StartError;
use rampart_core::platform::db::DatabaseError;

/// One sentence for the operator.
#[derive(Debug)]
pub(crate) struct StartupError {
    sentence: String,
    /// True for what a walk or a check has found wrong.
    is_finding: bool,
}

impl fmt::Display for StartupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for StartupError {}

impl From<String> for StartupError {
    fn from(sentence: String) -> Self {
        Self { sentence, is_finding: false }
    }
}

impl From<&str> for StartupError {
    fn from(sentence: &str) -> Self {
        sentence.to_owned().into()
    }
}

impl From<StartError> for StartupError {
    fn from(error: StartError) -> Self {
        error.to_string().into()
    }
}

impl From<DatabaseError> for StartupError {
    fn from(error: DatabaseError) -> Self {
        error.to_string().into()
    }
}

/// Makes failures of any kind sentences for the operator.
pub(crate) trait Context<T> {
    /// Says `what` could not be done, and the failure as the reason.
    fn context(self, what: impl fmt::Display) -> Result<T, StartupError>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, what: impl fmt::Display) -> Result<T, StartupError> {
        self.map_err(|why| format!("{what}: {why}").into())
    }
}

impl StartupError {
    /// The failure of a call over HTTP: `what` does not answer, and the innermost cause, without its URL.
    pub(crate) fn unanswered(what: impl fmt::Display, error: reqwest::Error) -> Self {
        if error.is_timeout() {
            return format!("{what}: nothing came in time").into();
        }
        let error = error.without_url();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        format!("{what}: {cause}").into()
    }

    /// A finding of a walk or a check: what is wrong, in a sentence or a line each.
    pub(crate) fn finding(sentence: String) -> Self {
        Self { sentence, is_finding: true }
    }

    /// Exit status of a command that ends with it: 1 for what a walk or a check has found wrong, 2 for
    /// what the operator can mend.
    pub(crate) fn status(&self) -> u8 {
        if self.is_finding { 1 } else { 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_not_shown_where_it_is_all_that_is_known() {
        let failed = http::Response::builder().status(500).body("").unwrap();
        let error = reqwest::Response::from(failed).error_for_status().unwrap_err();
        assert!(error.url().is_some() && error.to_string().contains("http://"), "{error}");
        let shown = StartupError::unanswered("the page", error).to_string();
        assert!(shown.starts_with("the page: ") && !shown.contains("://"), "{shown}");
    }
}
