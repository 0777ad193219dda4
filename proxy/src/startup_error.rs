//! Why a command cannot do what it was told.

use std::fmt;

/// One sentence for the operator.
#[derive(Debug)]
pub(crate) struct StartupError(String);

impl fmt::Display for StartupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartupError {}

impl From<String> for StartupError {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

impl StartupError {
    /// `what` could not be done because of `why`.
    pub(crate) fn new(what: &str, why: &dyn fmt::Display) -> Self {
        Self(format!("{what}: {why}"))
    }
}
