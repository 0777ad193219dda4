//! The report of one call: outcome and cost.

use std::fmt;

use rustix::io::Errno;
use wasmtime::{OutOfMemory, PoolConcurrencyLimitError};

use crate::bindings::log::Level;
use crate::bindings::types::PolicyError;

/// Longest message about a failure, in bytes.
const MESSAGE_BYTES_MAX: usize = 256;

/// One call: its outcome and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct CallReport<T> {
    /// The checked output, or the failure.
    pub outcome: Result<T, Failure>,
    /// Fuel burnt: the same for the same input on every machine.
    pub fuel: u64,
    /// Largest linear memory seen, in bytes.
    pub memory_bytes: usize,
    /// Lines the policy logged, within the limits.
    pub log: Vec<LogLine>,
    /// Number of lines dropped, being over the limits.
    pub log_dropped: u32,
}

/// A line a policy logged. It is the partner's text and may quote the input.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// Level set by the policy.
    pub level: Level,
    /// One line, without control characters.
    pub text: String,
}

/// A call without usable output. A refusal (`rejected`) is output, not a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its kind, for metrics and decisions.
    pub kind: FailureKind,
    /// For the operator; bounded, one line, may quote the policy.
    pub message: String,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// It crashed: a panic, an exhausted stack, a read out of bounds.
    Trap,
    /// It used up its fuel, or asked the host for too many signatures.
    Fuel,
    /// It ran past its deadline; unlike fuel this depends on the machine.
    Deadline,
    /// It wanted more memory than it may have.
    Memory,
    /// Its output breaks the contract.
    InvalidOutput,
    /// The host could not run the call: no free slot or memory, or a request larger than allowed. Not
    /// the policy's fault.
    Capacity,
    /// It returned an error.
    Error,
}

impl FailureKind {
    /// All kinds, for metrics that create every label at start.
    pub const ALL: [Self; 7] = [
        Self::Trap,
        Self::Fuel,
        Self::Deadline,
        Self::Memory,
        Self::InvalidOutput,
        Self::Capacity,
        Self::Error,
    ];

    /// Its label in metrics and audit rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Fuel => "fuel",
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::InvalidOutput => "answer",
            Self::Capacity => "capacity",
            Self::Error => "error",
        }
    }
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl AsRef<str>) -> Self {
        Self { kind, message: one_line(message.as_ref(), MESSAGE_BYTES_MAX) }
    }

    pub(crate) fn from_policy(error: &PolicyError) -> Self {
        let (case, text) = match error {
            PolicyError::InvalidConfig(text) => ("invalid-config", text),
            PolicyError::InvalidInput(text) => ("invalid-input", text),
            PolicyError::Unsupported(text) => ("unsupported", text),
            PolicyError::Internal(text) => ("internal", text),
        };
        Self::new(FailureKind::Error, format!("{case}: {text}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.message)
    }
}

impl std::error::Error for Failure {}

/// True for an error of the engine that says nothing of the component: no free slot, or no memory of the
/// system's.
pub(crate) fn is_of_machine(error: &wasmtime::Error) -> bool {
    error.is::<PoolConcurrencyLimitError>() || error.is::<Errno>() || error.is::<OutOfMemory>()
}

/// Foreign text made safe for a log or a terminal: at most `bytes_max`, no control characters (nor
/// the Unicode marks that reorder a line).
pub(crate) fn one_line(text: &str, bytes_max: usize) -> String {
    let reorders = |c: char| matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text[..text.floor_char_boundary(bytes_max)]
        .chars()
        .map(|c| if c.is_control() || reorders(c) { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_bounded_line() {
        assert_eq!(one_line("a\nb\u{1b}[31m\u{202e}c", 100), "a b [31m c");
        assert_eq!(one_line("ééé", 3), "é");
        assert_eq!(
            Failure::new(FailureKind::Trap, "x".repeat(5_000)).message.len(),
            MESSAGE_BYTES_MAX
        );
    }

    #[test]
    fn an_error_of_the_policy_keeps_its_case() {
        let failure = Failure::from_policy(&PolicyError::Unsupported("XOF".into()));
        assert_eq!(failure.to_string(), "error: unsupported: XOF");
    }
}
