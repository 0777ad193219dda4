//! The share of a pool's connections that one partner may hold, so that its slow statements leave
//! the others theirs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rampart_types::ClientId;
use sqlx::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The shares that are in use of one pool.
#[derive(Debug)]
pub(super) struct PartnerShares {
    /// Most connections of one partner.
    connections_max: usize,
    partners: Mutex<HashMap<ClientId, Partner>>,
}

/// A partner that holds connections or waits for one. It is forgotten when it does neither.
#[derive(Debug)]
struct Partner {
    connections: Arc<Semaphore>,
    users: usize,
}

impl PartnerShares {
    /// Shares of this many connections.
    pub(super) fn new(connections_max: u32) -> Self {
        let connections_max = usize::try_from(connections_max).unwrap_or(Semaphore::MAX_PERMITS);
        Self { connections_max, partners: Mutex::default() }
    }

    /// One of the partner's connections. The second value is true if it had to be waited for; those
    /// who wait get theirs in the order in which they came.
    ///
    /// # Errors
    /// Never: the share is not closed.
    pub(super) async fn take(self: &Arc<Self>, partner: ClientId) -> Result<(Share, bool), Error> {
        let connections = self.join(partner);
        // From here on, so that giving up is noted too.
        let mut share = Share { shares: Arc::clone(self), partner, permit: None };
        if let Ok(permit) = Arc::clone(&connections).try_acquire_owned() {
            share.permit = Some(permit);
            return Ok((share, false));
        }
        let permit = connections.acquire_owned().await.map_err(|_| Error::PoolClosed)?;
        share.permit = Some(permit);
        Ok((share, true))
    }

    fn join(&self, partner: ClientId) -> Arc<Semaphore> {
        let mut partners = self.partners();
        let partner = partners.entry(partner).or_insert_with(|| Partner {
            connections: Arc::new(Semaphore::new(self.connections_max)),
            users: 0,
        });
        partner.users += 1;
        Arc::clone(&partner.connections)
    }

    fn leave(&self, partner: ClientId) {
        let mut partners = self.partners();
        if let Some(left) = partners.get_mut(&partner) {
            left.users -= 1;
            if left.users == 0 {
                partners.remove(&partner);
            }
        }
    }

    fn partners(&self) -> MutexGuard<'_, HashMap<ClientId, Partner>> {
        self.partners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of a partner's connections, or the wait for it. It is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Share {
    shares: Arc<PartnerShares>,
    partner: ClientId,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Share {
    fn drop(&mut self) {
        // Before the partner is forgotten with its semaphore.
        self.permit = None;
        self.shares.leave(self.partner);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use uuid::Uuid;

    use super::*;

    fn partner(number: u128) -> ClientId {
        Uuid::from_u128(number).into()
    }

    #[tokio::test]
    async fn a_partner_waits_for_its_own_connections_alone() {
        let shares = Arc::new(PartnerShares::new(2));
        let first = shares.take(partner(1)).await.unwrap();
        let second = shares.take(partner(1)).await.unwrap();
        assert!(!first.1 && !second.1);
        let mut third = Box::pin(shares.take(partner(1)));
        assert!(third.as_mut().now_or_never().is_none());
        assert!(!shares.take(partner(2)).await.unwrap().1, "another one has its own");
        drop(first);
        assert!(third.await.unwrap().1);
    }

    #[tokio::test]
    async fn whoever_holds_nothing_and_waits_for_nothing_is_forgotten() {
        let shares = Arc::new(PartnerShares::new(1));
        let held = shares.take(partner(1)).await.unwrap();
        let mut waiting = Box::pin(shares.take(partner(1)));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(held);
        assert_eq!(shares.partners().len(), 1, "somebody waits");
        drop(waiting);
        assert!(shares.partners().is_empty());
    }
}
