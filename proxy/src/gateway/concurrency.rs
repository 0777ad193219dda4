//! The core's work on one request: bounded in number and in time.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use rampart_core::http::reply::Reply;
use rampart_core::platform::keyed_semaphore::{KeyedPermit, KeyedSemaphore};
use rampart_core::platform::network::network;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::Gateway;
use super::context::Context;
use crate::config;

/// Why the core gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkFailure {
    Panicked,
    TimedOut,
}

/// Gives what `work` gives, and nothing else gets out: no panic, no endless wait.
pub(super) fn contain(
    work: impl Future<Output = Reply>,
    bound: Duration,
) -> impl Future<Output = Result<Reply, WorkFailure>> {
    // No `async fn`: it would have room for `work` twice, as its argument and below the timeout.
    timeout(bound, AssertUnwindSafe(work).catch_unwind()).map(|done| match done {
        Ok(reply) => reply.map_err(|_| WorkFailure::Panicked),
        Err(_) => Err(WorkFailure::TimedOut),
    })
}

/// Permits for requests in flight: of all, and of each address and partner among them, so that the
/// slow calls of one cost the others nothing.
pub(super) struct InFlight {
    all: Arc<Semaphore>,
    addresses: KeyedSemaphore<IpAddr>,
    partners: KeyedSemaphore<Arc<str>>,
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct Permit {
    _address: KeyedPermit<IpAddr>,
    /// None for a request that no partner signed.
    _partner: Option<KeyedPermit<Arc<str>>>,
    _all: OwnedSemaphorePermit,
}

impl InFlight {
    /// As many as the settings say.
    pub(super) fn new(edge: &config::Edge) -> Self {
        Self {
            all: Arc::new(Semaphore::new(edge.in_flight_max)),
            addresses: KeyedSemaphore::new(edge.in_flight_per_address_max),
            partners: KeyedSemaphore::new(edge.in_flight_per_partner()),
        }
    }

    /// A permit for a request from `address`, of `partner` if that is not empty.
    fn try_acquire(&self, address: IpAddr, partner: &Arc<str>) -> Result<Permit, Limit> {
        let of_address = self.addresses.try_acquire(network(address)).ok_or(OF_ADDRESS)?;
        let of_partner = match partner.is_empty() {
            true => None,
            false => Some(self.partners.try_acquire(Arc::clone(partner)).ok_or(OF_PARTNER)?),
        };
        let all = Arc::clone(&self.all).try_acquire_owned().map_err(|_| OF_ALL)?;
        Ok(Permit { _address: of_address, _partner: of_partner, _all: all })
    }
}

/// A limit of requests in flight.
struct Limit {
    /// Its name in metrics.
    name: &'static str,
    /// The attempt that it stops, for the caller.
    attempt: &'static str,
    /// True for the share of one sender.
    is_share: bool,
}

const OF_ADDRESS: Limit = Limit {
    name: "address",
    attempt: "take a request: too many of this address are in flight",
    is_share: true,
};
const OF_PARTNER: Limit = Limit {
    name: "partner",
    attempt: "take a request: too many of this partner are in flight",
    is_share: true,
};
const OF_ALL: Limit =
    Limit { name: "total", attempt: "take a request: too many are in flight", is_share: false };

impl Gateway {
    /// Takes one of the permits of `in_flight`.
    ///
    /// # Errors
    /// The finished answer.
    pub(super) fn acquire_permit(
        &self,
        in_flight: &InFlight,
        context: &Context,
    ) -> Result<Permit, Box<Reply>> {
        let acquired = in_flight.try_acquire(context.client_address, &context.labels.partner);
        acquired.map_err(|Limit { name, attempt, is_share }| {
            self.core.metrics.request_shed(name);
            Box::new(match is_share {
                true => self.core.refuse_share(&context.request_id, attempt),
                false => self.unavailable(context, attempt),
            })
        })
    }
}
