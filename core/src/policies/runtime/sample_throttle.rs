//! The pace at which live inputs of one policy are recorded as samples.

use std::sync::atomic::{AtomicU64, Ordering};

/// Shortest time between two questions to one policy that are kept as samples, in milliseconds:
/// writing them must cost little of what the calls do, however many there are.
const SAMPLE_PAUSE_MS: u64 = 1_000;
/// Samples kept of each kind of each partner: the newest.
pub(crate) const SAMPLES_MAX: u64 = 100;
/// When the next question to a policy may be kept, and how many were.
#[derive(Debug, Default)]
pub(crate) struct SampleThrottle {
    next_ms: AtomicU64,
    kept: AtomicU64,
}

impl SampleThrottle {
    /// Where to keep a question that was asked now; mostly nowhere.
    pub(crate) fn slot(&self, now_ms: u64) -> Option<u64> {
        let next = self.next_ms.load(Ordering::Relaxed);
        let later = now_ms.saturating_add(SAMPLE_PAUSE_MS);
        if now_ms < next {
            return None;
        }
        // Of several callers one keeps its question.
        self.next_ms.compare_exchange(next, later, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        Some(self.kept.fetch_add(1, Ordering::Relaxed) % SAMPLES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_a_second_is_kept_and_the_oldest_gives_way() {
        let pace = SampleThrottle::default();
        let slots = |at: &[u64]| at.iter().map(|now| pace.slot(*now)).collect::<Vec<_>>();
        assert_eq!(slots(&[0, 1, 999, 1_000, 1_500]), [Some(0), None, None, Some(1), None]);
        let later = (2..=SAMPLES_MAX).map(|second| pace.slot(second * SAMPLE_PAUSE_MS));
        assert_eq!(later.last(), Some(Some(0)));
    }
}
