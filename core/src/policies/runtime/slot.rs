//! A component and its native code, shared by the versions that use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use rampart_plugins::Policy;
use rampart_plugins::contract::PolicyKind;
use tokio::sync::{Mutex, MutexGuard};

use crate::platform::clock::Clock;
use crate::platform::error::Result;
use crate::platform::log_throttle::LogThrottle;

/// Pause after a failure that says nothing of the component; it doubles with each that follows.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Most doublings of the pause.
const RETRY_DOUBLINGS_MAX: u32 = 5;

/// A component and its native code, once compiled.
pub struct Slot {
    pub(crate) kind: PolicyKind,
    pub(crate) digest: Arc<str>,
    /// An error is final: the component does not fit this edge's limits.
    pub(super) code: ArcSwapOption<Result<Policy, String>>,
    /// True once the component was compiled or refused, also while its code is not loaded.
    tried: AtomicBool,
    /// One loads it, others wait. The number of failures in a row that say nothing of the component.
    loading: Mutex<u32>,
    /// Number of reads that have failed.
    failed_reads: AtomicU64,
    pub(super) log_throttle: LogThrottle,
    /// Monotonic nanoseconds before which it is not tried again; zero without such a failure.
    retry_at_ns: AtomicU64,
    /// Monotonic milliseconds of the last call.
    pub(super) used_ms: AtomicU64,
}

impl Slot {
    /// A slot that nothing was compiled for yet.
    pub(super) fn new(kind: PolicyKind, digest: Arc<str>) -> Self {
        Self {
            kind,
            digest,
            code: ArcSwapOption::empty(),
            tried: AtomicBool::new(false),
            loading: Mutex::default(),
            failed_reads: AtomicU64::new(0),
            log_throttle: LogThrottle::default(),
            retry_at_ns: AtomicU64::new(0),
            used_ms: AtomicU64::new(0),
        }
    }

    /// A slot without code, for good.
    pub(crate) fn broken(kind: PolicyKind, digest: &str, reason: String) -> Arc<Self> {
        let slot = Self::new(kind, digest.into());
        slot.set(Arc::new(Err(reason)));
        Arc::new(slot)
    }

    /// Sets its code, or the reason that it has none.
    pub(super) fn set(&self, code: Arc<Result<Policy, String>>) {
        self.code.store(Some(code));
        self.tried.store(true, Ordering::Release);
        self.retry_at_ns.store(0, Ordering::Relaxed);
    }

    /// The turn to load it, with the number of failures. `None` if a read fails meanwhile: the next would
    /// hardly fare better, and those that wait would make one after the other.
    pub(super) async fn turn(&self) -> Option<MutexGuard<'_, u32>> {
        let before = self.failed_reads.load(Ordering::Relaxed);
        let turn = self.loading.lock().await;
        (self.failed_reads.load(Ordering::Relaxed) == before).then_some(turn)
    }

    /// Fails all that wait for the turn, because a read has failed.
    pub(super) fn fail_waiting(&self) {
        self.failed_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// True until the component has been compiled or refused once.
    pub(crate) fn is_pending(&self) -> bool {
        !self.tried.load(Ordering::Acquire)
    }

    /// True if its last compilation failed for a reason that says nothing of the component.
    pub(super) fn has_failed(&self) -> bool {
        self.retry_at_ns.load(Ordering::Relaxed) > 0
    }

    /// True during the pause after such a failure.
    pub(super) fn is_delayed(&self, clock: &Clock) -> bool {
        clock.monotonic_ns() < self.retry_at_ns.load(Ordering::Relaxed)
    }

    /// Begins a pause, after so many failures before this one.
    pub(super) fn delay(&self, clock: &Clock, failures: u32) {
        let pause = RETRY_PAUSE * (1_u32 << failures.min(RETRY_DOUBLINGS_MAX));
        let pause_ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        let retry_at_ns = clock.monotonic_ns().saturating_add(pause_ns);
        self.retry_at_ns.store(retry_at_ns, Ordering::Relaxed);
    }

    /// True if it has its code.
    pub(super) fn is_loaded(&self) -> bool {
        self.code.load().as_ref().is_some_and(|code| code.is_ok())
    }

    /// Memory of its code, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let code = self.code.load();
        let policy = code.as_ref().and_then(|code| code.as_ref().as_ref().ok());
        policy.map_or(0, Policy::memory_bytes)
    }
}
