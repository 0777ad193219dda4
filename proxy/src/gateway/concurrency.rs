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
}

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
        let InFlight { all, addresses, partners } = in_flight;
        let share_used_up = |limit, attempt| {
            self.core.metrics.request_shed(limit);
            Box::new(self.core.refuse_share(&context.request_id, attempt))
        };
        let address = addresses.try_acquire(network(context.client_address)).ok_or_else(|| {
            share_used_up("address", "take a request: too many of this address are in flight")
        })?;
        let partner = Some(&context.labels.partner).filter(|partner| !partner.is_empty());
        let partner = partner.map(|partner| {
            partners.try_acquire(Arc::clone(partner)).ok_or_else(|| {
                share_used_up("partner", "take a request: too many of this partner are in flight")
            })
        });
        let partner = partner.transpose()?;
        let all = Arc::clone(all).try_acquire_owned().map_err(|_| {
            self.core.metrics.request_shed("total");
            Box::new(self.unavailable(context, "take a request: too many are in flight"))
        })?;
        Ok(Permit { _address: address, _partner: partner, _all: all })
    }
}
