//! Breaker states in the metrics.

use std::sync::Arc;

use crate::Core;
use crate::tenancy::tenants::Tenant;

impl Core {
    /// Sets the gauge of every policy in use of an active partner, open or closed, and removes those
    /// of others.
    pub(crate) fn update_breaker_gauges(&self) {
        self.metrics.policy_breaker.reset();
        let snapshot = self.snapshots.current();
        let active = |tenant: &&Arc<Tenant>| self.metrics.is_active(&tenant.slug);
        for tenant in snapshot.tenants.values().filter(active) {
            for policy in tenant.policies.all() {
                let labels = [policy.kind.as_str(), &*tenant.slug];
                let gauge = self.metrics.policy_breaker.with_label_values(&labels);
                // A rollout shares the gauge of the active version.
                gauge.set(gauge.get().max(policy.breaker.is_open().into()));
            }
        }
    }
}
