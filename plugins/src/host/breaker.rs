//! A circuit breaker: skips calls of a failing policy, and probes it after a pause.

use std::sync::{Mutex, PoisonError};

use crate::host::report::FailureKind;

/// A circuit breaker for one policy of one partner; share it between threads.
///
/// Time is an argument, in monotonic milliseconds, so that a test can set it. While the breaker is
/// open the caller handles a call as failed, without making it.
///
/// Only consecutive failures count: a policy that succeeds in between fails for some input, not as a
/// whole. Failures that exhaust a limit (fuel, deadline, memory) take time from other tenants, so
/// half as many within the pause open it, even with successes in between.
#[derive(Debug)]
pub struct Breaker {
    failures_max: u32,
    pause_ms: u64,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed {
        /// Failures since the last success.
        consecutive: u32,
        /// Failures that exhausted a limit since `since_ms`, for as long as the pause.
        costly: u32,
        since_ms: u64,
    },
    Open {
        until_ms: u64,
    },
    /// One call probes the policy. Without an outcome by `until_ms`, the next call may probe.
    Probing {
        since_ms: u64,
        until_ms: u64,
    },
}

impl Breaker {
    /// Default number of consecutive failures that open the breaker.
    pub const FAILURES_MAX: u32 = 5;
    /// Default time that it stays open, in milliseconds.
    pub const PAUSE_MS: u64 = 10_000;

    /// A closed breaker that opens after `failures_max` consecutive failures (at least one), or half as
    /// many, rounded up, that exhausted a limit within `pause_ms`.
    pub const fn new(failures_max: u32, pause_ms: u64) -> Self {
        Self { failures_max, pause_ms, state: Mutex::new(State::CLOSED) }
    }

    /// True if the policy may be called now. The outcome must then be [recorded](Self::record).
    pub fn allows(&self, now_ms: u64) -> bool {
        self.transition(|state| match state {
            State::Closed { .. } => (state, true),
            State::Open { until_ms } | State::Probing { until_ms, .. } if now_ms < until_ms => {
                (state, false)
            }
            State::Open { .. } | State::Probing { .. } => {
                let until_ms = now_ms.saturating_add(self.pause_ms);
                (State::Probing { since_ms: now_ms, until_ms }, true)
            }
        })
    }

    /// Records the outcome of a call that was allowed at `began_ms`; true if this one opened the breaker,
    /// so that it is logged once.
    ///
    /// [`FailureKind::Capacity`] counts neither way: the policy did not run.
    pub fn record(&self, began_ms: u64, now_ms: u64, failure: Option<FailureKind>) -> bool {
        let open = State::Open { until_ms: now_ms.saturating_add(self.pause_ms) };
        self.transition(|state| match (state, failure) {
            // It began before the breaker opened, or is a probe that another one has replaced.
            (State::Probing { since_ms, .. }, _) if began_ms < since_ms => (state, false),
            (State::Probing { .. }, None) => (State::CLOSED, false),
            (State::Closed { costly, since_ms, .. }, None) => {
                (State::Closed { consecutive: 0, costly, since_ms }, false)
            }
            (State::Probing { .. }, Some(FailureKind::Capacity)) => {
                (State::Open { until_ms: now_ms }, false)
            }
            (State::Probing { .. }, Some(_)) => (open, false),
            (State::Closed { consecutive, costly, since_ms }, Some(kind))
                if kind != FailureKind::Capacity =>
            {
                let consecutive = consecutive.saturating_add(1);
                let window_over = now_ms.saturating_sub(since_ms) >= self.pause_ms;
                let (costly, since_ms) = match (is_costly(kind), window_over) {
                    (false, _) => (costly, since_ms),
                    (true, false) => (costly.saturating_add(1), since_ms),
                    (true, true) => (1, now_ms),
                };
                let stays_closed =
                    consecutive < self.failures_max && costly < self.failures_max.div_ceil(2);
                match stays_closed {
                    true => (State::Closed { consecutive, costly, since_ms }, false),
                    false => (open, true),
                }
            }
            // A call that began before the breaker opened is not evidence of recovery.
            (State::Open { .. }, _) | (State::Closed { .. }, Some(_)) => (state, false),
        })
    }

    /// True while it is open or probing.
    pub fn is_open(&self) -> bool {
        self.transition(|state| (state, !matches!(state, State::Closed { .. })))
    }

    fn transition(&self, step: impl FnOnce(State) -> (State, bool)) -> bool {
        // The state is one plain value: a panic elsewhere cannot have left it half written.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, result) = step(*state);
        *state = next;
        result
    }
}

