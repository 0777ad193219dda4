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

/// Runs every probe twice; the most fuel that one burnt.
///
/// # Errors
/// The probe that failed, or gave two outcomes.
pub(crate) fn burnt_fuel<P, T: PartialEq>(
    probes: &[P],
    call: impl Fn(&P) -> CallReport<T>,
) -> Result<u64, String> {
    let mut fuel = 0;
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
        fuel = fuel.max(first.fuel);
    }
    Ok(fuel)
}
