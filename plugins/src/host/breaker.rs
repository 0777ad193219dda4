//! Stops calling a policy that keeps failing, and tries it again after a pause.

use std::sync::{Mutex, PoisonError};

use crate::host::report::FailureKind;

/// A circuit breaker for one policy of one partner; share it between threads.
///
/// Time is an argument, milliseconds that never go back, so that a test can move it.
/// While it is open the caller does what it does on a failure, without the call.
///
/// Failures in a row count: with one success between them the policy is at fault for some input,
/// not as a whole. Those that ran into a bound (fuel, deadline, memory) took time from other
/// tenants, so half as many are enough, and they count for as long as the pause, whatever is
/// between them.
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
        in_a_row: u32,
        /// Failures that ran into a bound, in the pause's time since `since_ms`.
        costly: u32,
        since_ms: u64,
    },
    Open {
        until_ms: u64,
    },
    /// One call is trying the policy. If it is never heard of again, the next one may try then.
    Probing {
        until_ms: u64,
    },
}

impl Breaker {
    /// Failures in a row that open the breaker, by default.
    pub const FAILURES_MAX: u32 = 5;
    /// How long it stays open, by default, in milliseconds.
    pub const PAUSE_MS: u64 = 10_000;

    /// A closed breaker that opens after `failures_max` failures in a row (at least one), or half as
    /// many, rounded up, that ran into a bound within `pause_ms`.
    pub const fn new(failures_max: u32, pause_ms: u64) -> Self {
        Self { failures_max, pause_ms, state: Mutex::new(State::CLOSED) }
    }

    /// Whether to call the policy now. After `true` the outcome must be [recorded](Self::record).
    pub fn allows(&self, now_ms: u64) -> bool {
        self.change(|state| match state {
            State::Closed { .. } => (state, true),
            State::Open { until_ms } | State::Probing { until_ms } if now_ms < until_ms => {
                (state, false)
            }
            State::Open { .. } | State::Probing { .. } => {
                (State::Probing { until_ms: now_ms.saturating_add(self.pause_ms) }, true)
            }
        })
    }

    /// Takes the outcome of a call; answers whether this one opened the breaker, so that it is
    /// logged once.
    ///
    /// A failure for [`FailureKind::Capacity`] counts neither way: the policy did not run.
    pub fn record(&self, now_ms: u64, failure: Option<FailureKind>) -> bool {
        let open = State::Open { until_ms: now_ms.saturating_add(self.pause_ms) };
        self.change(|state| match (state, failure) {
            (State::Probing { .. }, None) => (State::CLOSED, false),
            (State::Closed { costly, since_ms, .. }, None) => {
                (State::Closed { in_a_row: 0, costly, since_ms }, false)
            }
            (State::Probing { .. }, Some(FailureKind::Capacity)) => {
                (State::Open { until_ms: now_ms }, false)
            }
            (State::Probing { .. }, Some(_)) => (open, false),
            (State::Closed { in_a_row, costly, since_ms }, Some(cause))
                if cause != FailureKind::Capacity =>
            {
                let in_a_row = in_a_row.saturating_add(1);
                let over = now_ms.saturating_sub(since_ms) >= self.pause_ms;
                let (costly, since_ms) = match (is_costly(cause), over) {
                    (false, _) => (costly, since_ms),
                    (true, false) => (costly.saturating_add(1), since_ms),
                    (true, true) => (1, now_ms),
                };
                let bearable =
                    in_a_row < self.failures_max && costly < self.failures_max.div_ceil(2);
                match bearable {
                    true => (State::Closed { in_a_row, costly, since_ms }, false),
                    false => (open, true),
                }
            }
            // A call that began before the breaker opened says nothing new.
            (State::Open { .. }, _) | (State::Closed { .. }, Some(_)) => (state, false),
        })
    }

    /// Whether it is open, or was and one call is trying the policy.
    pub fn is_open(&self) -> bool {
        self.change(|state| (state, !matches!(state, State::Closed { .. })))
    }

