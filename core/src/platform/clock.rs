//! Time and entropy. Nothing else reads either, so that tests can control both.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use rustix::time::{ClockId, clock_gettime};
use uuid::Uuid;

/// The service's view of time and its source of entropy. Cheap to clone; clones share one offset.
#[derive(Clone, Debug)]
pub struct Clock {
    started: Instant,
    /// Milliseconds added to the system's time; zero outside tests.
    offset_ms: Arc<AtomicI64>,
    /// Microseconds by which the database's time is ahead of the system's.
    database_ahead_us: Arc<AtomicI64>,
    /// Time of the newest identifier, in ticks of [`TICKS_PER_MS`].
    newest_tick: Arc<AtomicU64>,
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
        Self {
            started: Instant::now(),
            offset_ms: Arc::default(),
            database_ahead_us: Arc::default(),
            newest_tick: Arc::default(),
        }
    }

    /// Now, in UTC, to the microsecond, which Postgres stores without loss. It is the database's
    /// time, so that all edges decide by one clock, however wrong that of their machine is.
    pub fn now(&self) -> DateTime<Utc> {
        let offset = TimeDelta::milliseconds(self.offset_ms.load(Ordering::Relaxed));
        (self.system_now() + self.database_ahead() + offset).trunc_subsecs(6)
    }

    /// The time of this machine.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that may read it")]
    pub(crate) fn system_now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    /// The time by which the database's clock is ahead of this machine's, as last seen.
    pub fn database_ahead(&self) -> TimeDelta {
        TimeDelta::microseconds(self.database_ahead_us.load(Ordering::Relaxed))
    }

    /// Follows the database's clock, which was read between two times of this machine. As long as
    /// the difference may be what it was, it stays: time does not go back and forth with the
    /// network.
    pub(crate) fn follow(
        &self,
        database: DateTime<Utc>,
        sent: DateTime<Utc>,
        received: DateTime<Utc>,
    ) {
        let least = (database - received).num_microseconds().unwrap_or(0);
        let most = (database - sent).num_microseconds().unwrap_or(0).max(least);
        let ahead = self.database_ahead_us.load(Ordering::Relaxed);
        if !(least..=most).contains(&ahead) {
            self.database_ahead_us.store(least.midpoint(most), Ordering::Relaxed);
        }
    }

    /// The time by which [`Clock::advance`] has moved this clock.
    pub(crate) fn offset(&self) -> TimeDelta {
        TimeDelta::milliseconds(self.offset_ms.load(Ordering::Relaxed))
    }

    /// Whole seconds since 1970, for tokens.
    pub fn unix_seconds(&self) -> i64 {
        self.now().timestamp()
    }

    /// Monotonic nanoseconds since this clock was created, plus the offset of [`Clock::advance`].
    pub fn monotonic_ns(&self) -> u64 {
        let offset = self.offset_ms.load(Ordering::Relaxed).max(0).unsigned_abs();
        let elapsed = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        elapsed.saturating_add(offset.saturating_mul(1_000_000))
    }

    /// The same in milliseconds.
    pub(crate) fn monotonic_ms(&self) -> u64 {
        self.monotonic_ns() / 1_000_000
    }

    /// Processor time of the calling thread, in nanoseconds.
    pub(crate) fn thread_ns() -> u64 {
        let time = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Moves this clock and all its clones forward. For tests.
    pub fn advance(&self, by: TimeDelta) {
        self.offset_ms.fetch_add(by.num_milliseconds(), Ordering::Relaxed);
    }

    /// Puts this clock and all its clones ahead of the database's, or behind it, until they follow it
    /// again. For tests.
    pub fn misset(&self, by: TimeDelta) {
        let by = by.num_microseconds().unwrap_or(0);
        self.database_ahead_us.fetch_add(by, Ordering::Relaxed);
    }

    /// `N` bytes from the operating system's generator.
    ///
    /// # Errors
    /// When the operating system provides no entropy; there is no fallback.
    pub fn random_bytes<const N: usize>(&self) -> Result<[u8; N], NoEntropy> {
        let mut bytes = [0; N];
        getrandom::fill(&mut bytes).map_err(|_| NoEntropy)?;
        Ok(bytes)
    }

    /// `N` random bytes for a nonce, which is not secret.
    ///
    /// # Errors
    /// As [`Clock::random_bytes`].
    pub fn nonce<const N: usize>(&self) -> Result<[u8; N], NoEntropy> {
        ENTROPY.with_borrow_mut(EntropyPool::take::<N>)
    }

    /// 64 random bits.
    ///
    /// # Errors
    /// As [`Clock::random_bytes`].
    pub fn random_u64(&self) -> Result<u64, NoEntropy> {
        Ok(u64::from_le_bytes(self.random_bytes()?))
    }

    /// A new UUID version 7 (RFC 9562, method 3): sorts by time, those of one process in the order in
    /// which they were made; 62 random bits.
    ///
    /// # Errors
    /// As [`Clock::random_bytes`].
    pub fn uuid(&self) -> Result<Uuid, NoEntropy> {
        let mut random = ENTROPY.with_borrow_mut(EntropyPool::take::<IDENTIFIER_BYTES>)?;
        let micros = u64::try_from(self.now().timestamp_micros()).unwrap_or(0);
        let now = micros.saturating_mul(TICKS_PER_MS) / 1_000;
        // A clock that was put back makes identifiers of its own time again.
        let next = |newest: u64| match newest.saturating_sub(now) > TICKS_BACK_MAX {
            true => now,
            false => now.max(newest.saturating_add(1)),
        };
        let newest = self
            .newest_tick
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |newest| Some(next(newest)))
            .unwrap_or_else(|newest| newest);
        let tick = next(newest);
        let [.., high, low] = (tick % TICKS_PER_MS).to_be_bytes();
        (random[0], random[1]) = (high, low);
        Ok(uuid::Builder::from_unix_timestamp_millis(tick / TICKS_PER_MS, &random).into_uuid())
    }
}

