//! Heartbeats of background workers: the time of each one's last successful run.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The worker that reads the snapshot.
pub const SNAPSHOT: &str = "snapshot";

/// Time without a successful run, beyond its interval, after which a worker counts as stuck.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// The workers of an edge that have started.
#[derive(Debug, Default)]
pub struct Heartbeats(Mutex<BTreeMap<&'static str, Heartbeat>>);

#[derive(Debug, Clone, Copy)]
struct Heartbeat {
    interval: Duration,
    /// Monotonic nanoseconds of the last success, or of the start.
    at: u64,
}

impl Heartbeats {
    /// Records a successful run of a worker, or its start.
    pub fn beat(&self, worker: &'static str, interval: Duration, now: u64) {
        self.all().insert(worker, Heartbeat { interval, at: now });
    }

    /// Time since the last success of a worker; `None` when it has not started.
    pub fn age(&self, worker: &str, now: u64) -> Option<Duration> {
        self.all().get(worker).map(|beat| Duration::from_nanos(now.saturating_sub(beat.at)))
    }

    /// The first worker, by name, that has not succeeded for much longer than its interval.
    pub fn stuck(&self, now: u64) -> Option<(&'static str, Duration)> {
        self.all().iter().find_map(|(worker, beat)| {
            let age = Duration::from_nanos(now.saturating_sub(beat.at));
            (age > beat.interval + SILENCE_MAX).then_some((*worker, age))
        })
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<&'static str, Heartbeat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_stuck_long_after_its_interval() {
        let second = 1_000_000_000;
        let heartbeats = Heartbeats::default();
        assert_eq!(heartbeats.stuck(u64::MAX), None, "none has started");
        heartbeats.beat("often", Duration::from_secs(1), 0);
        heartbeats.beat("seldom", Duration::from_secs(600), 0);
        assert_eq!(heartbeats.stuck(16 * second), None);
        assert_eq!(heartbeats.stuck(17 * second), Some(("often", Duration::from_secs(17))));
        heartbeats.beat("often", Duration::from_secs(1), 17 * second);
        assert_eq!(heartbeats.stuck(18 * second), None);
        assert_eq!(heartbeats.age("often", 18 * second), Some(Duration::from_secs(1)));
        assert_eq!(heartbeats.age("never", 18 * second), None);
    }
}
