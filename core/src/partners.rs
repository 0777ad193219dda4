//! Login of API clients: a user name and a password for a token pair, and a refresh token for the
//! next one. Both endpoints are public, so attempts are counted before anything is hashed. [`staff`]
//! are the people of a partner, who sign in to the portal.

pub mod authenticate;
pub mod refresh;
pub mod staff;

use std::net::IpAddr;
use std::time::Duration;

use crate::Core;
use crate::auth::tokens::refresh::RefreshToken;
use crate::platform::crypto::sha256;
use crate::platform::error::{Error, Result};
use crate::platform::network::network;
use crate::platform::rate_limit::{Decision, KeyedGcra, Quota};
use crate::platform::shared_bucket;
use crate::tenancy::tenants::{Sender, Tenant};

/// Most buckets of user names, and of networks.
const BUCKETS_MAX: u64 = 65_536;
/// Idle time after which a bucket is evicted; one of the longest window (an hour) is full again by
/// then.
const BUCKET_IDLE: Duration = Duration::from_secs(3_600);
/// Limit of a network from which staff sign in or ask for mails.
const STAFF_QUOTA: Quota = Quota::new(60, 60, 60);
/// Time for which a login makes its network known: 15 days, and 30 after another one.
const KNOWN_QUOTA: Quota = Quota::new(1, 15 * 86_400, 2);

/// The attempted credential. Each has its own buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CredentialKind {
    Password,
    RefreshToken,
    /// Of a staff member, or a mail about it.
    Staff,
}

/// Rate limits of client credentials per user name and per address (section 4 of the contract). A
/// bucket is of one quota, because that of a partner may be changed.
#[derive(Debug)]
pub struct Attempts {
    /// By the digest of the user name, known or not, and the kind of its bucket: the input may be long,
    /// or a secret.
    by_name: KeyedGcra<([u8; 32], Quota)>,
    by_network: KeyedGcra<(CredentialKind, IpAddr, Quota)>,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            by_name: KeyedGcra::new(BUCKETS_MAX, BUCKET_IDLE),
            by_network: KeyedGcra::new(BUCKETS_MAX, BUCKET_IDLE),
        }
    }
}

impl Attempts {
    /// Counts a password attempt for `username`, at the rate of its client: by this edge, and then by
    /// all together, so that what this edge refuses costs the database no write.
    ///
    /// The address is counted first: an exhausted address takes nothing from the name's bucket. Nor does
    /// a sender from which the client accepts no login: those have another bucket for the name. A network
    /// from which the client has logged in passes when that of the name is empty: it has its own ten
    /// tries, and those of strangers do not keep the client out.
    async fn count_password(
        &self,
        core: &Core,
        sender: &Sender,
        username: &str,
        tenant: Option<&Tenant>,
    ) -> Result<()> {
        let peer = sender.address;
        self.count_network(core, CredentialKind::Password, peer, tenant)?;
        let network = sha256(&format!("partners/network/{}", network(peer)));
        let (quota, now) = (quota(core, tenant), core.clock.monotonic_ns());
        admit(core, tenant, shared_bucket::take(core, &network, quota).await?)?;
        let is_elsewhere = tenant.is_some_and(|tenant| !tenant.allowed_senders.include(sender));
        let bucket = if is_elsewhere { "elsewhere" } else { "name" };
        let name = sha256(&format!("partners/{bucket}/{username}"));
        let mut decision = self.by_name.take((name, quota), quota, now);
        if decision.allowed {
            decision = shared_bucket::take(core, &name, quota).await?;
        }
        let known = known_bucket(peer, username);
        if !decision.allowed && shared_bucket::is_taken_from(core, &known, KNOWN_QUOTA).await? {
            return Ok(());
        }
        admit(core, tenant, decision)
    }

    /// Knows the network of a login under `username`, on every edge.
    async fn know(&self, core: &Core, peer: IpAddr, username: &str) -> Result<()> {
        // Refused while it is known for long enough.
        shared_bucket::take(core, &known_bucket(peer, username), KNOWN_QUOTA).await.map(drop)
    }

    /// Counts a refresh token that claims to be `tenant`'s, in the same order.
    ///
    /// Only a token of a client's own login takes from the client's bucket: a partner's users would
    /// use it up, and so would made-up tokens, which name any client.
    async fn count_refresh(
        &self,
        core: &Core,
        peer: IpAddr,
        token: Option<&RefreshToken>,
        tenant: Option<&Tenant>,
    ) -> Result<()> {
        self.count_network(core, CredentialKind::RefreshToken, peer, tenant)?;
        let bucket = sha256(&format!("partners/refresh-network/{}", network(peer)));
        let quota = quota(core, tenant);
        admit(core, tenant, shared_bucket::take(core, &bucket, quota).await?)?;
        let Some(token) = token else { return Ok(()) };
        if !token.is_of_client_login(core).await? {
            return Ok(());
        }
        let bucket = sha256(&format!("partners/refresh-client/{}", token.client));
        admit(core, tenant, shared_bucket::take(core, &bucket, quota).await?)
    }

    /// Counts an attempt of somebody who may be a partner's staff, before anything is hashed or mailed.
    ///
    /// # Errors
    /// Code 920 after too many of the network.
    pub fn count_staff(&self, core: &Core, peer: IpAddr) -> Result<()> {
        let now = core.clock.monotonic_ns();
        let attempt = (CredentialKind::Staff, network(peer), STAFF_QUOTA);
        admit(core, None, self.by_network.take(attempt, STAFF_QUOTA, now))
    }

    /// Counts an attempt of an address, which has one bucket for all clients of the same rate, known
    /// or not: naming a client with a high rate does not refill that of another rate.
    fn count_network(
        &self,
        core: &Core,
        kind: CredentialKind,
        peer: IpAddr,
        tenant: Option<&Tenant>,
    ) -> Result<()> {
        let (quota, now) = (quota(core, tenant), core.clock.monotonic_ns());
        admit(core, tenant, self.by_network.take((kind, network(peer), quota), quota, now))
    }
}

/// The bucket from which logins under `username` take that come from this network.
fn known_bucket(peer: IpAddr, username: &str) -> [u8; 32] {
    sha256(&format!("partners/known/{}/{username}", network(peer)))
}

fn quota(core: &Core, tenant: Option<&Tenant>) -> Quota {
    tenant.map_or(core.settings.ratelimit.credentials, |tenant| tenant.rates.credentials)
}

fn admit(core: &Core, tenant: Option<&Tenant>, decision: Decision) -> Result<()> {
    if decision.allowed {
        return Ok(());
    }
    let partner = tenant.map_or("", |tenant| &*tenant.slug);
    core.metrics.rate_limited("credentials", partner);
    Err(Error::rate_limited("credentials", decision))
}
