//! The share of a pool, such as one of connections, that one key may hold, such as a partner: its slow
//! work leaves the others theirs. Unlike with a `KeyedSemaphore`, whoever finds none free waits.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The shares that are in use of one pool.
#[derive(Debug)]
pub(crate) struct KeyedShares<K: Eq + Hash> {
    /// Most units of one key.
    units_max: usize,
    holders: Mutex<HashMap<K, Holder>>,
}

/// The holder of units, or of a place in the queue for some. It is forgotten when it has neither.
#[derive(Debug)]
struct Holder {
    units: Arc<Semaphore>,
    users: usize,
}

impl<K: Clone + Eq + Hash> KeyedShares<K> {
    /// Shares of this many units.
    pub(crate) fn new(units_max: u32) -> Self {
        let units_max = usize::try_from(units_max).unwrap_or(Semaphore::MAX_PERMITS);
        Self { units_max, holders: Mutex::default() }
    }

    /// This many of the key's units, no more than a share has. The second value is true if they had
    /// to be waited for; those who wait get theirs in the order in which they came.
    ///
    /// # Errors
    /// Never: the share is not closed.
    pub(crate) async fn take(
        self: &Arc<Self>,
        key: K,
        count: u32,
    ) -> Result<(Share<K>, bool), AcquireError> {
        let units = self.join(key.clone());
        // From here on, so that giving up is noted too.
        let mut share = Share { shares: Arc::clone(self), key, permit: None };
        if let Ok(permit) = Arc::clone(&units).try_acquire_many_owned(count) {
            share.permit = Some(permit);
            return Ok((share, false));
        }
        let permit = units.acquire_many_owned(count).await?;
        share.permit = Some(permit);
        Ok((share, true))
    }

    fn join(&self, key: K) -> Arc<Semaphore> {
        let mut holders = self.holders();
        let holder = holders.entry(key).or_insert_with(|| Holder {
            units: Arc::new(Semaphore::new(self.units_max)),
            users: 0,
        });
        holder.users += 1;
        Arc::clone(&holder.units)
    }
}

impl<K: Eq + Hash> KeyedShares<K> {
    fn leave(&self, key: &K) {
        let mut holders = self.holders();
        if let Some(left) = holders.get_mut(key) {
            left.users -= 1;
            if left.users == 0 {
                holders.remove(key);
            }
        }
    }

    fn holders(&self) -> MutexGuard<'_, HashMap<K, Holder>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Units of a key, or the wait for them. They are given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Share<K: Eq + Hash> {
    shares: Arc<KeyedShares<K>>,
    key: K,
    permit: Option<OwnedSemaphorePermit>,
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        // Before the key is forgotten with its semaphore.
        self.permit = None;
        self.shares.leave(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_key_waits_for_its_own_units_alone() {
        let shares = Arc::new(KeyedShares::new(2));
        let first = shares.take("a", 1).await.unwrap();
        let second = shares.take("a", 1).await.unwrap();
        assert!(!first.1 && !second.1);
        let mut third = Box::pin(shares.take("a", 1));
        assert!(third.as_mut().now_or_never().is_none());
        assert!(!shares.take("b", 1).await.unwrap().1, "another one has its own");
        drop(first);
        assert!(third.await.unwrap().1);
    }

    #[tokio::test]
    async fn whoever_holds_nothing_and_waits_for_nothing_is_forgotten() {
        let shares = Arc::new(KeyedShares::new(1));
        let held = shares.take("a", 1).await.unwrap();
        let mut waiting = Box::pin(shares.take("a", 1));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(held);
        assert_eq!(shares.holders().len(), 1, "somebody waits");
        drop(waiting);
        assert!(shares.holders().is_empty());
    }
}
