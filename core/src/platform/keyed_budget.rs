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

/// The limit that a share would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetLimit {
    /// Of its key.
    Key,
    /// Of all keys together.
    Total,
}

impl<K: Clone + Eq + Hash> KeyedBudget<K> {
    /// `units` in all, and at most `units_per_key` of them for each key.
    pub fn new(units: usize, units_per_key: usize) -> Self {
        let all = Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS)));
        Self { all, of_keys: KeyedSemaphore::new(units_per_key) }
    }

    /// Units that no key holds.
    pub fn available(&self) -> usize {
        self.all.available_permits()
    }

    /// Makes `share` hold `units` for `key`, unless it holds as many. A share is of one key for good.
    ///
    /// # Errors
    /// When there are not that many left: the limit that is reached.
    pub fn extend(
        &self,
        key: &K,
        share: &mut Option<BudgetShare<K>>,
        units: usize,
    ) -> Result<(), BudgetLimit> {
        let held = share.as_ref().map_or(0, |share| share.all.num_permits());
        let missing = units.saturating_sub(held);
        let Ok(permits @ 1..) = u32::try_from(missing) else {
            return if missing == 0 { Ok(()) } else { Err(BudgetLimit::Total) };
        };
        let of_key = self.of_keys.try_acquire_many(key.clone(), missing).ok_or(BudgetLimit::Key)?;
        let all = Arc::clone(&self.all).try_acquire_many_owned(permits);
        let all = all.map_err(|_| BudgetLimit::Total)?;
        match share {
            Some(share) => {
                share.all.merge(all);
                share.of_key.merge(of_key);
            }
            None => *share = Some(BudgetShare { all, of_key }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_extended_by_what_it_lacks() {
        let budget = KeyedBudget::new(3, 3);
        let (mut one, mut other) = (None, None);
        assert_eq!(budget.extend(&"a", &mut one, 0), Ok(()));
        assert!(one.is_none());
        assert_eq!(budget.extend(&"a", &mut one, 1), Ok(()));
        assert_eq!(budget.extend(&"a", &mut one, 2), Ok(()));
        assert_eq!(budget.extend(&"a", &mut one, 1), Ok(()), "it holds more already");
        assert_eq!(budget.extend(&"a", &mut other, 1), Ok(()));
        assert_eq!(budget.extend(&"a", &mut other, 2), Err(BudgetLimit::Key));
        drop(one);
        assert_eq!(budget.extend(&"a", &mut other, 3), Ok(()));
        assert_eq!(budget.extend(&"a", &mut other, usize::MAX), Err(BudgetLimit::Total));
    }

    #[test]
    fn a_key_leaves_units_to_the_others() {
        let budget = KeyedBudget::new(4, 2);
        let (mut a, mut more, mut b, mut c) = (None, None, None, None);
        assert_eq!(budget.extend(&"a", &mut a, 2), Ok(()));
        assert_eq!(budget.extend(&"a", &mut more, 1), Err(BudgetLimit::Key));
        assert_eq!(budget.extend(&"a", &mut a, 3), Err(BudgetLimit::Key));
        assert_eq!(budget.extend(&"b", &mut b, 1), Ok(()));
        assert_eq!(budget.extend(&"c", &mut c, 1), Ok(()));
        // What a key may still have is not there, and does not count as its own then.
        assert_eq!(budget.extend(&"b", &mut b, 2), Err(BudgetLimit::Total));
        drop(a);
        assert_eq!(budget.extend(&"b", &mut b, 2), Ok(()));
        assert_eq!(budget.extend(&"a", &mut more, 1), Ok(()));
    }
}
