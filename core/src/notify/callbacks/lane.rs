//! One lane's deliveries on an edge: the limit of concurrent attempts, the order of an order's events,
//! and the deliveries that are claimed in advance.

use std::collections::{HashSet, VecDeque};
use std::mem;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::outbound::{LANE_IN_FLIGHT_MAX, Outcome};
use super::queue::ClaimedDelivery;
use rampart_types::{ClientId, WebhookEndpointId};

/// Most concurrent attempts in a lane whose host did not respond last time, in place of
/// [`LANE_IN_FLIGHT_MAX`]: hundreds of such lanes may block for 15 s per attempt before others wait.
/// The first response restores the limit.
const UNRESPONSIVE_IN_FLIGHT_MAX: usize = 1;
/// Most concurrent attempts in a lane whose host took longer than [`SLOW_MIN`] last time: it answers,
/// but each attempt may occupy its place for as long as one without an answer.
const SLOW_IN_FLIGHT_MAX: usize = 2;
/// Time of a response from which a host is slow.
const SLOW_MIN: Duration = Duration::from_secs(5);
/// Most deliveries claimed in advance for a lane whose host responds fast, which share the cost of
/// a statement and a commit.
const PREFETCH_MAX: usize = 64;
/// Longest time of a fast response. A prefetched delivery waits for eight of these at most, so that
/// a first attempt still starts within a second.
const FAST_MAX: Duration = Duration::from_millis(50);
/// Time for which a host that did not respond, or was slow, is remembered after its last attempt:
/// longer than the first pauses between attempts.
const REMEMBERED: TimeDelta = TimeDelta::minutes(10);

/// The lane's host at its last attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HostState {
    /// It did not respond.
    Unresponsive,
    /// It responded after [`SLOW_MIN`] or later.
    Slow,
    /// It responded, or is unknown yet.
    #[default]
    Normal,
    /// It responded within [`FAST_MAX`].
    Fast,
}

/// A queue of deliveries that no other one holds up: those to one webhook endpoint, or a client's
/// callbacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    pub(super) client: ClientId,
    /// `None` for the callbacks of orders.
    pub(super) endpoint: Option<WebhookEndpointId>,
}

/// One lane's queue on an edge. Only lanes whose host was unresponsive or slow lately, or that the last
/// claim had not found empty, have one.
#[derive(Debug)]
pub(super) struct LaneQueue {
    in_flight: usize,
    /// Orders of the attempts in flight: another event of theirs waits.
    orders: HashSet<i64>,
    /// Claimed and not started, oldest first.
    prefetched: VecDeque<ClaimedDelivery>,
    host: HostState,
    /// When the last attempt ended.
    attempted_at: DateTime<Utc>,
    /// Unused capacity of the last claim: when it is 0, the database may hold more.
    unused: usize,
}

impl Default for LaneQueue {
    fn default() -> Self {
        Self {
            in_flight: 0,
            orders: HashSet::new(),
            prefetched: VecDeque::new(),
            host: HostState::default(),
            attempted_at: DateTime::UNIX_EPOCH,
            unused: LANE_IN_FLIGHT_MAX,
        }
    }
}

impl LaneQueue {
    /// The capacity for a claim, which is remembered until its rows arrive.
    pub(super) fn claim_capacity(&mut self) -> usize {
        let most = self.concurrency_limit() + self.prefetch_limit();
        self.unused = most.saturating_sub(self.held());
        self.unused
    }

    /// Adds a claimed delivery.
    pub(super) fn push(&mut self, claimed: ClaimedDelivery) {
        self.unused = self.unused.saturating_sub(1);
        self.prefetched.push_back(claimed);
    }

    /// Starts the next delivery, unless the concurrency limit is reached: the oldest one of an order
    /// that none is in flight of, so that a receiver hears of an order in the order of its events. One
    /// whose lease could expire during the attempt is dropped.
    pub(super) fn start(&mut self, now: DateTime<Utc>) -> Option<ClaimedDelivery> {
        if self.in_flight >= self.concurrency_limit() {
            return None;
        }
        self.prefetched.retain(|next| next.covers_attempt(now));
        let is_free =
            |next: &ClaimedDelivery| next.order.is_none_or(|order| !self.orders.contains(&order));
        let next = self.prefetched.iter().position(is_free)?;
        let next = self.prefetched.remove(next)?;
        self.in_flight += 1;
        self.orders.extend(next.order);
        Some(next)
    }