impl State {
    const CLOSED: Self = Self::Closed { consecutive: 0, costly: 0, since_ms: 0 };
}

/// True for a failure that exhausted a limit.
fn is_costly(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Fuel | FailureKind::Deadline | FailureKind::Memory)
}

impl Default for Breaker {
    fn default() -> Self {
        Self::new(Self::FAILURES_MAX, Self::PAUSE_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAP: Option<FailureKind> = Some(FailureKind::Trap);

    /// Opened at 1,000 for 500 ms.
    fn opened() -> Breaker {
        let breaker = Breaker::new(3, 500);
        assert!(!breaker.record(1_000, 1_000, TRAP));
        assert!(!breaker.record(1_000, 1_000, TRAP));
        assert!(breaker.record(1_000, 1_000, TRAP));
        breaker
    }

    #[test]
    fn consecutive_failures_open_it_for_the_pause() {
        let breaker = opened();
        assert!(breaker.is_open() && !Breaker::default().is_open());
        assert!(!breaker.allows(1_000));
        assert!(!breaker.allows(1_499));
        assert!(breaker.allows(1_500));
    }

    #[test]
    fn a_success_between_failures_resets_the_count() {
        let breaker = Breaker::new(2, 500);
        for now in 0..10 {
            assert!(!breaker.record(now, now, TRAP));
            assert!(!breaker.record(now, now, None));
        }
        assert!(breaker.allows(10));
    }

    #[test]
    fn half_as_many_that_exhaust_a_limit_open_it_despite_successes_in_between() {
        for kind in [FailureKind::Fuel, FailureKind::Deadline, FailureKind::Memory] {
            let breaker = Breaker::new(5, 500);
            assert!(!breaker.record(1_000, 1_000, Some(kind)));
            assert!(!breaker.record(1_100, 1_100, None));
            assert!(!breaker.record(1_200, 1_200, Some(kind)));
            assert!(!breaker.record(1_300, 1_300, TRAP));
            assert!(!breaker.record(1_400, 1_400, None));
            assert!(breaker.record(1_499, 1_499, Some(kind)), "{kind:?}");
            assert!(breaker.is_open());
        }
    }

    #[test]
    fn occasional_exhaustion_of_a_limit_does_not_open_it() {
        let breaker = Breaker::new(5, 500);
        for now in [1_000, 1_300, 1_500, 1_700, 2_000, 2_300, 2_500] {
            assert!(!breaker.record(now, now, Some(FailureKind::Fuel)), "{now}");
            assert!(!breaker.record(now, now, None));
        }
        assert!(breaker.allows(2_500));
    }

    #[test]
    fn only_one_call_probes_the_policy_after_the_pause() {
        let breaker = opened();
        assert!(breaker.allows(1_500));
        assert!(!breaker.allows(1_500));
        assert!(!breaker.record(1_600, 1_600, None));
        assert!(breaker.allows(1_600));
    }

    #[test]
    fn a_failed_probe_opens_it_again() {
        let breaker = opened();
        assert!(breaker.allows(1_500));
        assert!(!breaker.record(1_600, 1_600, TRAP));
        assert!(!breaker.allows(2_099));
        assert!(breaker.allows(2_100));
    }

    #[test]
    fn a_probe_without_an_outcome_is_replaced_by_another() {
        let breaker = opened();
        assert!(breaker.allows(1_500));
        assert!(!breaker.allows(1_999));
        assert!(breaker.allows(2_000));
    }

    #[test]
    fn lack_of_capacity_counts_neither_way() {
        let breaker = Breaker::new(1, 500);
        assert!(!breaker.record(0, 0, Some(FailureKind::Capacity)));
        assert!(breaker.allows(0));

        let breaker = opened();
        assert!(breaker.allows(1_500));
        assert!(!breaker.record(1_500, 1_500, Some(FailureKind::Capacity)));
        assert!(breaker.allows(1_500));
    }

    #[test]
    fn a_late_success_does_not_close_an_open_breaker() {
        let breaker = opened();
        assert!(!breaker.record(1_001, 1_001, None));
        assert!(!breaker.allows(1_002));
    }

    #[test]
    fn a_late_outcome_is_not_that_of_the_probe() {
        let breaker = opened();
        assert!(breaker.allows(1_500));
        for late in [None, TRAP] {
            assert!(!breaker.record(999, 1_501, late));
            assert!(breaker.is_open() && !breaker.allows(1_999), "{late:?}");
        }
        assert!(!breaker.record(1_500, 1_502, None));
        assert!(!breaker.is_open());
    }
}
