//! Fuel that live calls of one tenant may burn in a second on this edge, beside the limit of each call:
//! a partner whose policy is dear takes no processor from the others.

use std::sync::atomic::{AtomicU64, Ordering};

const MS_PER_SECOND: u64 = 1_000;

/// Fuel burnt in the current second. A call that began within the budget may overdraw it.
#[derive(Debug, Default)]
pub(crate) struct FuelBudget {
    /// The current second, from 1.
    second: AtomicU64,
    burnt: AtomicU64,
}

impl FuelBudget {
    /// True if less than `fuel_max` was burnt in this second.
    pub(crate) fn allows(&self, now_ms: u64, fuel_max: u64) -> bool {
        let (second, last) = (now_ms / MS_PER_SECOND + 1, self.second.load(Ordering::Relaxed));
        // Of several callers in a new second one starts it.
        if last < second
            && self
                .second
                .compare_exchange(last, second, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            self.burnt.store(0, Ordering::Relaxed);
        }
        self.burnt.load(Ordering::Relaxed) < fuel_max
    }

    /// Counts the fuel of a call.
    pub(crate) fn burn(&self, fuel: u64) {
        self.burnt.fetch_add(fuel, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_burnt_in_a_second_is_bounded() {
        let budget = FuelBudget::default();
        assert!(budget.allows(0, 100));
        budget.burn(99);
        assert!(budget.allows(10, 100));
        budget.burn(50);
        assert!(!budget.allows(20, 100) && !budget.allows(999, 100));
        assert!(budget.allows(1_000, 100), "the next second has a budget of its own");
        assert!(!budget.allows(1_001, 0));
    }
}
