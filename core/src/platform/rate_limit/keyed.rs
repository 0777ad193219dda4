//! Buckets by key, of which those that are full again are forgotten.

use std::fmt::{Debug, Formatter};
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::sync::Cache;

use super::{Decision, Gcra, Quota};

/// One bucket per key (an address, a user name), bounded: the least used key is evicted first. Where a
/// quota may change while the process runs, it is part of the key: what was taken at the old one does
/// not count.
pub struct KeyedGcra<K, B = Gcra> {
    buckets: Cache<K, Arc<B>>,
}

impl<K, B> Debug for KeyedGcra<K, B> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyedGcra")
    }
}

impl<K: Hash + Eq + Send + Sync + 'static, B: Send + Sync + 'static> KeyedGcra<K, B> {
    /// At most `keys_max` buckets; one unused for `idle` is full again and evicted.
    pub fn new(keys_max: u64, idle: Duration) -> Self {
        Self { buckets: Cache::builder().max_capacity(keys_max).time_to_idle(idle).build() }
    }

    /// As [`KeyedGcra::new`], where `idle` says by the key when the bucket is full again.
    pub fn with_idle(keys_max: u64, idle: impl Fn(&K) -> Duration + Send + Sync + 'static) -> Self {
        let buckets = Cache::builder().max_capacity(keys_max).expire_after(Idle(idle));
        Self { buckets: buckets.build() }
    }

    /// The bucket of `key`, which `make` makes when there is none. A caller that holds it must look it
    /// up again before `idle` passes, or it may be evicted while in use.
    pub fn bucket_or(&self, key: K, make: impl FnOnce() -> B) -> Arc<B> {
        self.buckets.get_with(key, || Arc::new(make()))
    }
}

impl<K: Hash + Eq + Send + Sync + 'static> KeyedGcra<K> {
    /// Takes one request from the bucket of `key`.
    pub fn take(&self, key: K, quota: Quota, now_ns: u64) -> Decision {
        self.bucket(key).take(quota, now_ns)
    }

    /// The bucket of `key`, as [`KeyedGcra::bucket_or`] gives it.
    pub fn bucket(&self, key: K) -> Arc<Gcra> {
        self.bucket_or(key, Gcra::default)
    }
}

/// The time for which an unused bucket is kept, by its key.
struct Idle<F>(F);

impl<K, V, F: Fn(&K) -> Duration> Expiry<K, V> for Idle<F> {
    fn expire_after_create(&self, key: &K, _: &V, _: Instant) -> Option<Duration> {
        Some((self.0)(key))
    }

    fn expire_after_read(
        &self,
        key: &K,
        _: &V,
        _: Instant,
        _: Option<Duration>,
        _: Instant,
    ) -> Option<Duration> {
        Some((self.0)(key))
    }
}
