//! Fuel that live calls of one tenant, or the shadow runs of one version, may burn in a second on this
//! edge, beside the limit of each call: a partner whose policy is dear takes no processor from the others.

use std::sync::atomic::{AtomicU64, Ordering};

const MS_PER_SECOND: u64 = 1_000;
/// Least fuel that a nanosecond of processor time counts as: about what a policy in JavaScript burns.
const FUEL_PER_NS: u64 = 2;

/// Fuel burnt in the current second. A call that began within the budget may overdraw it.
#[derive(Debug, Default)]
pub struct FuelBudget {
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

    /// Counts a call: its fuel, or its processor time where that is more. Fuel leaves out the work of
    /// the host, such as signatures, and counts a slow instruction like any other.
    pub(crate) fn burn(&self, fuel: u64, processor_ns: u64) {
        let fuel = fuel.max(processor_ns.saturating_mul(FUEL_PER_NS));
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
        budget.burn(99, 0);
        assert!(budget.allows(10, 100));
        budget.burn(50, 0);
        assert!(!budget.allows(20, 100) && !budget.allows(999, 100));
        assert!(budget.allows(1_000, 100), "the next second has a budget of its own");
        assert!(!budget.allows(1_001, 0));
    }

    #[test]
    fn processor_time_counts_that_fuel_does_not() {
        let budget = FuelBudget::default();
        assert!(budget.allows(0, 1_000_000_000));
        budget.burn(1_600, 250_000_000);
        assert!(budget.allows(10, 1_000_000_000));
        budget.burn(1_600, 250_000_000);
        assert!(!budget.allows(20, 1_000_000_000), "half a second of a processor");
    }
}
