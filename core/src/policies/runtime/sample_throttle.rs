//! Rate limit of calls of which something is stored: a sample, or log lines.

use std::sync::atomic::{AtomicU64, Ordering};

/// Shortest time between two of one policy, in milliseconds: storing them must cost little beside the
/// calls themselves.
const INTERVAL_MS: u64 = 1_000;
/// Samples stored of each kind of each partner, and calls with their log lines: the newest.
pub const SAMPLES_MAX: i32 = 100;

/// The time from which the next may be stored.
#[derive(Debug, Default)]
pub(crate) struct SampleThrottle {
    next_ms: AtomicU64,
}

impl SampleThrottle {
    /// True if something of a call of now is to be stored; mostly not.
    pub(crate) fn allows(&self, now_ms: u64) -> bool {
        let next = self.next_ms.load(Ordering::Relaxed);
        let later = now_ms.saturating_add(INTERVAL_MS);
        // Of several callers one wins.
        now_ms >= next
            && self
                .next_ms
                .compare_exchange(next, later, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_a_second_is_stored() {
        let throttle = SampleThrottle::default();
        let stored = [0, 1, 999, 1_000, 1_500, 5_000].map(|now| throttle.allows(now));
        assert_eq!(stored, [true, false, false, true, false, true]);
    }
}
