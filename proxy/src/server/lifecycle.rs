//! Pingora stops accepting at once and then sleeps a fixed time; these are the phases of a stop, and
//! what is still in flight.
//!
//! ```text
//! Serving ──SIGTERM──▶ Draining ──shutdown_delay──▶ Stopping ──nothing in flight──▶ Closing
//!    └───────────── a new process takes the listeners ──▲
//! ```
//! The last step ends as soon as it can, at the latest after `edge.drain_seconds`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rampart_core::platform::clock::Clock;
use tokio::sync::{Notify, watch};

/// Time without a new request before idle connections are closed under their clients. A client that
/// keeps asking is told to reconnect by the next answer instead, so that no request is lost.
const QUIET: Duration = Duration::from_millis(300);

/// The progress of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Ready.
    Serving,
    /// Not ready any more, still accepting; every answer closes its connection, and connections of
    /// HTTP/2 have been told to go away.
    Draining,
    /// Accepting nothing on the public listener.
    Stopping,
    /// Idle connections are closed.
    Closing,
}

/// The phase, and the requests in flight.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    phase: watch::Sender<Phase>,
    busy: AtomicUsize,
    began_ns: AtomicU64,
    less: Notify,
    listening: watch::Sender<usize>,
    clock: Clock,
}

impl Lifecycle {
    /// Serving, with nothing in flight.
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            phase: watch::Sender::new(Phase::Serving),
            busy: AtomicUsize::new(0),
            began_ns: AtomicU64::new(0),
            less: Notify::new(),
            listening: watch::Sender::new(0),
            clock,
        })
    }

    /// The current phase.
    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Goes on to `phase`; never back.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_modify(|now| *now = phase.max(*now));
    }

    /// Waits for `phase` or a later one.
    pub(crate) async fn reach(&self, phase: Phase) {
        // The sender is this very value: the wait does not fail.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }

    /// Counts a listener that begins to accept.
    pub(crate) fn accepts(&self) {
        self.listening.send_modify(|listening| *listening += 1);
    }

    /// Counts a listener out that accepts no more.
    pub(crate) fn accepts_no_more(&self) {
        self.listening.send_modify(|listening| *listening = listening.saturating_sub(1));
    }

    /// Waits until no listener accepts.
    pub(crate) async fn all_deaf(&self) {
        // The sender is this very value: the wait does not fail.
        let _ = self.listening.subscribe().wait_for(|listening| *listening == 0).await;
    }

    /// Counts a request in until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::AcqRel);
        self.began_ns.store(self.clock.monotonic_ns(), Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    /// Waits until nothing is in flight and no request has begun for [`QUIET`] from now on, at most
    /// `bound`: connections that the phase before ends have that time to tell their clients.
    pub(crate) async fn quiet(&self, bound: Duration) {
        self.began_ns.store(self.clock.monotonic_ns(), Ordering::Relaxed);
        // When the bound is reached, what is still running is left to the next step.
        let _ = tokio::time::timeout(bound, self.settled()).await;
    }

    async fn settled(&self) {
        loop {
            let less = self.less.notified();
            if self.busy.load(Ordering::Acquire) > 0 {
                less.await;
                continue;
            }
            let began = self.began_ns.load(Ordering::Relaxed);
            let since = self.clock.monotonic_ns().saturating_sub(began);
            match QUIET.checked_sub(Duration::from_nanos(since)) {
                Some(wait) if !wait.is_zero() => {
                    // Either way the next turn looks again.
                    let _ = tokio::time::timeout(wait, less).await;
                }
                _ => return,
            }
        }
    }
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Lifecycle>);

impl Drop for Busy {
    fn drop(&mut self) {
        if self.0.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.less.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn quiet_waits_for_what_is_in_flight() {
        let lifecycle = Lifecycle::new(Clock::system());
        let busy = lifecycle.begin();
        let waiting = tokio::spawn({
            let lifecycle = Arc::clone(&lifecycle);
            async move { lifecycle.quiet(LONG).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(busy);
        lifecycle.clock.advance(chrono::TimeDelta::seconds(1));
        waiting.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn quiet_waits_for_what_begins_with_it() {
        let lifecycle = Lifecycle::new(Clock::system());
        lifecycle.clock.advance(chrono::TimeDelta::seconds(10));
        let waiting = tokio::spawn({
            let lifecycle = Arc::clone(&lifecycle);
            async move { lifecycle.quiet(LONG).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        lifecycle.clock.advance(chrono::TimeDelta::seconds(1));
        waiting.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn quiet_ends_at_its_bound() {
        let lifecycle = Lifecycle::new(Clock::system());
        let _busy = lifecycle.begin();
        lifecycle.quiet(Duration::from_secs(1)).await;
        assert_eq!(lifecycle.busy.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn phases_only_go_on() {
        let lifecycle = Lifecycle::new(Clock::system());
        lifecycle.enter(Phase::Stopping);
        lifecycle.enter(Phase::Draining);
        assert_eq!(lifecycle.phase(), Phase::Stopping);
        lifecycle.reach(Phase::Draining).await;
    }
}
