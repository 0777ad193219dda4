//! API clients as they log in: a user name and a password for a pair of tokens, and the next pair
//! for a refresh token. Both are tried by anybody, so tries are counted before anything is hashed.

pub mod authenticate;
pub mod refresh;

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use crate::Core;
use crate::platform::crypto::digest_of;
use crate::platform::error::{Error, Result};
use crate::platform::rate_limit::{Decision, KeyedGcra, Quota};
use crate::tenancy::tenants::Tenant;

/// Most user names, and most networks, whose tries are counted at a time.
const COUNTED_MAX: u64 = 65_536;
/// How long somebody who tries no more is remembered; a bucket of the longest window (an hour)
/// with its whole count as burst is full again by then.
const REMEMBERED: Duration = Duration::from_secs(3_600);
/// Leading bits of an IPv6 address that count: one customer of a provider has the rest to choose.
const IPV6_NETWORK_BITS: u32 = 64;

/// What is tried. Each has buckets of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Try {
    Password,
    RefreshToken,
}

/// Tries of client credentials per user name and per address (section 4 of the contract).
#[derive(Debug)]
pub struct Attempts {
    /// By the digest of the user name, known or not: what is tried may be long, and may be secret.
    by_name: KeyedGcra<[u8; 32]>,
    by_network: KeyedGcra<(Try, IpAddr)>,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            by_name: KeyedGcra::new(COUNTED_MAX, REMEMBERED),
            by_network: KeyedGcra::new(COUNTED_MAX, REMEMBERED),
        }
    }
}

impl Attempts {
    /// Counts a password tried for `username`, at the rate of the client that has it.
    ///
    /// The address comes first: who has used up its own tries takes none of the name's.
    fn count_password(
        &self,
        core: &Core,
        peer: IpAddr,
        username: &str,
        tenant: Option<&Tenant>,
    ) -> Result<()> {
        self.count_network(core, Try::Password, peer, tenant)?;
        let (quota, now) = (quota(core, tenant), core.clock.monotonic_ns());
        admit(core, tenant, self.by_name.take(digest_of(username), quota, now))
    }

    /// Counts a refresh token that says it is `tenant`'s.
    fn count_refresh(&self, core: &Core, peer: IpAddr, tenant: Option<&Tenant>) -> Result<()> {
        self.count_network(core, Try::RefreshToken, peer, tenant)
    }

    /// An address has one bucket for all clients. A try takes as much of it as the rate of the
    /// client it is for says, so that naming a client with a high rate does not fill it up again.
    fn count_network(
        &self,
        core: &Core,
        what: Try,
        peer: IpAddr,
        tenant: Option<&Tenant>,
    ) -> Result<()> {
        let (quota, now) = (quota(core, tenant), core.clock.monotonic_ns());
        admit(core, tenant, self.by_network.take((what, network(peer)), quota, now))
    }
}

fn quota(core: &Core, tenant: Option<&Tenant>) -> Quota {
    tenant.map_or(core.settings.ratelimit.credentials, |tenant| tenant.rates.credentials)
}

fn admit(core: &Core, tenant: Option<&Tenant>, decision: Decision) -> Result<()> {
    if decision.allowed {
        return Ok(());
    }
    let partner = tenant.map_or("", |tenant| &*tenant.slug);
    core.metrics.rate_limited.with_label_values(&["credentials", partner]).inc();
    Err(Error::rate_limited(decision.retry_after_seconds))
}

/// What counts as one address.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let mask = u128::MAX << (Ipv6Addr::BITS - IPV6_NETWORK_BITS);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_counts_as_one_address() {
        let network = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("2001:db8:1:2:ffff::1"), network("2001:db8:1:2::"));
        assert_ne!(network("2001:db8:1:3::1"), network("2001:db8:1:2::1"));
        assert_eq!(network("::ffff:192.0.2.7"), "192.0.2.7");
        assert_ne!(network("192.0.2.7"), network("192.0.2.8"));
    }
}
