//! Why a command cannot do what it was told.

use std::fmt;

use rampart_core::StartError;
use rampart_core::platform::db::DatabaseError;

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

impl From<&str> for StartupError {
    fn from(sentence: &str) -> Self {
        Self(sentence.to_owned())
    }
}

impl From<StartError> for StartupError {
    fn from(error: StartError) -> Self {
        Self(error.to_string())
    }
}

impl From<DatabaseError> for StartupError {
    fn from(error: DatabaseError) -> Self {
        Self(error.to_string())
    }
}

impl StartupError {
    /// `what` could not be done because of `why`.
    pub(crate) fn new(what: &str, why: &dyn fmt::Display) -> Self {
        Self(format!("{what}: {why}"))
    }
}
