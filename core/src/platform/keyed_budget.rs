//! A budget for all keys together, such as partners, of which no key takes all.

use std::hash::Hash;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::keyed_semaphore::{KeyedPermit, KeyedSemaphore};

/// A number of units, and how many of them each key may hold.
#[derive(Debug)]
pub struct KeyedBudget<K: Eq + Hash> {
    all: Arc<Semaphore>,
    of_keys: KeyedSemaphore<K>,
}

/// Units that a key holds, given back when they are dropped.
#[derive(Debug)]
pub struct BudgetShare<K: Eq + Hash> {
    all: OwnedSemaphorePermit,
    of_key: KeyedPermit<K>,
}

impl<K: Clone + Eq + Hash> KeyedBudget<K> {
    /// `units` in all, and at most `units_per_key` of them for each key.
    pub fn new(units: usize, units_per_key: usize) -> Self {
        let all = Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS)));
        Self { all, of_keys: KeyedSemaphore::new(units_per_key) }
    }

    /// Makes `share` hold `units` for `key`, unless it holds as many; `false` when there are not that
    /// many left. A share is of one key for good.
    pub fn extend(&self, key: &K, share: &mut Option<BudgetShare<K>>, units: usize) -> bool {
        let held = share.as_ref().map_or(0, |share| share.all.num_permits());
        let missing = units.saturating_sub(held);
        let Ok(permits @ 1..) = u32::try_from(missing) else {
            return missing == 0;
        };
        let Some(of_key) = self.of_keys.try_acquire_many(key.clone(), missing) else {
            return false;
        };
        let all = Arc::clone(&self.all).try_acquire_many_owned(permits);
        let Ok(all) = all else { return false };
        match share {
            Some(share) => {
                share.all.merge(all);
                share.of_key.merge(of_key);
            }
            None => *share = Some(BudgetShare { all, of_key }),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_extended_by_what_it_lacks() {
        let budget = KeyedBudget::new(3, 3);
        let (mut one, mut other) = (None, None);
        assert!(budget.extend(&"a", &mut one, 0) && one.is_none());
        assert!(budget.extend(&"a", &mut one, 1));
        assert!(budget.extend(&"a", &mut one, 2));
        assert!(budget.extend(&"a", &mut one, 1), "it holds more already");
        assert!(budget.extend(&"a", &mut other, 1));
        assert!(!budget.extend(&"a", &mut other, 2));
        drop(one);
        assert!(budget.extend(&"a", &mut other, 3));
        assert!(!budget.extend(&"a", &mut other, usize::MAX));
    }

    #[test]
    fn a_key_leaves_units_to_the_others() {
        let budget = KeyedBudget::new(4, 2);
        let (mut a, mut more, mut b, mut c) = (None, None, None, None);
        assert!(budget.extend(&"a", &mut a, 2));
        assert!(!budget.extend(&"a", &mut more, 1));
        assert!(!budget.extend(&"a", &mut a, 3));
        assert!(budget.extend(&"b", &mut b, 1) && budget.extend(&"c", &mut c, 1));
        // What a key may still have is not there, and does not count as its own then.
        assert!(!budget.extend(&"b", &mut b, 2));
        drop(a);
        assert!(budget.extend(&"b", &mut b, 2));
        assert!(budget.extend(&"a", &mut more, 1));
    }
}
