//! Tokio's semaphore counts one thing; here each key, such as an address, has a count of its own.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Permits by key, of which nothing is kept for a key that holds none.
#[derive(Debug)]
pub struct KeyedSemaphore<K: Eq + Hash> {
    held: Arc<Held<K>>,
    max: usize,
}

#[derive(Debug)]
struct Held<K>(Mutex<HashMap<K, usize>>);

impl<K> Held<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> KeyedSemaphore<K> {
    /// At most `max` permits for each key.
    pub fn new(max: usize) -> Self {
        Self { held: Arc::new(Held(Mutex::default())), max }
    }

    /// A permit for `key`, given back when it is dropped; `None` when all of them are held.
    pub fn try_acquire(&self, key: K) -> Option<KeyedPermit<K>> {
        self.try_acquire_many(key, 1)
    }

    /// As many permits for `key`, given back when they are dropped; `None` when fewer are left.
    pub fn try_acquire_many(&self, key: K, count: usize) -> Option<KeyedPermit<K>> {
        self.acquire(key, count, self.max)
    }

    /// A permit for `key`, as if there were at most `max` for it.
    pub fn try_acquire_within(&self, key: K, max: usize) -> Option<KeyedPermit<K>> {
        self.acquire(key, 1, max.min(self.max))
    }

    /// Permits that are left for `key`.
    pub fn left(&self, key: &K) -> usize {
        let held = self.held.lock().get(key).copied().unwrap_or_default();
        self.max.saturating_sub(held)
    }

    fn acquire(&self, key: K, count: usize, max: usize) -> Option<KeyedPermit<K>> {
        let mut held = self.held.lock();
        let before = held.get(&key).copied().unwrap_or_default();
        if max.saturating_sub(before) < count {
            return None;
        }
        held.insert(key.clone(), before + count);
        Some(KeyedPermit { held: Arc::clone(&self.held), key, count })
    }
}

/// One or several of a key's permits.
#[derive(Debug)]
pub struct KeyedPermit<K: Eq + Hash> {
    held: Arc<Held<K>>,
    key: K,
    count: usize,
}

impl<K: Eq + Hash> KeyedPermit<K> {
    /// Takes over further permits of the same key.
    pub fn merge(&mut self, mut more: Self) {
        self.count += std::mem::take(&mut more.count);
    }
}

impl<K: Eq + Hash> Drop for KeyedPermit<K> {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        if let Some(count) = held.get_mut(&self.key) {
            *count = count.saturating_sub(self.count);
            if *count == 0 {
                held.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_permits_and_leaves_nothing_behind() {
        let semaphore = KeyedSemaphore::new(2);
        let first = semaphore.try_acquire("a").unwrap();
        let second = semaphore.try_acquire("a").unwrap();
        assert!(semaphore.try_acquire("a").is_none());
        let other = semaphore.try_acquire("b").unwrap();
        drop(first);
        let third = semaphore.try_acquire("a").unwrap();
        assert!(semaphore.try_acquire("a").is_none());
        drop((second, third, other));
        assert!(semaphore.held.lock().is_empty());
    }

    #[test]
    fn a_permit_within_a_lower_bound_counts_as_any_other() {
        let semaphore = KeyedSemaphore::new(3);
        let first = semaphore.try_acquire_within("a", 1).unwrap();
        assert!(semaphore.try_acquire_within("a", 1).is_none());
        assert_eq!((semaphore.left(&"a"), semaphore.left(&"b")), (2, 3));
        let others = semaphore.try_acquire_many("a", 2).unwrap();
        assert!(semaphore.try_acquire_within("a", 9).is_none());
        drop((first, others));
        assert!(semaphore.held.lock().is_empty());
    }

    #[test]
    fn several_permits_are_given_back_together() {
        let semaphore = KeyedSemaphore::new(5);
        let mut permits = semaphore.try_acquire_many("a", 3).unwrap();
        assert!(semaphore.try_acquire_many("a", 3).is_none());
        permits.merge(semaphore.try_acquire_many("a", 2).unwrap());
        assert!(semaphore.try_acquire("a").is_none());
        let other = semaphore.try_acquire_many("b", 5).unwrap();
        drop(permits);
        let last = semaphore.try_acquire_many("a", 5).unwrap();
        drop((other, last));
        assert!(semaphore.held.lock().is_empty());
        assert!(semaphore.try_acquire_many("c", 6).is_none());
        assert!(semaphore.held.lock().is_empty());
    }
}
