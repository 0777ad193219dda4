//! A version beside the active one: a canary, which serves a percentage of the users, or a shadow.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rampart_plugins::contract::PolicyKind;
use ring::digest::{Context, SHA256};
use uuid::Uuid;

use super::active::ActivePolicy;
use super::fuel_budget::FuelBudget;
use rampart_types::ClientId;

/// A canary or shadow version. It survives reloads until the rollout ends.
#[derive(Debug)]
pub struct Rollout {
    pub(crate) id: Uuid,
    pub(crate) policy: Arc<ActivePolicy>,
    /// Percentage of the users it serves; `None` for a shadow.
    pub(crate) canary_percentage: Option<u8>,
    /// Fuel that its shadow runs may burn, apart from that of the partner's live calls.
    pub(crate) fuel: FuelBudget,
    /// Shadow runs skipped on this edge, not stored yet.
    pub(crate) skipped: AtomicU64,
}

impl Rollout {
    pub(crate) fn new(id: Uuid, policy: Arc<ActivePolicy>, canary_percentage: Option<u8>) -> Self {
        let (fuel, skipped) = (FuelBudget::default(), AtomicU64::new(0));
        Self { id, policy, canary_percentage, fuel, skipped }
    }

    /// True if it serves this user: the same on every edge and for every version, so that a larger
    /// percentage keeps the users of a smaller one.
    pub(crate) fn includes(&self, client: ClientId, subject: Option<&[u8]>) -> bool {
        let Some(percentage) = self.canary_percentage else { return false };
        bucket(self.policy.kind, client, subject) < u64::from(percentage)
    }
}

/// Bucket of a user among those of the client, 0 to 99: by the user, or else by the partner's
/// identifier. Requests without either count as one user.
fn bucket(kind: PolicyKind, client: ClientId, subject: Option<&[u8]>) -> u64 {
    let mut hash = Context::new(&SHA256);
    hash.update(kind.as_str().as_bytes());
    hash.update(client.uuid().as_bytes());
    hash.update(subject.unwrap_or_default());
    let first = hash.finish().as_ref().iter().take(8).fold(0_u64, |n, b| (n << 8) | u64::from(*b));
    first % 100
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_canary(percentage: u64, kind: PolicyKind) -> Vec<u32> {
        let client = ClientId::from(Uuid::from_u128(7));
        let users = 0..10_000_u32;
        users.filter(|n| bucket(kind, client, Some(&n.to_be_bytes())) < percentage).collect()
    }

    #[test]
    fn a_canary_has_its_percentage_of_the_users_and_grows_by_new_ones_only() {
        let mut before: Vec<u32> = Vec::new();
        for percentage in [1, 10, 50, 99] {
            let now = in_canary(percentage, PolicyKind::Fee);
            let expected = usize::try_from(percentage).unwrap() * 100;
            assert!(now.len().abs_diff(expected) < 200, "{percentage} %: {}", now.len());
            assert!(before.iter().all(|user| now.contains(user)), "{percentage} %");
            before = now;
        }
    }

    #[test]
    fn kinds_and_clients_have_buckets_of_their_own() {
        assert_ne!(in_canary(10, PolicyKind::Fee), in_canary(10, PolicyKind::MethodOrder));
        let bucket_of =
            |client| bucket(PolicyKind::Fee, ClientId::from(Uuid::from_u128(client)), None);
        assert!((0..50).map(bucket_of).collect::<std::collections::HashSet<_>>().len() > 20);
    }
}
