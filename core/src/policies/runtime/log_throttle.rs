//! How often a malfunction of one policy is logged: a partner must not fill the disk.

use std::sync::{Mutex, PoisonError};

/// Shortest time between two lines about one policy, in milliseconds.
const PAUSE_MS: u64 = 1_000;

/// When the last line was, and what happened since.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    next_ms: u64,
    silent: u64,
}

impl LogThrottle {
    /// Whether to log now: then how many were not logged since the last line. What is `notable` is
    /// always logged.
    pub(crate) fn line(&self, now_ms: u64, notable: bool) -> Option<u64> {
        // Two plain numbers: a panic elsewhere cannot have left them half written.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now_ms < state.next_ms && !notable {
            state.silent = state.silent.saturating_add(1);
            return None;
        }
        state.next_ms = now_ms.saturating_add(PAUSE_MS);
        Some(std::mem::take(&mut state.silent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_says_how_many_there_were() {
        let pace = LogThrottle::default();
        let line = |now| pace.line(now, false);
        assert_eq!(line(0), Some(0));
        assert_eq!((line(1), line(999)), (None, None));
        assert_eq!(line(1_000), Some(2));
        assert_eq!((line(1_001), pace.line(1_002, true)), (None, Some(1)));
        assert_eq!(line(5_000), Some(0));
    }
}
