//! Requests that a policy must answer at admission: ordinary ones, and the edges of the input range.

use crate::bindings::types::CallContext;
use crate::host::report::{CallReport, FailureKind};

/// 2026-01-01T00:00:00Z.
pub(crate) const NOW: u32 = 1_767_225_600;

/// The context of an admission without an edge: in the form of a live one.
pub(crate) fn context() -> CallContext {
    CallContext {
        partner: "acme".into(),
        request_id: "019b76da-a800-7c3e-9a51-0d5c4b7f2e61".into(),
        now: NOW,
        rehearsal: false,
        attributes: Vec::new(),
    }
}

/// Fuel that probes burnt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeFuel {
    /// The most that any burnt.
    pub(crate) most: u64,
    /// The most that one burnt that is not as large as a request can be.
    pub(crate) most_of_usual: u64,
}

/// Runs every probe twice; the most fuel that one burnt. `is_largest` tells those that are as large
/// as a request can be.
///
/// # Errors
/// The probe that failed, or gave two outcomes.
pub(crate) fn burnt_fuel<P, T: PartialEq>(
    probes: &[P],
    is_largest: impl Fn(&P) -> bool,
    call: impl Fn(&P) -> CallReport<T>,
) -> Result<ProbeFuel, String> {
    let mut fuel = ProbeFuel::default();
    for (index, probe) in probes.iter().enumerate() {
        let (first, second) = (call(probe), call(probe));
        match &first.outcome {
            // A policy need not cover every probe.
            Ok(_) => {}
            Err(failure) if failure.kind == FailureKind::Error => {}
            Err(failure) => return Err(format!("sample {} failed: {failure}", index + 1)),
        }
        if first != second {
            return Err(format!("sample {} ran differently twice", index + 1));
        }
        fuel.most = fuel.most.max(first.fuel);
        if !is_largest(probe) {
            fuel.most_of_usual = fuel.most_of_usual.max(first.fuel);
        }
    }
    Ok(fuel)
}
