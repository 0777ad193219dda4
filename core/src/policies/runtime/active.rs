//! The policies of one tenant in a snapshot.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rampart_plugins::contract::{ConfigEntry, PolicyKind};
use rampart_plugins::{Breaker, KeyRing, Policy};

use super::compiled::Slot;
use super::log_throttle::LogThrottle;
use super::rollout::Rollout;
use super::sample_throttle::SampleThrottle;
use crate::platform::metrics::PolicyMeters;

/// What a tenant has put in the place of the built-in rules; `None` is the built-in.
#[derive(Clone, Debug, Default)]
pub struct TenantPolicies {
    /// Decides whether offers and onboarding requests are authentic.
    pub signature: Option<Arc<ActivePolicy>>,
    /// States fees.
    pub fee: Option<Arc<ActivePolicy>>,
    /// Orders payment methods.
    pub method_order: Option<Arc<ActivePolicy>>,
    /// Keys that the signature policy may name.
    pub verification_keys: KeyRing,
    /// What is tried beside the active ones, at most one of a kind.
    pub(crate) trials: Vec<Arc<Rollout>>,
}

impl TenantPolicies {
    /// Whether a policy of this kind may have a say: for all users, or for a share of them.
    pub fn has(&self, kind: PolicyKind) -> bool {
        self.get(kind).is_some() || self.trial(kind).is_some()
    }

    /// The active policy of a kind.
    pub fn get(&self, kind: PolicyKind) -> Option<&Arc<ActivePolicy>> {
        match kind {
            PolicyKind::Signature => &self.signature,
            PolicyKind::Fee => &self.fee,
            PolicyKind::MethodOrder => &self.method_order,
        }
        .as_ref()
    }

    /// What is tried beside it.
    pub(crate) fn trial(&self, kind: PolicyKind) -> Option<&Arc<Rollout>> {
        self.trials.iter().find(|trial| trial.policy.kind == kind)
    }

    /// A version that is active or on trial.
    pub(crate) fn version(&self, kind: PolicyKind, version: i64) -> Option<&Arc<ActivePolicy>> {
        let tried = self.trial(kind).map(|trial| &trial.policy);
        self.get(kind).into_iter().chain(tried).find(|policy| policy.version == version)
    }

    pub(crate) fn set(&mut self, policy: Arc<ActivePolicy>) {
        let place = match policy.kind {
            PolicyKind::Signature => &mut self.signature,
            PolicyKind::Fee => &mut self.fee,
            PolicyKind::MethodOrder => &mut self.method_order,
        };
        *place = Some(policy);
    }

    /// Those that are active or on trial, of any kind.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ActivePolicy>> {
        let active = PolicyKind::ALL.into_iter().filter_map(|kind| self.get(kind));
        active.chain(self.trials.iter().map(|trial| &trial.policy))
    }
}

/// One version of a tenant's policy. It never changes, so it outlives reloads together with its
/// breaker for as long as it is active or on trial.
pub struct ActivePolicy {
    /// Its kind.
    pub kind: PolicyKind,
    /// Its number among the tenant's versions of this kind, from 1.
    pub version: i64,
    /// Whether a malfunction refuses the request instead of taking the built-in rule.
    pub fail_closed: bool,
    /// What the operator configured, as the policy gets it.
    pub(crate) config: Vec<ConfigEntry>,
    pub(crate) slot: Arc<Slot>,
    pub(crate) breaker: Breaker,
    /// Questions on the request path of this edge that are kept.
    pub(crate) samples: SampleThrottle,
    /// What its calls move, found by the first.
    pub(crate) meters: OnceLock<PolicyMeters>,
    /// Its malfunctions in the log: not more often than once in a while.
    pub(crate) log: LogThrottle,
    /// What serves until this one is compiled here.
    pub(crate) previous: Option<Arc<Self>>,
}

impl ActivePolicy {
    /// SHA-256 of its component, in lower-case hex.
    pub fn digest(&self) -> &str {
        &self.slot.digest
    }

    /// This version, or the one before it while this one is not compiled on this edge yet.
    pub(crate) fn serving(self: &Arc<Self>) -> &Arc<Self> {
        match &self.previous {
            Some(previous) if self.slot.is_pending() => previous,
            _ => self,
        }
    }

    /// Its native code; `None` when it is not compiled yet or could not be.
    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.slot.policy()
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
