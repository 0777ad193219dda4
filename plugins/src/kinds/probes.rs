//! Requests that a policy must answer at admission: ordinary ones, and the edges of the input range.

use super::request_size::RequestSize;
use crate::bindings::types::CallContext;
use crate::host::rejection::Rejection;
use crate::host::report::{CallReport, Failure, FailureKind};

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

/// Size of the largest probe, in bytes.
pub(crate) fn largest_bytes<P: RequestSize>(probes: &[P]) -> usize {
    probes.iter().map(RequestSize::size_bytes).max().unwrap_or(0)
}

/// Runs every probe twice; the most fuel that one burnt. `is_largest` tells those that are as large
/// as a request can be.
///
/// # Errors
/// The probe that failed, or gave two outcomes; transient where the host could not run it.
pub(crate) fn burnt_fuel<P, T: PartialEq>(
    probes: &[P],
    is_largest: impl Fn(&P) -> bool,
    call: impl Fn(&P) -> CallReport<T>,
) -> Result<ProbeFuel, Rejection> {
    let mut fuel = ProbeFuel::default();
    for (index, probe) in probes.iter().enumerate() {
        let (first, second) = (call(probe), call(probe));
        let sample = format!("sample {}", index + 1);
        let failed = |failure: &Failure| Rejection::failed(&sample, failure);
        match (&first.outcome, &second.outcome) {
            (_, Err(failure)) if failure.kind == FailureKind::Capacity => {
                return Err(failed(failure));
            }
            // A policy need not cover every probe.
            (Err(failure), _) if failure.kind != FailureKind::Error => return Err(failed(failure)),
            _ => {}
        }
        if first != second {
            return Err(Rejection::new(format!("{sample} ran differently twice")));
        }
        fuel.most = fuel.most.max(first.fuel);
        if !is_largest(probe) {
            fuel.most_of_usual = fuel.most_of_usual.max(first.fuel);
        }
    }
    Ok(fuel)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::host::call::not_called;

    fn report(failure: Option<FailureKind>) -> CallReport<()> {
        match failure {
            Some(kind) => not_called(Failure::new(kind, "it failed")),
            None => {
                CallReport { outcome: Ok(()), ..not_called(Failure::new(FailureKind::Trap, "")) }
            }
        }
    }

    #[test]
    fn a_probe_that_the_host_could_not_run_says_nothing_of_the_policy() {
        for (kind, is_transient) in [(FailureKind::Capacity, true), (FailureKind::Trap, false)] {
            for failing in [0, 1] {
                let calls = Cell::new(0);
                let refused = burnt_fuel(
                    &[()],
                    |_| false,
                    |_| {
                        let number = calls.replace(calls.get() + 1);
                        report((number == failing).then_some(kind))
                    },
                );
                assert_eq!(refused.unwrap_err().is_transient(), is_transient, "{kind:?} {failing}");
            }
        }
        assert!(burnt_fuel(&[()], |_| false, |_| report(None)).is_ok());
    }
}
