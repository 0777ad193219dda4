//! One client's share of what an edge delivers: how many attempts run at once, and how many more
//! deliveries are claimed ahead of them.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::outbound::Outcome;
use super::queue::Claimed;

/// Most attempts to one client at once, so that no client can take all places.
pub(super) const CLIENT_IN_FLIGHT_MAX: usize = 8;
/// The same for a client whose host did not answer last time: hundreds of them may hang for 15 s
/// an attempt before the others wait. The first answer gives it its places back.
const HANGING_IN_FLIGHT_MAX: usize = 1;
/// Most deliveries that are claimed ahead for a client whose host answers quickly: what the queue
/// costs, a statement and a commit, is then shared by as many.
const AHEAD_MAX: usize = 64;
/// What is quick. What waits ahead waits eight of these at most, so that a first attempt still
/// starts within a second.
const QUICK_MAX: Duration = Duration::from_millis(50);

/// How the client's host answered last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pace {
    /// Not at all.
    Hanging,
    /// In its time, or nobody knows yet.
    #[default]
    Usual,
    /// Within [`QUICK_MAX`].
    Quick,
}

/// One client's place in an edge. Only clients with something claimed, or hanging, have one.
#[derive(Debug)]
pub(super) struct Lane {
    in_flight: usize,
    /// Claimed and not begun, the longest due first.
    ahead: VecDeque<Claimed>,
    pace: Pace,
    /// How much more the last look at the queue could have claimed: with nothing left, the queue
    /// may hold more.
    left: usize,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            in_flight: 0,
            ahead: VecDeque::new(),
            pace: Pace::default(),
            left: CLIENT_IN_FLIGHT_MAX,
        }
    }
}

impl Lane {
    /// Room for claims, noted for when they come.
    pub(super) fn ask(&mut self) -> usize {
        let held = self.in_flight + self.ahead.len();
        let ahead = if self.pace == Pace::Quick { AHEAD_MAX } else { 0 };
        self.left = (self.places() + ahead).saturating_sub(held);
        self.left
    }

    /// Takes a claim in.
    pub(super) fn take(&mut self, claimed: Claimed) {
        self.left = self.left.saturating_sub(1);
        self.ahead.push_back(claimed);
    }

    /// The next delivery to attempt now, if there is a place for it. One that has waited until its
    /// lease could end under the attempt is let go.
    pub(super) fn start(&mut self, now: DateTime<Utc>) -> Option<Claimed> {
        if self.in_flight >= self.places() {
            return None;
        }
        while let Some(next) = self.ahead.pop_front() {
            if next.lasts(now) {
                self.in_flight += 1;
                return Some(next);
            }
        }
        None
    }

    /// An attempt has ended, after so long. What is claimed for a host that hangs is let go: its
    /// lease ends by itself.
    pub(super) fn leave(&mut self, ended: Option<(Outcome, Duration)>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.pace = match ended {
            Some((outcome, _)) if outcome.hung() => Pace::Hanging,
            Some((_, took)) if took <= QUICK_MAX => Pace::Quick,
            _ => Pace::Usual,
        };
        if self.pace == Pace::Hanging {
            self.ahead.clear();
        }
    }

    /// Whether so little is ahead that it is time to look at the queue again.
    pub(super) fn runs_low(&self) -> bool {
        self.ahead.len() <= AHEAD_MAX / 2
    }

    /// Whether the queue may hold more for this client than the last look could claim.
    pub(super) fn may_have_more(&self) -> bool {
        self.left == 0
    }

    /// Whether there is nothing left to remember.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.ahead.is_empty() && self.pace != Pace::Hanging
    }

    /// Deliveries that wait for a place.
    pub(super) fn ahead(&self) -> usize {
        self.ahead.len()
    }

    fn places(&self) -> usize {
        if self.pace == Pace::Hanging { HANGING_IN_FLIGHT_MAX } else { CLIENT_IN_FLIGHT_MAX }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use http::StatusCode;

    use super::super::outbound::{ATTEMPT_MAX, Failure};
    use super::*;

    const DELIVERED: Outcome = Outcome::Delivered(StatusCode::OK);
    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn claimed() -> Claimed {
        Claimed::until(NOW + TimeDelta::seconds(30))
    }

    fn full() -> Lane {
        let mut lane = Lane::default();
        for _ in 0..lane.ask() {
            lane.take(claimed());
        }
        while lane.start(NOW).is_some() {}
        lane
    }

    #[test]
    fn a_host_that_nobody_knows_gets_its_places_and_nothing_ahead() {
        let mut lane = full();
        assert_eq!((lane.in_flight, lane.ahead()), (CLIENT_IN_FLIGHT_MAX, 0));
        assert!(lane.may_have_more() && !lane.is_idle());
        assert_eq!(lane.ask(), 0);
    }

    #[test]
    fn a_quick_host_gets_more_ahead_and_no_more_at_once() {
        let mut lane = full();
        lane.leave(Some((DELIVERED, QUICK_MAX)));
        assert_eq!(lane.ask(), AHEAD_MAX + 1);
        for _ in 0..=AHEAD_MAX {
            lane.take(claimed());
        }
        assert!(lane.start(NOW).is_some() && lane.start(NOW).is_none());
        assert!(lane.may_have_more() && !lane.runs_low());
        lane.leave(Some((DELIVERED, QUICK_MAX * 2)));
        assert_eq!(lane.ask(), 0, "a slow one gets nothing ahead");
    }

    #[test]
    fn a_lane_narrows_while_its_host_hangs() {
        let hung = Some((Outcome::Failed(Failure::TimedOut), ATTEMPT_MAX));
        let mut lane = full();
        lane.take(claimed());
        lane.leave(hung);
        assert_eq!((lane.ahead(), lane.ask()), (0, 0));
        for _ in 1..CLIENT_IN_FLIGHT_MAX {
            lane.leave(hung);
        }
        assert_eq!((lane.in_flight, lane.ask()), (0, HANGING_IN_FLIGHT_MAX));
        assert!(!lane.is_idle(), "it is remembered");
    }

    #[test]
    fn what_waited_too_long_for_its_lease_is_let_go() {
        let mut lane = Lane::default();
        lane.take(Claimed::until(NOW + TimeDelta::seconds(14)));
        lane.take(Claimed::until(NOW + TimeDelta::seconds(15)));
        assert!(lane.start(NOW).is_some() && lane.start(NOW).is_none());
        assert_eq!((lane.in_flight, lane.ahead()), (1, 0));
    }
}
