//! Rate limit of logged failures: a partner must not fill the disk.

use std::sync::{Mutex, PoisonError};

/// Shortest time between two lines of one throttle, in milliseconds.
const INTERVAL_MS: u64 = 1_000;

/// The time of the next line, and the number of lines suppressed.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    next_ms: u64,
    suppressed: u64,
}

impl LogThrottle {
    /// Number of lines suppressed since the last one, if this one may be logged. A `notable` one
    /// always may.
    pub(crate) fn try_log(&self, now_ms: u64, notable: bool) -> Option<u64> {
        // Two plain numbers: a panic elsewhere cannot have left them half written.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now_ms < state.next_ms && !notable {
            state.suppressed = state.suppressed.saturating_add(1);
            return None;
        }
        state.next_ms = now_ms.saturating_add(INTERVAL_MS);
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_says_how_many_there_were() {
        let throttle = LogThrottle::default();
        let line = |now| throttle.try_log(now, false);
        assert_eq!(line(0), Some(0));
        assert_eq!((line(1), line(999)), (None, None));
        assert_eq!(line(1_000), Some(2));
        assert_eq!((line(1_001), throttle.try_log(1_002, true)), (None, Some(1)));
        assert_eq!(line(5_000), Some(0));
    }
}
