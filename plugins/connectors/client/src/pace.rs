//! Time as connectors need it: pauses, and how long something has lasted.

use std::time::{Duration, Instant};

/// Waits for so long.
#[expect(clippy::disallowed_methods, reason = "the one pause of the connectors, bounded by `time`")]
pub async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// The present, for measuring how long something lasts.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place where connectors read a clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Growing pauses between attempts: twice as long each time, from 250 ms to 10 s.
#[derive(Debug)]
pub struct Backoff(Duration);

impl Backoff {
    const FIRST: Duration = Duration::from_millis(250);
    const LONGEST: Duration = Duration::from_secs(10);

    /// Waits before the next attempt.
    pub async fn pause(&mut self) {
        pause(self.0).await;
        self.0 = (self.0 * 2).min(Self::LONGEST);
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self(Self::FIRST)
    }
}
