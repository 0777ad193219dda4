//! Breakers as the metrics show them.

use crate::Core;

impl Core {
    /// Shows for every active policy whether its breaker is open, and nothing of others.
    pub(crate) fn show_breakers(&self) {
        self.metrics.policy_breaker.reset();
        let snapshot = self.snapshots.current();
        for tenant in snapshot.tenants.values() {
            for policy in tenant.policies.all() {
                let labels = [policy.kind.as_str(), &*tenant.slug];
                let gauge = self.metrics.policy_breaker.with_label_values(&labels);
                // A version on trial shares the line of the active one.
                gauge.set(gauge.get().max(policy.breaker.is_open().into()));
            }
        }
    }
}
