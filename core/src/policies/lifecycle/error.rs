//! Errors of lifecycle operations.

use http::StatusCode;
use rampart_plugins::Rejection;

use crate::platform::error::{Denial, Error};

/// The reason an operation had no effect.
#[derive(Debug)]
pub enum LifecycleError {
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

impl From<LifecycleError> for Error {
    fn from(error: LifecycleError) -> Self {
        match error {
            LifecycleError::Invalid(reason) => Denial::unprocessable(reason).into(),
            LifecycleError::Rejected(rejection) => {
                // It says nothing of the component, which may be accepted at the next try.
                let status = match rejection.is_transient() {
                    true => StatusCode::SERVICE_UNAVAILABLE,
                    false => StatusCode::UNPROCESSABLE_ENTITY,
                };
                Denial::new(status, rejection.to_string()).into()
            }
            LifecycleError::NotFound(subject) => Denial::not_found(subject).into(),
            LifecycleError::Conflict(reason) => Denial::conflict(reason).into(),
            LifecycleError::Internal(error) => error,
        }
    }
}
