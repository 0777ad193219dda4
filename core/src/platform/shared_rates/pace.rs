//! Times between exchanges.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// Time between two exchanges.
pub(super) const EXCHANGE_PAUSE: Duration = Duration::from_millis(5);
/// The same while a bucket is nearly empty.
pub(super) const URGENT_PAUSE: Duration = Duration::from_millis(1);

pub(super) struct Pace {
    pub(super) regular: Interval,
    pub(super) urgent: Interval,
}

impl Pace {
    pub(super) fn new() -> Self {
        let every = |pause| {
            let mut ticks = interval(pause);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        Self { regular: every(EXCHANGE_PAUSE), urgent: every(URGENT_PAUSE) }
    }

    /// Counts from now on.
    pub(super) fn restart(&mut self) {
        self.regular.reset();
        self.urgent.reset();
    }
}
