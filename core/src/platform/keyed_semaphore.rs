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
        let mut held = self.held.lock();
        let count = held.entry(key.clone()).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(KeyedPermit { held: Arc::clone(&self.held), key })
    }
}

/// One of a key's permits.
#[derive(Debug)]
pub struct KeyedPermit<K: Eq + Hash> {
    held: Arc<Held<K>>,
    key: K,
}

impl<K: Eq + Hash> Drop for KeyedPermit<K> {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        match held.get_mut(&self.key) {
            Some(count @ 2..) => *count -= 1,
            _ => _ = held.remove(&self.key),
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
}