    /// Finishes an attempt for this order, without a result if none was made. Returns the prefetched
    /// deliveries that wait for it then, or that an unresponsive or slow host gets no more.
    #[must_use = "their leases are to be released"]
    pub(super) fn finish(
        &mut self,
        order: Option<i64>,
        result: Option<(Outcome, Duration)>,
        now: DateTime<Utc>,
    ) -> VecDeque<ClaimedDelivery> {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.attempted_at = now;
        if let Some(order) = order {
            self.orders.remove(&order);
        }
        self.host = match result {
            Some((outcome, _)) if outcome.is_unresponsive() => HostState::Unresponsive,
            Some((_, took)) if took <= FAST_MAX => HostState::Fast,
            Some((_, took)) if took >= SLOW_MIN => HostState::Slow,
            _ => HostState::Normal,
        };
        match self.host {
            HostState::Unresponsive | HostState::Slow => self.take_prefetched(),
            HostState::Normal | HostState::Fast if result.is_none() => self.take_next_of(order),
            HostState::Normal | HostState::Fast => VecDeque::new(),
        }
    }

    /// Takes out the prefetched deliveries of this order: they are not to overtake the one before them.
    fn take_next_of(&mut self, order: Option<i64>) -> VecDeque<ClaimedDelivery> {
        let is_next = |next: &ClaimedDelivery| order.is_some() && next.order == order;
        let (next, others) = mem::take(&mut self.prefetched).into_iter().partition(is_next);
        self.prefetched = others;
        next
    }

    /// Takes out the prefetched deliveries.
    #[must_use = "their leases are to be released"]
    pub(super) fn take_prefetched(&mut self) -> VecDeque<ClaimedDelivery> {
        mem::take(&mut self.prefetched)
    }

    /// True if so few are prefetched that more should be claimed.
    pub(super) fn is_low(&self) -> bool {
        self.prefetched.len() <= PREFETCH_MAX / 2
    }

    /// True if the database may hold more for this lane than the last claim could take.
    pub(super) fn may_have_more(&self) -> bool {
        self.unused == 0
    }

    /// True if the queue can be removed after a claim, which could have taken more for it.
    pub(super) fn is_idle(&self, now: DateTime<Utc>) -> bool {
        let is_remembered = match self.host {
            HostState::Unresponsive | HostState::Slow => now - self.attempted_at < REMEMBERED,
            HostState::Normal | HostState::Fast => false,
        };
        self.in_flight == 0 && self.prefetched.is_empty() && !is_remembered && !self.may_have_more()
    }

    /// Number of deliveries in flight and prefetched.
    pub(super) fn held(&self) -> usize {
        self.in_flight + self.prefetched.len()
    }

    /// Most deliveries that are claimed in advance.
    pub(super) fn prefetch_limit(&self) -> usize {
        if self.host == HostState::Fast { PREFETCH_MAX } else { 0 }
    }

    /// Number of prefetched deliveries.
    pub(super) fn prefetched(&self) -> usize {
        self.prefetched.len()
    }

