//! One client's deliveries on an edge: the limit of concurrent attempts, and the deliveries that are
//! claimed in advance.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::outbound::Outcome;
use super::queue::ClaimedDelivery;

/// Most concurrent attempts for one client, so that no client can occupy the whole edge.
pub(super) const CLIENT_IN_FLIGHT_MAX: usize = 8;
/// The same for a client whose host did not respond last time: hundreds of such clients may block
/// for 15 s per attempt before others wait. The first response restores the limit.
const UNRESPONSIVE_IN_FLIGHT_MAX: usize = 1;
/// Most deliveries claimed in advance for a client whose host responds fast, which share the cost of
/// a statement and a commit.
const PREFETCH_MAX: usize = 64;
/// Longest time of a fast response. A prefetched delivery waits for eight of these at most, so that
/// a first attempt still starts within a second.
const FAST_MAX: Duration = Duration::from_millis(50);

/// The client's host at its last attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HostState {
    /// It did not respond.
    Unresponsive,
    /// It responded, or is unknown yet.
    #[default]
    Normal,
    /// It responded within [`FAST_MAX`].
    Fast,
}

/// One client's queue on an edge. Only clients with claimed deliveries or an unresponsive host have
/// one.
#[derive(Debug)]
pub(super) struct ClientQueue {
    in_flight: usize,
    /// Claimed and not started, oldest first.
    prefetched: VecDeque<ClaimedDelivery>,
    host: HostState,
    /// Unused capacity of the last claim: when it is 0, the database may hold more.
    unused: usize,
}

impl Default for ClientQueue {
    fn default() -> Self {
        Self {
            in_flight: 0,
            prefetched: VecDeque::new(),
            host: HostState::default(),
            unused: CLIENT_IN_FLIGHT_MAX,
        }
    }
}

impl ClientQueue {
    /// The capacity for a claim, which is remembered until its rows arrive.
    pub(super) fn claim_capacity(&mut self) -> usize {
        let current = self.in_flight + self.prefetched.len();
        let prefetch = if self.host == HostState::Fast { PREFETCH_MAX } else { 0 };
        self.unused = (self.concurrency_limit() + prefetch).saturating_sub(current);
        self.unused
    }

    /// Adds a claimed delivery.
    pub(super) fn push(&mut self, claimed: ClaimedDelivery) {
        self.unused = self.unused.saturating_sub(1);
        self.prefetched.push_back(claimed);
    }

    /// Starts the next delivery, unless the concurrency limit is reached. One whose lease could expire
    /// during the attempt is dropped.
    pub(super) fn start(&mut self, now: DateTime<Utc>) -> Option<ClaimedDelivery> {
        if self.in_flight >= self.concurrency_limit() {
            return None;
        }
        while let Some(next) = self.prefetched.pop_front() {
            if next.covers_attempt(now) {
                self.in_flight += 1;
                return Some(next);
            }
        }
        None
    }

    /// Finishes an attempt. Prefetched deliveries for an unresponsive host are dropped, and their
    /// leases expire.
    pub(super) fn finish(&mut self, result: Option<(Outcome, Duration)>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.host = match result {
            Some((outcome, _)) if outcome.is_unresponsive() => HostState::Unresponsive,
            Some((_, took)) if took <= FAST_MAX => HostState::Fast,
            _ => HostState::Normal,
        };
        if self.host == HostState::Unresponsive {
            self.prefetched.clear();
        }
    }

    /// True if so few are prefetched that more should be claimed.
    pub(super) fn is_low(&self) -> bool {
        self.prefetched.len() <= PREFETCH_MAX / 2
    }

    /// True if the database may hold more for this client than the last claim could take.
    pub(super) fn may_have_more(&self) -> bool {
        self.unused == 0
    }

    /// True if the queue can be removed.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.prefetched.is_empty() && self.host != HostState::Unresponsive
    }

    /// Number of prefetched deliveries.
    pub(super) fn prefetched(&self) -> usize {
        self.prefetched.len()
    }

    fn concurrency_limit(&self) -> usize {
        if self.host == HostState::Unresponsive {
            UNRESPONSIVE_IN_FLIGHT_MAX
        } else {
            CLIENT_IN_FLIGHT_MAX
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use http::StatusCode;

    use super::super::outbound::{ATTEMPT_TIMEOUT, Failure};
    use super::*;

    const DELIVERED: Outcome = Outcome::Delivered(StatusCode::OK);
    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn claimed() -> ClaimedDelivery {
        ClaimedDelivery::until(NOW + TimeDelta::seconds(30))
    }

    fn full() -> ClientQueue {
        let mut queue = ClientQueue::default();
        for _ in 0..queue.claim_capacity() {
            queue.push(claimed());
        }
        while queue.start(NOW).is_some() {}
        queue
    }

    #[test]
    fn an_unknown_host_gets_no_prefetch() {
        let mut queue = full();
        assert_eq!((queue.in_flight, queue.prefetched()), (CLIENT_IN_FLIGHT_MAX, 0));
        assert!(queue.may_have_more() && !queue.is_idle());
        assert_eq!(queue.claim_capacity(), 0);
    }

    #[test]
    fn a_fast_host_gets_a_prefetch_and_no_more_concurrency() {
        let mut queue = full();
        queue.finish(Some((DELIVERED, FAST_MAX)));
        assert_eq!(queue.claim_capacity(), PREFETCH_MAX + 1);
        for _ in 0..=PREFETCH_MAX {
            queue.push(claimed());
        }
        assert!(queue.start(NOW).is_some() && queue.start(NOW).is_none());
        assert!(queue.may_have_more() && !queue.is_low());
        queue.finish(Some((DELIVERED, FAST_MAX * 2)));
        assert_eq!(queue.claim_capacity(), 0, "a slow one gets no prefetch");
    }

    #[test]
    fn an_unresponsive_host_gets_less_concurrency() {
        let timed_out = Some((Outcome::Failed(Failure::TimedOut), ATTEMPT_TIMEOUT));
        let mut queue = full();
        queue.push(claimed());
        queue.finish(timed_out);
        assert_eq!((queue.prefetched(), queue.claim_capacity()), (0, 0));
        for _ in 1..CLIENT_IN_FLIGHT_MAX {
            queue.finish(timed_out);
        }
        assert_eq!((queue.in_flight, queue.claim_capacity()), (0, UNRESPONSIVE_IN_FLIGHT_MAX));
        assert!(!queue.is_idle(), "it is remembered");
    }

    #[test]
    fn a_delivery_with_too_short_a_lease_is_dropped() {
        let mut queue = ClientQueue::default();
        queue.push(ClaimedDelivery::until(NOW + TimeDelta::seconds(14)));
        queue.push(ClaimedDelivery::until(NOW + TimeDelta::seconds(15)));
        assert!(queue.start(NOW).is_some() && queue.start(NOW).is_none());
        assert_eq!((queue.in_flight, queue.prefetched()), (1, 0));
    }
}
