//! A timer that is set for each wait and made once: most of what is waited for comes long before.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The time of the runtime's timers.
#[expect(clippy::disallowed_methods, reason = "the runtime's timers count from its own now")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The bound of one wait after another.
#[derive(Debug, Default)]
pub(super) struct Deadline {
    at: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Ends when the wait that began with the first call after [`Deadline::clear`] takes longer
    /// than `bound`.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, bound: Duration) -> Poll<()> {
        let at = *self.at.get_or_insert_with(|| now() + bound);
        self.poll_until(cx, at)
    }

    /// Ends at `at`.
    pub(super) fn poll_until(&mut self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        // Left as it is when it ends earlier: setting it anew for each request costs more.
        if sleep.deadline() > at {
            sleep.as_mut().reset(at);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if sleep.deadline() >= at {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(at);
        }
    }

    /// The wait is over.
    pub(super) fn clear(&mut self) {
        self.at = None;
    }
}
