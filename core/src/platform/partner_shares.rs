//! The share of a pool, such as one of connections, that one partner may hold: its slow work leaves the
//! others theirs. Unlike those of a `KeyedSemaphore`, whoever finds none free waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rampart_types::ClientId;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The shares that are in use of one pool.
#[derive(Debug)]
pub(crate) struct PartnerShares {
    /// Most units of one partner.
    units_max: usize,
    partners: Mutex<HashMap<ClientId, Partner>>,
}

/// A partner that holds units or waits for some. It is forgotten when it does neither.
#[derive(Debug)]
struct Partner {
    units: Arc<Semaphore>,
    users: usize,
}

impl PartnerShares {
    /// Shares of this many units.
    pub(crate) fn new(units_max: u32) -> Self {
        let units_max = usize::try_from(units_max).unwrap_or(Semaphore::MAX_PERMITS);
        Self { units_max, partners: Mutex::default() }
    }

    /// This many of the partner's units, no more than a share has. The second value is true if they had
    /// to be waited for; those who wait get theirs in the order in which they came.
    ///
    /// # Errors
    /// Never: the share is not closed.
    pub(crate) async fn take(
        self: &Arc<Self>,
        partner: ClientId,
        count: u32,
    ) -> Result<(Share, bool), AcquireError> {
        let units = self.join(partner);
        // From here on, so that giving up is noted too.
        let mut share = Share { shares: Arc::clone(self), partner, permit: None };
        if let Ok(permit) = Arc::clone(&units).try_acquire_many_owned(count) {
            share.permit = Some(permit);
            return Ok((share, false));
        }
        let permit = units.acquire_many_owned(count).await?;
        share.permit = Some(permit);
        Ok((share, true))
    }

    fn join(&self, partner: ClientId) -> Arc<Semaphore> {
        let mut partners = self.partners();
        let partner = partners.entry(partner).or_insert_with(|| Partner {
            units: Arc::new(Semaphore::new(self.units_max)),
            users: 0,
        });
        partner.users += 1;
        Arc::clone(&partner.units)
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

/// Units of a partner, or the wait for them. They are given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
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
    async fn a_partner_waits_for_its_own_units_alone() {
        let shares = Arc::new(PartnerShares::new(2));
        let first = shares.take(partner(1), 1).await.unwrap();
        let second = shares.take(partner(1), 1).await.unwrap();
        assert!(!first.1 && !second.1);
        let mut third = Box::pin(shares.take(partner(1), 1));
        assert!(third.as_mut().now_or_never().is_none());
        assert!(!shares.take(partner(2), 1).await.unwrap().1, "another one has its own");
        drop(first);
        assert!(third.await.unwrap().1);
    }

    #[tokio::test]
    async fn whoever_holds_nothing_and_waits_for_nothing_is_forgotten() {
        let shares = Arc::new(PartnerShares::new(1));
        let held = shares.take(partner(1), 1).await.unwrap();
        let mut waiting = Box::pin(shares.take(partner(1), 1));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(held);
        assert_eq!(shares.partners().len(), 1, "somebody waits");
        drop(waiting);
        assert!(shares.partners().is_empty());
    }
}
