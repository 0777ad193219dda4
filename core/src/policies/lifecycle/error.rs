//! Errors of lifecycle operations.

use rampart_plugins::Rejection;

use crate::platform::error::Error;

/// The reason an operation had no effect.
#[derive(Debug)]
pub(crate) enum LifecycleError {
    /// The component or the settings were refused; the reason for the operator.
    Invalid(String),
    /// The examination has refused the component.
    Rejected(Rejection),
    /// The named object does not exist.
    NotFound(&'static str),
    /// The current state forbids it.
    Conflict(&'static str),
    /// An internal error.
    Internal(Error),
}

impl From<Error> for LifecycleError {
    fn from(error: Error) -> Self {
        Self::Internal(error)
    }
}

impl From<sqlx::Error> for LifecycleError {
    fn from(error: sqlx::Error) -> Self {
        Self::Internal(error.into())
    }
}
