//! Failed logins at a private listener by address, and the credentials that have proven a caller there.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;

use crate::platform::network::network;
use crate::platform::rate_limit::{Gcra, KeyedGcra, Quota};

/// Most addresses whose failures are remembered; the least used is forgotten first.
const ADDRESSES_MAX: u64 = 65_536;
/// Shortest idle time after which the failures of an address are forgotten.
const ADDRESS_IDLE_MIN: Duration = Duration::from_secs(3_600);
/// Most credentials that are known; the least used is forgotten first.
const KNOWN_MAX: u64 = 4_096;
/// Idle time after which one is forgotten.
const KNOWN_IDLE: Duration = Duration::from_secs(3_600);

/// Failed logins by address. An IPv6 address stands for its network.
#[derive(Debug)]
pub struct LoginFailures {
    by_address: KeyedGcra<IpAddr>,
    /// Digests of tokens and sessions that have proven a caller there: failures of others behind the same
    /// address, such as that of a tunnel, or on the same machine, do not stop who is at work.
    known: Cache<(IpAddr, [u8; 32]), ()>,
}

impl LoginFailures {
    /// None yet, at this rate.
    pub(crate) fn new(quota: Quota) -> Self {
        let by_address = KeyedGcra::new(ADDRESSES_MAX, quota.bucket_idle(ADDRESS_IDLE_MIN));
        let known = Cache::builder().max_capacity(KNOWN_MAX).time_to_idle(KNOWN_IDLE).build();
        Self { by_address, known }
    }

    /// The failures of an address.
    pub fn bucket(&self, address: IpAddr) -> Arc<Gcra> {
        self.by_address.bucket(network(address))
    }

    /// True if the credential of this SHA-256 has proven a caller at this address.
    pub fn is_known(&self, address: IpAddr, credential: [u8; 32]) -> bool {
        self.known.get(&(network(address), credential)).is_some()
    }

    /// Knows a credential that has proven a caller.
    pub fn know(&self, address: IpAddr, credential: [u8; 32]) {
        self.known.insert((network(address), credential), ());
    }

    /// Forgets a credential that has failed.
    pub fn forget(&self, address: IpAddr, credential: [u8; 32]) {
        self.known.invalidate(&(network(address), credential));
    }
}
