//! Failed logins of operators by address.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::platform::network::network;
use crate::platform::rate_limit::{Gcra, KeyedGcra, Quota};

/// Most addresses whose failures are remembered; the least used is forgotten first.
const ADDRESSES_MAX: u64 = 65_536;
/// Shortest idle time after which the failures of an address are forgotten.
const ADDRESS_IDLE_MIN: Duration = Duration::from_secs(3_600);

/// Failed logins by address.
#[derive(Debug)]
pub struct LoginFailures(KeyedGcra<IpAddr>);

impl LoginFailures {
    /// None yet, at this rate.
    pub(crate) fn new(quota: Quota) -> Self {
        Self(KeyedGcra::new(ADDRESSES_MAX, quota.bucket_idle(ADDRESS_IDLE_MIN)))
    }

    /// The failures of an address, of its network if it is of IPv6.
    pub fn bucket(&self, address: IpAddr) -> Arc<Gcra> {
        self.0.bucket(network(address))
    }
}
