//! The only place that reads the time or draws randomness, so that a test can move both.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use uuid::Uuid;

/// The service's view of time and its source of entropy. Cheap to clone; clones share one offset.
#[derive(Clone, Debug)]
pub struct Clock {
    started: Instant,
    /// Milliseconds added to the system's time; zero outside tests.
    offset_ms: Arc<AtomicI64>,
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl Clock {
    /// The system's clock and random source.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that may read it")]
    pub fn system() -> Self {
        Self { started: Instant::now(), offset_ms: Arc::default() }
    }

    /// Now, in UTC, to the microsecond: what Postgres can store and give back unchanged.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that may read it")]
    pub fn now(&self) -> DateTime<Utc> {
        let offset = TimeDelta::milliseconds(self.offset_ms.load(Ordering::Relaxed));
        (Utc::now() + offset).trunc_subsecs(6)
    }

    /// Whole seconds since 1970, for tokens.
    pub fn unix_seconds(&self) -> i64 {
        self.now().timestamp()
    }

    /// Nanoseconds since this clock was made; never goes back, moved by [`Clock::advance`].
    pub fn monotonic_ns(&self) -> u64 {
        let offset = self.offset_ms.load(Ordering::Relaxed).max(0).unsigned_abs();
        let elapsed = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        elapsed.saturating_add(offset.saturating_mul(1_000_000))
    }

    /// Moves this clock and all its clones forward. For tests.
    pub fn advance(&self, by: TimeDelta) {
        self.offset_ms.fetch_add(by.num_milliseconds(), Ordering::Relaxed);
    }

    /// `N` bytes from the operating system's generator.
    ///
    /// # Errors
    /// When the operating system cannot give entropy; nothing may go on with less.
    pub fn random_bytes<const N: usize>(&self) -> Result<[u8; N], NoEntropy> {
        let mut bytes = [0; N];
        getrandom::fill(&mut bytes).map_err(|_| NoEntropy)?;
        Ok(bytes)
    }

    /// `N` random bytes that are no secret: a nonce.
    ///
    /// # Errors
    /// As [`Clock::random_bytes`].
    pub fn nonce<const N: usize>(&self) -> Result<[u8; N], NoEntropy> {
        DRAWN.with_borrow_mut(Drawn::take::<N>)
    }

    /// 64 random bits.
    ///
    /// # Errors
    /// As [`Clock::random_bytes`].
    pub fn random_u64(&self) -> Result<u64, NoEntropy> {
        Ok(u64::from_le_bytes(self.random_bytes()?))
    }

    /// A new UUID version 7 (RFC 9562): sorts by time, 74 random bits.
    ///
    /// # Errors
    /// As [`Clock::random_bytes`].
    pub fn uuid(&self) -> Result<Uuid, NoEntropy> {
        let random = DRAWN.with_borrow_mut(Drawn::take::<IDENTIFIER_BYTES>)?;
        let millis = u64::try_from(self.now().timestamp_millis()).unwrap_or(0);
        Ok(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }
}

/// Random bytes of an identifier.
const IDENTIFIER_BYTES: usize = 10;
/// Random bytes that are drawn at once: those of 128 identifiers.
const AHEAD_BYTES: usize = 128 * IDENTIFIER_BYTES;

thread_local! {
    static DRAWN: RefCell<Drawn> = const { RefCell::new(Drawn::nothing()) };
}

/// Random bytes that were drawn ahead on this thread: a system call for each identifier would cost
/// more than all the rest of it.
struct Drawn {
    bytes: [u8; AHEAD_BYTES],
    left: usize,
}

impl Drawn {
    const fn nothing() -> Self {
        Self { bytes: [0; AHEAD_BYTES], left: 0 }
    }

    /// Bytes that nobody got before, and that are kept no longer.
    fn take<const N: usize>(&mut self) -> Result<[u8; N], NoEntropy> {
        const { assert!(N <= AHEAD_BYTES) };
        if self.left < N {
            getrandom::fill(&mut self.bytes).map_err(|_| NoEntropy)?;
            self.left = AHEAD_BYTES;
        }
        let mut taken = [0; N];
        let drawn = &mut self.bytes[self.left - N..self.left];
        taken.swap_with_slice(drawn);
        self.left -= N;
        Ok(taken)
    }
}

/// The operating system gave no random bytes.
#[derive(Debug, Clone, Copy)]
pub struct NoEntropy;

impl std::fmt::Display for NoEntropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the operating system gave no random bytes")
    }
}

impl std::error::Error for NoEntropy {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advancing_moves_every_clone() {
        let clock = Clock::system();
        let clone = clock.clone();
        let before = (clone.now(), clone.monotonic_ns());
        clock.advance(TimeDelta::hours(2));
        assert!(clone.now() >= before.0 + TimeDelta::hours(2));
        assert!(clone.monotonic_ns() >= before.1 + 7_200_000_000_000);
    }

    #[test]
    fn uuids_are_version_7_and_differ() {
        let clock = Clock::system();
        let (a, b) = (clock.uuid().unwrap(), clock.uuid().unwrap());
        assert_eq!(a.get_version_num(), 7);
        assert_ne!(a, b);
        // More than are drawn at once, on more threads than one.
        let draw = || {
            (0..3 * AHEAD_BYTES / IDENTIFIER_BYTES).map(|_| clock.uuid().unwrap().as_u128() << 64)
        };
        let threads = std::thread::scope(|scope| {
            let running = [(); 4].map(|()| scope.spawn(|| draw().collect::<Vec<_>>()));
            running.map(|thread| thread.join().unwrap())
        });
        let random: std::collections::HashSet<_> = threads.concat().into_iter().collect();
        assert_eq!(
            random.len(),
            4 * 3 * AHEAD_BYTES / IDENTIFIER_BYTES,
            "some were handed out twice"
        );
    }
}