/// Steps of a millisecond that an identifier tells apart: those of its 12 bits after the version.
const TICKS_PER_MS: u64 = 1 << 12;
/// Longest time by which identifiers may be ahead of the clock, in ticks: a second.
const TICKS_BACK_MAX: u64 = 1_000 * TICKS_PER_MS;
/// Random bytes of an identifier.
const IDENTIFIER_BYTES: usize = 10;
/// Random bytes per system call: those of 128 identifiers.
const POOL_BYTES: usize = 128 * IDENTIFIER_BYTES;

thread_local! {
    static ENTROPY: RefCell<EntropyPool> = const { RefCell::new(EntropyPool::empty()) };
}

/// A per-thread buffer of random bytes of the operating system. With a system call for each identifier a
/// read makes three in place of two, and a quote five: 9 % of their CPU time (rows a and c of
/// `make bench`). The generator of `rand` would panic without entropy.
struct EntropyPool {
    bytes: [u8; POOL_BYTES],
    remaining: usize,
}

impl EntropyPool {
    const fn empty() -> Self {
        Self { bytes: [0; POOL_BYTES], remaining: 0 }
    }

    /// Takes `N` unused bytes and erases them from the pool.
    fn take<const N: usize>(&mut self) -> Result<[u8; N], NoEntropy> {
        const { assert!(N <= POOL_BYTES) };
        if self.remaining < N {
            getrandom::fill(&mut self.bytes).map_err(|_| NoEntropy)?;
            self.remaining = POOL_BYTES;
        }
        let mut taken = [0; N];
        let unused = &mut self.bytes[self.remaining - N..self.remaining];
        taken.swap_with_slice(unused);
        self.remaining -= N;
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

impl From<NoEntropy> for sqlx::Error {
    fn from(error: NoEntropy) -> Self {
        Self::Encode(error.into())
    }
}

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
    fn the_databases_time_is_followed_as_exactly_as_it_is_known() {
        let clock = Clock::system();
        let now = clock.system_now();
        let ms = TimeDelta::milliseconds;
        clock.follow(now + ms(5), now, now + ms(10));
        assert_eq!(clock.database_ahead(), ms(0), "it may be the same");
        clock.follow(now + TimeDelta::hours(1), now - ms(10), now + ms(10));
        assert_eq!(clock.database_ahead(), TimeDelta::hours(1));
        assert!(clock.clone().now() >= now + TimeDelta::hours(1));
        clock.follow(now + TimeDelta::hours(1), now - ms(40), now);
        assert_eq!(clock.database_ahead(), TimeDelta::hours(1), "a slow answer says less");
        clock.follow(now - TimeDelta::hours(1), now, now);
        assert!(clock.now() < now);
    }

    #[test]
    fn uuids_are_version_7_and_differ() {
        let clock = Clock::system();
        let (a, b) = (clock.uuid().unwrap(), clock.uuid().unwrap());
        assert_eq!(a.get_version_num(), 7);
        assert!(a < b);
        let made: Vec<_> = (0..5_000).map(|_| clock.uuid().unwrap()).collect();
        assert!(made.is_sorted());
        // More than one pool holds, on several threads.
        let generate = || {
            (0..3 * POOL_BYTES / IDENTIFIER_BYTES).map(|_| clock.uuid().unwrap().as_u128() << 64)
        };
        let threads = std::thread::scope(|scope| {
            let running = [(); 4].map(|()| scope.spawn(|| generate().collect::<Vec<_>>()));
            running.map(|thread| thread.join().unwrap())
        });
        let random: std::collections::HashSet<_> = threads.concat().into_iter().collect();
        assert_eq!(
            random.len(),
            4 * 3 * POOL_BYTES / IDENTIFIER_BYTES,
            "some were handed out twice"
        );
    }
}
