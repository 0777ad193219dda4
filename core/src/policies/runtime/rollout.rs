//! A version that is tried beside the active one: it answers a share of the users, or it runs in
//! the shadow.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rampart_plugins::contract::PolicyKind;
use ring::digest::{Context, SHA256};
use uuid::Uuid;

use super::active::ActivePolicy;
use rampart_types::ClientId;

/// A version on trial. It outlives reloads for as long as the trial lasts.
#[derive(Debug)]
pub(crate) struct Rollout {
    pub(crate) id: Uuid,
    pub(crate) policy: Arc<ActivePolicy>,
    /// Percent of the users it answers; `None`: none, it runs in the shadow.
    pub(crate) share: Option<u8>,
    /// Shadow runs that this edge had no room for, not written yet.
    pub(crate) skipped: AtomicU64,
    /// Differences seen on this edge, which choose the slot of the next one.
    pub(crate) differences: AtomicU64,
}

impl Rollout {
    pub(crate) fn new(id: Uuid, policy: Arc<ActivePolicy>, share: Option<u8>) -> Self {
        let (skipped, differences) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { id, policy, share, skipped, differences }
    }

    /// Whether it answers this user: the same on every edge and for every version, so that a larger
    /// share keeps those who are in.
    pub(crate) fn takes(&self, client: ClientId, subject: Option<&[u8]>) -> bool {
        let Some(share) = self.share else { return false };
        hundredth(self.policy.kind, client, subject) < u64::from(share)
    }
}

/// In which hundredth of a client's users somebody is, 0 to 99: by the user, or else by the
/// partner's identifier. Requests without either are one user, the client itself.
fn hundredth(kind: PolicyKind, client: ClientId, subject: Option<&[u8]>) -> u64 {
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

    fn in_share(share: u64, kind: PolicyKind) -> Vec<u32> {
        let client = ClientId::from(Uuid::from_u128(7));
        let users = 0..10_000_u32;
        users.filter(|n| hundredth(kind, client, Some(&n.to_be_bytes())) < share).collect()
    }

    #[test]
    fn a_share_is_that_share_of_the_users_and_grows_by_new_ones_alone() {
        let mut before: Vec<u32> = Vec::new();
        for share in [1, 10, 50, 99] {
            let now = in_share(share, PolicyKind::Fee);
            let expected = usize::try_from(share).unwrap() * 100;
            assert!(now.len().abs_diff(expected) < 200, "{share} %: {}", now.len());
            assert!(before.iter().all(|user| now.contains(user)), "{share} %");
            before = now;
        }
    }

    #[test]
    fn kinds_and_clients_are_shared_out_by_themselves() {
        assert_ne!(in_share(10, PolicyKind::Fee), in_share(10, PolicyKind::MethodOrder));
        let of = |client| hundredth(PolicyKind::Fee, ClientId::from(Uuid::from_u128(client)), None);
        assert!((0..50).map(of).collect::<std::collections::HashSet<_>>().len() > 20);
    }
}
