//! Refusals of components: the check that failed, and why.

use std::fmt;

use crate::host::report::{Failure, FailureKind, one_line};

const REASON_BYTES_MAX: usize = 512;

/// A check of the examination of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// At most the largest size.
    Size,
    /// It parses and compiles, in time and memory.
    Compilation,
    /// It imports what its kind is granted.
    Imports,
    /// It exports exactly its kind, and `meta`.
    Exports,
    /// It needs no more memories and tables than it may have.
    Resources,
    /// Its functions have the types of the contract.
    Contract,
    /// `describe` answers, with what the host keeps.
    Description,
    /// Its configuration is as it declares, and it accepts it.
    Configuration,
    /// Two runs of each sample give the same output.
    Samples,
    /// No sample burns more than half of the fuel of a call, nor the largest more than all of it.
    Fuel,
}

impl Check {
    /// All checks, in the order in which they are made.
    pub const ALL: [Self; 10] = [
        Self::Size,
        Self::Compilation,
        Self::Imports,
        Self::Exports,
        Self::Resources,
        Self::Contract,
        Self::Description,
        Self::Configuration,
        Self::Samples,
        Self::Fuel,
    ];

    /// Its name in rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Compilation => "compilation",
            Self::Imports => "imports",
            Self::Exports => "exports",
            Self::Resources => "resources",
            Self::Contract => "contract",
            Self::Description => "description",
            Self::Configuration => "configuration",
            Self::Samples => "samples",
            Self::Fuel => "fuel",
        }
    }

    /// The check of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|check| check.as_str() == name)
    }
}

/// The reason a component was not accepted: one line for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    check: Option<Check>,
    is_transient: bool,
    reason: String,
}

impl Rejection {
    /// A refusal of the component, of which the check may be named by [`Rejection::at`].
    pub(crate) fn new(reason: impl AsRef<str>) -> Self {
        let reason = one_line(reason.as_ref(), REASON_BYTES_MAX);
        Self { check: None, is_transient: false, reason }
    }

    /// A refusal that says nothing of the component: the machine could not examine it now.
    pub(crate) fn transient(reason: impl AsRef<str>) -> Self {
        Self { is_transient: true, ..Self::new(reason) }
    }

    /// The refusal of a component of which a call failed, a transient one where the host could not run
    /// the call.
    pub(crate) fn failed(call: impl fmt::Display, failure: &Failure) -> Self {
        let reason = format!("{call} failed: {failure}");
        match failure.kind {
            FailureKind::Capacity => Self::transient(reason),
            _ => Self::new(reason),
        }
    }

    /// A refusal by this check.
    pub(crate) fn by(check: Check, reason: impl AsRef<str>) -> Self {
        Self { check: Some(check), ..Self::new(reason) }
    }

    /// The same as a refusal by this check.
    pub(crate) fn at(self, check: Check) -> Self {
        Self { check: Some(check), ..self }
    }

    /// True if the same component may be accepted later, such as when no process was to be had.
    pub const fn is_transient(&self) -> bool {
        self.is_transient
    }

    /// The check that failed; those before it have passed. `None` when the component was not examined.
    pub const fn check(&self) -> Option<Check> {
        self.check
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Rejection {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_found_by_its_name() {
        for check in Check::ALL {
            assert_eq!(Check::from_name(check.as_str()), Some(check));
        }
        assert_eq!(Check::from_name("colour"), None);
    }
}
