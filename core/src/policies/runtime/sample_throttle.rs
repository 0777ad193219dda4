//! Rate limit of requests that are stored as samples.

use std::sync::atomic::{AtomicU64, Ordering};

/// Shortest time between two samples of one policy, in milliseconds: storing them must cost little
/// beside the calls themselves.
const INTERVAL_MS: u64 = 1_000;
/// Samples stored of each kind of each partner: the newest.
pub(crate) const SAMPLES_MAX: u64 = 100;

/// The time of the next sample, and the number of samples.
#[derive(Debug, Default)]
pub(crate) struct SampleThrottle {
    next_ms: AtomicU64,
    stored: AtomicU64,
}

impl SampleThrottle {
    /// The slot to store a request of now in; mostly none.
    pub(crate) fn next_slot(&self, now_ms: u64) -> Option<u64> {
        let next = self.next_ms.load(Ordering::Relaxed);
        let later = now_ms.saturating_add(INTERVAL_MS);
        if now_ms < next {
            return None;
        }
        // Of several callers one wins.
        self.next_ms.compare_exchange(next, later, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        Some(self.stored.fetch_add(1, Ordering::Relaxed) % SAMPLES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_a_second_is_stored_and_replaces_the_oldest() {
        let throttle = SampleThrottle::default();
        let slots = |at: &[u64]| at.iter().map(|now| throttle.next_slot(*now)).collect::<Vec<_>>();
        assert_eq!(slots(&[0, 1, 999, 1_000, 1_500]), [Some(0), None, None, Some(1), None]);
        let later = (2..=SAMPLES_MAX).map(|second| throttle.next_slot(second * INTERVAL_MS));
        assert_eq!(later.last(), Some(Some(0)));
    }
}