    fn concurrency_limit(&self) -> usize {
        match self.host {
            HostState::Unresponsive => UNRESPONSIVE_IN_FLIGHT_MAX,
            HostState::Slow => SLOW_IN_FLIGHT_MAX,
            HostState::Normal | HostState::Fast => LANE_IN_FLIGHT_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::super::outbound::{ATTEMPT_TIMEOUT, Failure};
    use super::*;

    const DELIVERED: Outcome = Outcome::Delivered(StatusCode::OK);
    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn claimed() -> ClaimedDelivery {
        ClaimedDelivery::until(NOW + TimeDelta::seconds(30))
    }

    fn full() -> LaneQueue {
        let mut queue = LaneQueue::default();
        for _ in 0..queue.claim_capacity() {
            queue.push(claimed());
        }
        while queue.start(NOW).is_some() {}
        queue
    }

    #[test]
    fn an_unknown_host_gets_no_prefetch() {
        let mut queue = full();
        assert_eq!((queue.in_flight, queue.prefetched()), (LANE_IN_FLIGHT_MAX, 0));
        assert!(queue.may_have_more() && !queue.is_idle(NOW));
        assert_eq!(queue.claim_capacity(), 0);
    }

    #[test]
    fn a_fast_host_gets_a_prefetch_and_no_more_concurrency() {
        let mut queue = full();
        _ = queue.finish(None, Some((DELIVERED, FAST_MAX)), NOW);
        assert_eq!(queue.claim_capacity(), PREFETCH_MAX + 1);
        for _ in 0..=PREFETCH_MAX {
            queue.push(claimed());
        }
        assert!(queue.start(NOW).is_some() && queue.start(NOW).is_none());
        assert!(queue.may_have_more() && !queue.is_low());
        _ = queue.finish(None, Some((DELIVERED, FAST_MAX * 2)), NOW);
        assert_eq!(queue.claim_capacity(), 0, "a slow one gets no prefetch");
    }

    #[test]
    fn a_fast_host_is_remembered_until_a_claim_finds_less() {
        let mut queue = full();
        assert_eq!(queue.claim_capacity(), 0, "another lane's claim had no room for this one");
        for _ in 0..LANE_IN_FLIGHT_MAX {
            _ = queue.finish(None, Some((DELIVERED, FAST_MAX)), NOW);
        }
        assert!(!queue.is_idle(NOW), "the database may hold more");
        assert_eq!(queue.claim_capacity(), LANE_IN_FLIGHT_MAX + PREFETCH_MAX);
        queue.push(claimed());
        assert!(queue.start(NOW).is_some());
        _ = queue.finish(None, Some((DELIVERED, FAST_MAX)), NOW);
        assert!(queue.is_idle(NOW));
    }

    #[test]
    fn an_unresponsive_host_gets_less_concurrency() {
        let timed_out = Some((Outcome::Failed(Failure::TimedOut), ATTEMPT_TIMEOUT));
        let mut queue = full();
        queue.push(claimed());
        assert_eq!(queue.finish(None, timed_out, NOW).len(), 1, "it is claimed again");
        assert_eq!((queue.prefetched(), queue.claim_capacity()), (0, 0));
        for _ in 1..LANE_IN_FLIGHT_MAX {
            _ = queue.finish(None, timed_out, NOW);
        }
        assert_eq!((queue.in_flight, queue.claim_capacity()), (0, UNRESPONSIVE_IN_FLIGHT_MAX));
        assert!(!queue.is_idle(NOW), "it is remembered");
        assert!(!queue.is_idle(NOW + REMEMBERED - TimeDelta::seconds(1)));
        assert!(queue.is_idle(NOW + REMEMBERED), "an endpoint may be gone");
    }

    #[test]
    fn a_slow_host_gets_less_concurrency_until_it_is_quicker() {
        let mut queue = full();
        queue.push(claimed());
        assert_eq!(queue.finish(None, Some((DELIVERED, SLOW_MIN)), NOW).len(), 1);
        assert_eq!(queue.claim_capacity(), 0, "more are in flight than it may have");
        for _ in 1..LANE_IN_FLIGHT_MAX {
            _ = queue.finish(None, Some((DELIVERED, SLOW_MIN)), NOW);
        }
        assert_eq!(queue.claim_capacity(), SLOW_IN_FLIGHT_MAX);
        assert!(!queue.is_idle(NOW) && queue.is_idle(NOW + REMEMBERED));
        queue.push(claimed());
        assert!(queue.start(NOW).is_some());
        _ = queue.finish(None, Some((DELIVERED, FAST_MAX * 2)), NOW);
        assert_eq!(queue.claim_capacity(), LANE_IN_FLIGHT_MAX);
    }

    #[test]
    fn events_of_one_order_leave_one_after_the_other() {
        let mut queue = LaneQueue::default();
        for order in [Some(1), Some(1), None, Some(2)] {
            queue.push(ClaimedDelivery { order, ..claimed() });
        }
        let mut start = || queue.start(NOW).map(|started| started.order);
        assert_eq!(
            [start(), start(), start(), start()],
            [Some(Some(1)), Some(None), Some(Some(2)), None]
        );
        _ = queue.finish(Some(1), Some((DELIVERED, FAST_MAX)), NOW);
        assert_eq!(queue.start(NOW).unwrap().order, Some(1));
    }

    #[test]
    fn events_of_an_order_wait_for_one_that_was_not_attempted() {
        let mut queue = LaneQueue::default();
        for order in [Some(1), Some(1), Some(2), None] {
            queue.push(ClaimedDelivery { order, ..claimed() });
        }
        assert_eq!(queue.start(NOW).unwrap().order, Some(1));
        let waiting: Vec<_> =
            queue.finish(Some(1), None, NOW).into_iter().map(|waiting| waiting.order).collect();
        assert_eq!((waiting, queue.prefetched()), (vec![Some(1)], 2));
        assert_eq!(queue.start(NOW).unwrap().order, Some(2));
        assert_eq!(queue.start(NOW).unwrap().order, None);
        assert!(queue.finish(None, None, NOW).is_empty());
    }

    #[test]
    fn a_delivery_with_too_short_a_lease_is_dropped() {
        let mut queue = LaneQueue::default();
        queue.push(ClaimedDelivery::until(NOW + TimeDelta::seconds(14)));
        queue.push(ClaimedDelivery::until(NOW + TimeDelta::seconds(15)));
        assert!(queue.start(NOW).is_some() && queue.start(NOW).is_none());
        assert_eq!((queue.in_flight, queue.prefetched()), (1, 0));
    }
}
