//! Pingora waits without end for a client that reads slowly, or a byte now and then; here a client
//! must take an answer at some pace, and the whole of it within some time.

use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use super::deadline::{Deadline, now};

/// Time in which the peer need not take anything.
const GRACE: Duration = Duration::from_secs(5);
/// Longest pause of a peer that took more than the slowest pace before.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The slowest peer that is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBounds {
    /// Bytes that it takes in each second of waiting for it, after a grace of 5 seconds.
    pub(super) rate_min_bytes: u64,
    /// Time for an answer, or for each part of one that is made while it is sent; none where answers
    /// follow each other without a pause.
    pub(super) total: Option<Duration>,
}

impl SendBounds {
    /// The same pace without an end.
    pub(super) fn endless(self) -> Self {
        Self { total: None, ..self }
    }

    /// True when `waited` is all the time that a peer has for an answer.
    pub(super) fn is_over(self, waited: Duration) -> bool {
        self.total.is_some_and(|total| waited >= total)
    }

    /// Time in which the slowest peer takes this many bytes.
    fn time_for(self, bytes: usize) -> Duration {
        let pace = u32::try_from(self.rate_min_bytes).unwrap_or(u32::MAX).max(1);
        Duration::from_secs(1) * u32::try_from(bytes).unwrap_or(u32::MAX) / pace
    }
}

/// The pace of one answer's, or one connection's, bytes.
#[derive(Debug)]
pub(super) struct SendRate {
    bounds: SendBounds,
    /// From when on the peer has been waited for.
    wait: Option<Wait>,
    /// Time that the wait before left to the next one of the same answer.
    left: Option<Duration>,
    timer: Deadline,
}

#[derive(Debug)]
struct Wait {
    /// When the peer is given up unless it takes more.
    until: Instant,
    /// When it is given up in any case.
    end: Option<Instant>,
}

impl SendRate {
    pub(super) fn new(bounds: SendBounds) -> Self {
        Self { bounds, wait: None, left: None, timer: Deadline::default() }
    }

    /// The peer has taken this many bytes.
    pub(super) fn took(&mut self, bytes: usize) {
        let bounds = self.bounds;
        if let Some(wait) = &mut self.wait {
            wait.until = (wait.until + bounds.time_for(bytes)).min(now() + PAUSE_MAX);
        } else if let Some(left) = &mut self.left {
            *left = (*left + bounds.time_for(bytes)).min(PAUSE_MAX);
        }
    }

    /// A part is taken: the peer is not waited for until the next one is made, whose wait has what is
    /// left of this one's time, and a total of its own.
    pub(super) fn pause(&mut self) {
        if let Some(wait) = self.wait.take() {
            self.left = Some(wait.until.saturating_duration_since(now()));
        }
    }

    /// The answer is taken, and nothing of it counts for the next one.
    pub(super) fn done(&mut self) {
        (self.wait, self.left) = (None, None);
    }

    /// Ends when the peer, which takes nothing now, is to be given up.
    pub(super) fn poll_given_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.until();
        self.timer.poll_until(cx, at)
    }

    /// When the peer, which takes nothing now, is to be given up.
    pub(super) fn until(&mut self) -> Instant {
        let (total, left) = (self.bounds.total, self.left.unwrap_or(GRACE));
        let wait = self.wait.get_or_insert_with(|| {
            let now = now();
            Wait { until: now + left, end: total.map(|total| now + total) }
        });
        wait.end.map_or(wait.until, |end| end.min(wait.until))
    }

    /// When the peer is to be given up that has not taken the last bytes of an answer, this many. A wait
    /// that has not paused goes on with its total.
    pub(super) fn end_of(&self, bytes: usize) -> Instant {
        let (now, total) = (now(), self.bounds.total);
        let end = self.wait.as_ref().map_or(total.map(|total| now + total), |wait| wait.end);
        let at = now + GRACE + self.bounds.time_for(bytes);
        end.map_or(at, |end| end.min(at))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const BOUNDS: SendBounds =
        SendBounds { rate_min_bytes: 1_000, total: Some(Duration::from_secs(30)) };

    /// Seconds after which a peer is given up that takes `bytes` every `pause`.
    async fn given_up_after(bounds: SendBounds, bytes: usize, pause: Duration) -> f32 {
        let (mut rate, began) = (SendRate::new(bounds), now());
        while rate.until() > now() && began.elapsed() < Duration::from_secs(100) {
            advance(pause.min(rate.until() - now())).await;
            if rate.until() > now() {
                rate.took(bytes);
            }
        }
        began.elapsed().as_secs_f32()
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_or_a_byte_now_and_then_is_given_up_soon() {
        let second = Duration::from_secs(1);
        assert_eq!(given_up_after(BOUNDS, 0, second).await, 5.0);
        assert!(given_up_after(BOUNDS, 1, 4 * second).await < 5.1);
        assert!(given_up_after(BOUNDS.endless(), 500, second).await < 10.1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_of_the_slowest_pace_has_the_whole_time_and_credit_is_bounded() {
        let second = Duration::from_secs(1);
        assert_eq!(given_up_after(BOUNDS, 1_000, second).await, 30.0);
        assert!(given_up_after(BOUNDS.endless(), 1_000, second).await >= 100.0);
        let mut rate = SendRate::new(BOUNDS.endless());
        rate.until();
        rate.took(100_000_000);
        assert_eq!(rate.until() - now(), PAUSE_MAX);
        rate.done();
        assert_eq!(rate.until() - now(), GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_between_parts_costs_the_peer_nothing_and_gives_it_nothing() {
        let second = Duration::from_secs(1);
        let mut rate = SendRate::new(BOUNDS);
        rate.until();
        advance(4 * second).await;
        rate.pause();
        advance(100 * second).await;
        assert_eq!(rate.until() - now(), second);
        rate.pause();
        rate.took(3_000);
        assert_eq!(rate.until() - now(), 4 * second, "what is taken at once counts");
        rate.pause();
        rate.took(100_000_000);
        assert_eq!(rate.until() - now(), PAUSE_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_bytes_have_the_time_of_the_slowest_pace_within_that_of_an_answer() {
        let seconds = |bytes| (SendRate::new(BOUNDS).end_of(bytes) - now()).as_secs();
        assert_eq!([0, 10_000, 100_000].map(seconds), [5, 15, 30]);
        let mut rate = SendRate::new(BOUNDS);
        rate.until();
        advance(Duration::from_secs(20)).await;
        assert_eq!((rate.end_of(10_000) - now()).as_secs(), 10);
    }
}
