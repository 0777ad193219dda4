//! Pingora stops accepting at once and then sleeps a fixed time; these are the phases of a process,
//! and what is still in flight.
//!
//! ```text
//! Serving ──SIGTERM──▶ Draining ──shutdown_delay──▶ Stopping ──nothing in flight──▶ Closing
//!    └───────────── a new process takes the listeners ──▲
//! ```
//! The last step, and the end of the connections after it, come as soon as they can, and both at
//! the latest after `edge.drain_seconds`. Background work ends then.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rampart_core::platform::clock::Clock;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Time without a new request before idle connections are closed under their clients. A client that
/// keeps asking is told to reconnect by the next answer instead, so that no request is lost.
const QUIET: Duration = Duration::from_millis(300);

/// The progress of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Not accepting yet, or only just.
    Starting,
    /// Ready.
    Serving,
    /// Not ready any more, still accepting; every answer closes its connection, and connections of
    /// HTTP/2 have been told to go away.
    Draining,
    /// Accepting nothing on the public listener.
    Stopping,
    /// Idle connections are closed.
    Closing,
    /// Background work is to end.
    Ending,
    /// It has ended.
    Ended,
}

/// A request in flight, until it is dropped.
pub(crate) type Busy = TaskTrackerToken;

/// The phase, the requests in flight, and the connections and listeners that there are.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    phase: watch::Sender<Phase>,
    in_flight: TaskTracker,
    began_ns: AtomicU64,
    connections: TaskTracker,
    accepting: TaskTracker,
    clock: Clock,
}

impl Lifecycle {
    /// Starting, with nothing in flight.
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            phase: watch::Sender::new(Phase::Starting),
            in_flight: TaskTracker::new(),
            began_ns: AtomicU64::new(0),
            connections: TaskTracker::new(),
            accepting: TaskTracker::new(),
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

    /// Counts a listener in, which accepts until the guard is dropped.
    pub(crate) fn accept(&self) -> TaskTrackerToken {
        self.accepting.token()
    }

    /// Waits until no listener accepts.
    pub(crate) async fn all_deaf(&self) {
        self.accepting.close();
        self.accepting.wait().await;
    }

    /// Counts a connection in until the guard is dropped.
    pub(crate) fn connect(&self) -> TaskTrackerToken {
        self.connections.token()
    }

    /// Waits until no listener accepts and every connection has ended, at most `bound`.
    pub(crate) async fn all_closed(&self, bound: Duration) {
        let closed = async {
            self.all_deaf().await;
            self.connections.close();
            self.connections.wait().await;
        };
        // When the bound is reached, what is still open is left to the next step.
        let _ = timeout(bound, closed).await;
    }

    /// Counts a request in until the guard is dropped.
    pub(crate) fn begin(&self) -> Busy {
        let busy = self.in_flight.token();
        self.began_ns.store(self.clock.monotonic_ns(), Ordering::Relaxed);
        busy
    }

    /// Waits until nothing is in flight and no request has begun for [`QUIET`] from now on, at most
    /// `bound`: connections that the phase before ends have that time to tell their clients.
    pub(crate) async fn quiet(&self, bound: Duration) {
        self.began_ns.store(self.clock.monotonic_ns(), Ordering::Relaxed);
        // It can be waited for from now on; requests are counted all the same.
        self.in_flight.close();
        // When the bound is reached, what is still running is left to the next step.
        let _ = timeout(bound, self.settled()).await;
    }

    async fn settled(&self) {
        loop {
            self.in_flight.wait().await;
            // Before the begin of the last request: one that begins in between has another begin.
            let is_idle = self.in_flight.is_empty();
            let began = self.began_ns.load(Ordering::Relaxed);
            let since = Duration::from_nanos(self.clock.monotonic_ns().saturating_sub(began));
            if is_idle && since >= QUIET {
                return;
            }
            // The next turn looks again.
            let _ = timeout(QUIET.saturating_sub(since), pending::<()>()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinHandle;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    /// A wait for quiet, which is not over yet.
    async fn wait(lifecycle: &Arc<Lifecycle>) -> JoinHandle<()> {
        let lifecycle = Arc::clone(lifecycle);
        let waiting = tokio::spawn(async move { lifecycle.quiet(LONG).await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        waiting
    }

    #[tokio::test(start_paused = true)]
    async fn quiet_waits_for_what_is_in_flight() {
        let lifecycle = Lifecycle::new(Clock::system());
        let busy = lifecycle.begin();
        let waiting = wait(&lifecycle).await;
        drop(busy);
        lifecycle.clock.advance(chrono::TimeDelta::seconds(1));
        waiting.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn quiet_waits_for_what_begins_with_it() {
        let lifecycle = Lifecycle::new(Clock::system());
        lifecycle.clock.advance(chrono::TimeDelta::seconds(10));
        let waiting = wait(&lifecycle).await;
        lifecycle.clock.advance(chrono::TimeDelta::seconds(1));
        waiting.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn quiet_ends_at_its_bound() {
        let lifecycle = Lifecycle::new(Clock::system());
        let _busy = lifecycle.begin();
        lifecycle.quiet(Duration::from_secs(1)).await;
        assert_eq!(lifecycle.in_flight.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn all_is_closed_when_no_listener_and_no_connection_is_left() {
        let lifecycle = Lifecycle::new(Clock::system());
        let (accepting, connection) = (lifecycle.accept(), lifecycle.connect());
        let waiting = tokio::spawn({
            let lifecycle = Arc::clone(&lifecycle);
            async move { lifecycle.all_closed(LONG).await }
        });
        tokio::task::yield_now().await;
        drop(accepting);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "a connection is left");
        drop(connection);
        waiting.await.unwrap();
        let _open = lifecycle.connect();
        lifecycle.all_closed(Duration::from_secs(1)).await;
        assert_eq!(lifecycle.connections.len(), 1, "it ends at its bound");
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