    fn change(&self, step: impl FnOnce(State) -> (State, bool)) -> bool {
        // The state is one plain value: a panic elsewhere cannot have left it half written.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, answer) = step(*state);
        *state = next;
        answer
    }
}

impl State {
    const CLOSED: Self = Self::Closed { in_a_row: 0, costly: 0, since_ms: 0 };
}

/// Whether a failure took all that a bound left it.
fn is_costly(cause: FailureKind) -> bool {
    matches!(cause, FailureKind::Fuel | FailureKind::Deadline | FailureKind::Memory)
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
        assert!(!breaker.record(1_000, TRAP));
        assert!(!breaker.record(1_000, TRAP));
        assert!(breaker.record(1_000, TRAP));
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it_for_the_pause() {
        let breaker = opened();
        assert!(breaker.is_open() && !Breaker::default().is_open());
        assert!(!breaker.allows(1_000));
        assert!(!breaker.allows(1_499));
        assert!(breaker.allows(1_500));
    }

    #[test]
    fn a_success_between_failures_starts_the_count_again() {
        let breaker = Breaker::new(2, 500);
        for now in 0..10 {
            assert!(!breaker.record(now, TRAP));
            assert!(!breaker.record(now, None));
        }
        assert!(breaker.allows(10));
    }

    #[test]
    fn half_as_many_that_run_into_a_bound_are_enough_whatever_is_between_them() {
        for cause in [FailureKind::Fuel, FailureKind::Deadline, FailureKind::Memory] {
            let breaker = Breaker::new(5, 500);
            assert!(!breaker.record(1_000, Some(cause)));
            assert!(!breaker.record(1_100, None));
            assert!(!breaker.record(1_200, Some(cause)));
            assert!(!breaker.record(1_300, TRAP));
            assert!(!breaker.record(1_400, None));
            assert!(breaker.record(1_499, Some(cause)), "{cause:?}");
            assert!(breaker.is_open());
        }
    }

    #[test]
    fn those_that_run_into_a_bound_now_and_then_are_borne() {
        let breaker = Breaker::new(5, 500);
        for now in [1_000, 1_300, 1_500, 1_700, 2_000, 2_300, 2_500] {
            assert!(!breaker.record(now, Some(FailureKind::Fuel)), "{now}");
            assert!(!breaker.record(now, None));
        }
        assert!(breaker.allows(2_500));
    }

    #[test]
    fn only_one_call_tries_a_policy_after_the_pause() {
        let breaker = opened();
        assert!(breaker.allows(1_500));
        assert!(!breaker.allows(1_500));
        assert!(!breaker.record(1_600, None));
        assert!(breaker.allows(1_600));
    }

    #[test]
    fn a_failed_trial_opens_it_again() {
        let breaker = opened();
        assert!(breaker.allows(1_500));
        assert!(!breaker.record(1_600, TRAP));
        assert!(!breaker.allows(2_099));
        assert!(breaker.allows(2_100));
    }

    #[test]
    fn a_trial_that_is_never_heard_of_again_gives_way_to_another() {
        let breaker = opened();
        assert!(breaker.allows(1_500));
        assert!(!breaker.allows(1_999));
        assert!(breaker.allows(2_000));
    }

    #[test]
    fn lack_of_capacity_counts_neither_way() {
        let breaker = Breaker::new(1, 500);
        assert!(!breaker.record(0, Some(FailureKind::Capacity)));
        assert!(breaker.allows(0));

        let breaker = opened();
        assert!(breaker.allows(1_500));
        assert!(!breaker.record(1_500, Some(FailureKind::Capacity)));
        assert!(breaker.allows(1_500));
    }

    #[test]
    fn a_late_success_does_not_close_an_open_breaker() {
        let breaker = opened();
        assert!(!breaker.record(1_001, None));
        assert!(!breaker.allows(1_002));
    }
}
