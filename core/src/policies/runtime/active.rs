//! The policies of one tenant in a snapshot.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use rampart_plugins::contract::{ConfigEntry, PolicyKind};
use rampart_plugins::{Breaker, KeyRing};

use super::fuel_budget::FuelBudget;
use super::rollout::Rollout;
use super::sample_throttle::SampleThrottle;
use super::slot::Slot;
use crate::platform::log_throttle::LogThrottle;
use crate::platform::metrics::PolicyMeters;

/// Policies that replace a tenant's built-in rules.
#[derive(Clone, Debug, Default)]
pub struct TenantPolicies {
    /// At most one of a kind.
    active: Vec<Arc<ActivePolicy>>,
    /// Keys that the signature policy may name.
    pub verification_keys: KeyRing,
    /// Fuel that its live calls may burn; it survives reloads.
    pub(crate) fuel: Arc<FuelBudget>,
    /// Canaries and shadow runs, at most one of a kind.
    pub(crate) rollouts: Vec<Arc<Rollout>>,
}

impl TenantPolicies {
    /// True if a policy of this kind serves all users or some of them.
    pub fn has(&self, kind: PolicyKind) -> bool {
        self.get(kind).is_some() || self.rollout(kind).is_some()
    }

    /// The active policy of a kind.
    pub fn get(&self, kind: PolicyKind) -> Option<&Arc<ActivePolicy>> {
        self.active.iter().find(|policy| policy.kind == kind)
    }

    pub(crate) fn rollout(&self, kind: PolicyKind) -> Option<&Arc<Rollout>> {
        self.rollouts.iter().find(|rollout| rollout.policy.kind == kind)
    }

    /// A version that is active or in a rollout.
    pub(crate) fn version(&self, kind: PolicyKind, version: i64) -> Option<&Arc<ActivePolicy>> {
        let rollout = self.rollout(kind).map(|rollout| &rollout.policy);
        self.get(kind).into_iter().chain(rollout).find(|policy| policy.version == version)
    }

    /// Makes a version the active one of its kind.
    pub(crate) fn set(&mut self, policy: Arc<ActivePolicy>) {
        self.active.retain(|replaced| replaced.kind != policy.kind);
        self.active.push(policy);
    }

    /// Every version that is active or in a rollout.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ActivePolicy>> {
        self.active.iter().chain(self.rollouts.iter().map(|rollout| &rollout.policy))
    }
}

/// One version of a tenant's policy. It is immutable, so it survives reloads with its breaker while
/// it is active or in a rollout.
pub struct ActivePolicy {
    /// Its kind.
    pub kind: PolicyKind,
    /// Its number among the tenant's versions of this kind, from 1.
    pub version: i64,
    /// True to refuse the request when the policy fails, instead of falling back to the built-in rule.
    pub fail_closed: bool,
    /// The operator's configuration in the form of the contract.
    pub(crate) config: Vec<ConfigEntry>,
    pub(crate) slot: Arc<Slot>,
    pub(crate) breaker: Breaker,
    /// Rate limit of sampled requests on this edge.
    pub(crate) sample_throttle: SampleThrottle,
    /// Rate limit of stored log lines on this edge.
    pub(crate) stored_log: SampleThrottle,
    /// Calls whose log lines were not stored since the last that were.
    pub(crate) log_calls_dropped: AtomicU64,
    /// Metrics of its calls, looked up by the first.
    pub(crate) meters: OnceLock<PolicyMeters>,
    /// Rate limit of logged failures.
    pub(crate) log_throttle: LogThrottle,
    /// The version that serves until this one is compiled here, and is let go of then.
    pub(crate) previous: ArcSwapOption<Self>,
}

impl ActivePolicy {
    /// SHA-256 of its component, in lower-case hex.
    pub fn digest(&self) -> &str {
        &self.slot.digest
    }

    /// This version, or the one before it while this one is not compiled on this edge yet.
    pub(crate) fn serving(self: &Arc<Self>) -> Arc<Self> {
        match self.previous.load_full() {
            Some(previous) if self.slot.is_pending() => previous,
            Some(_) => {
                self.previous.store(None);
                Arc::clone(self)
            }
            None => Arc::clone(self),
        }
    }
}

impl fmt::Debug for ActivePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActivePolicy")
            .field("kind", &self.kind)
            .field("version", &self.version)
            .field("digest", &self.slot.digest)
            .finish_non_exhaustive()
    }
}
