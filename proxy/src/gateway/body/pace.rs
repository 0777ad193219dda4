//! The slowest pace of a body's sender.

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

use super::BodyError;
use crate::server::now;

/// Slowest body that is waited for: bytes in [`PACE_WINDOW`] (section 1.2 of the contract).
const PACE_BYTES: usize = 10 * 1000;
/// Window over which the pace is averaged.
const PACE_WINDOW: Duration = Duration::from_secs(10);

/// The pace of one body. Only waiting for its sender counts, not our work between its parts.
#[derive(Debug)]
pub(super) struct Pace {
    /// Rest of the window.
    left: Duration,
    /// Bytes that had arrived when the window began.
    before: usize,
}

impl Pace {
    pub(super) const fn new() -> Self {
        Self { left: PACE_WINDOW, before: 0 }
    }

    /// Waits for the next part of a body of which `received` bytes have arrived.
    ///
    /// # Errors
    /// When the sender is too slow.
    pub(super) async fn wait<T>(
        &mut self,
        received: usize,
        part: impl Future<Output = T>,
    ) -> Result<T, BodyError> {
        let mut part = pin!(part);
        loop {
            let began = now();
            if let Ok(part) = timeout(self.left, part.as_mut()).await {
                self.left = self.left.saturating_sub(began.elapsed());
                return Ok(part);
            }
            if received.saturating_sub(self.before) < PACE_BYTES {
                return Err(BodyError::TooSlow);
            }
            *self = Self { left: PACE_WINDOW, before: received };
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep_until};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Seconds after which a sender is given up that sends `bytes` every second, each followed by
    /// this much work of ours; `None` if a hundred parts arrive.
    async fn given_up_after(bytes: usize, work: Duration) -> Option<u64> {
        let (mut pace, began) = (Pace::new(), now());
        for part in 0..100 {
            if pace.wait(part * bytes, sleep_until(now() + SECOND)).await.is_err() {
                return Some(began.elapsed().as_secs());
            }
            advance(work).await;
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_slower_than_the_pace_is_given_up_after_a_window() {
        assert_eq!(given_up_after(0, Duration::ZERO).await, Some(10));
        assert_eq!(given_up_after(500, Duration::ZERO).await, Some(10));
        assert_eq!(given_up_after(2_000, Duration::ZERO).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn our_own_work_is_not_the_senders_pace() {
        assert_eq!(given_up_after(2_000, 30 * SECOND).await, None);
        assert_eq!(given_up_after(500, SECOND).await, Some(20), "the sender's time still counts");
    }
}
