//! The partner that has signed an onboarding URL, which no parameter names.
//!
//! A URL is held first against the secrets of who is known to have signed it, or one that returns to
//! the same origin. All partners are tried within a budget of the sender's network and of the edge: a
//! made-up signature costs as much as there are partners.

use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use moka::sync::Cache;
use url::{Position, Url};

use crate::Core;
use crate::http::fields::Fields;
use crate::platform::crypto::sha256;
use crate::platform::error::{Error, Result};
use crate::platform::network::network;
use crate::platform::rate_limit::{Gcra, KeyedGcra, Quota};
use crate::tenancy::tenants::Tenant;
use crate::trading::offers::signature;
use rampart_types::{ClientId, ReturnUrl};

/// Most URLs and origins whose signer is remembered.
const KNOWN_MAX: u64 = 65_536;
/// Most buckets of networks.
const BUCKETS_MAX: u64 = 65_536;
/// Idle time after which a bucket is evicted; it is full again by then.
const BUCKET_IDLE: Duration = Duration::from_secs(60);
/// Partners that an edge tries for one network.
const NETWORK_QUOTA: Quota = Quota::new(200_000, 1, 400_000);
/// Partners that an edge tries for all networks.
const EDGE_QUOTA: Quota = Quota::new(500_000, 1, 1_000_000);
/// Bytes of a URL with which each partner counts once more.
const BYTES_PER_TRY: usize = 1_024;
/// Partners that are tried before other requests of the thread have their turn.
const PARTNERS_AT_ONCE: usize = 1_000;

/// A URL's query with a signature that is well formed and not verified.
#[derive(Debug)]
pub(super) struct ClaimedQuery<'a> {
    /// The text that the signature covers.
    pub(super) signed: &'a str,
    tag: Vec<u8>,
    pub(super) return_url: ReturnUrl,
}

impl<'a> ClaimedQuery<'a> {
    /// Reads a query; `None` for one that no partner can have signed.
    pub(super) fn read(query: &'a str) -> Option<Self> {
        let (signed, signature) = query.rsplit_once("&signature=")?;
        let tag = signature::decode(signature)?;
        let fields = Fields::of_query(Some(signed));
        let return_url = fields.value("returnUrl")?.as_str()?.parse().ok()?;
        Some(Self { signed, tag, return_url })
    }

    fn is_signed_by(&self, tenant: &Tenant, now: DateTime<Utc>) -> bool {
        signature::has_signed(&tenant.signing_secrets, now, self.signed, &self.tag)
    }
}

/// The partners that have signed onboarding URLs, and the budgets for trying all of them.
#[derive(Debug)]
pub struct OnboardingSigners {
    /// By digests of a URL and of the origin to which it returns.
    known: Cache<[u8; 32], ClientId>,
    by_network: KeyedGcra<IpAddr>,
    of_edge: Gcra,
}

impl Default for OnboardingSigners {
    fn default() -> Self {
        Self {
            known: Cache::builder().max_capacity(KNOWN_MAX).build(),
            by_network: KeyedGcra::new(BUCKETS_MAX, BUCKET_IDLE),
            of_edge: Gcra::default(),
        }
    }
}

impl OnboardingSigners {
    /// The partner that has signed the query, which came from `peer`; a suspended one too.
    ///
    /// # Errors
    /// 503 when the budget of the network or of the edge is used up.
    pub(super) async fn find(
        &self,
        core: &Core,
        query: &ClaimedQuery<'_>,
        peer: IpAddr,
    ) -> Result<Option<ClientId>> {
        let (snapshot, now) = (core.snapshots.current(), core.clock.now());
        for key in keys(query.signed, &query.return_url) {
            let known = self.known.get(&key).and_then(|client| snapshot.tenants.get(&client));
            if let Some(tenant) = known.filter(|tenant| query.is_signed_by(tenant, now)) {
                return Ok(Some(tenant.id));
            }
        }
        let partners = u32::try_from(snapshot.tenants.len()).unwrap_or(u32::MAX);
        let each = 1 + query.signed.len() / BYTES_PER_TRY;
        let tries = partners.saturating_mul(u32::try_from(each).unwrap_or(u32::MAX));
        self.take(tries, peer, core.clock.monotonic_ns())?;
        for (at, tenant) in snapshot.tenants.values().enumerate() {
            if at % PARTNERS_AT_ONCE == PARTNERS_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            if query.is_signed_by(tenant, now) {
                self.remember(tenant.id, query.signed, &query.return_url);
                return Ok(Some(tenant.id));
            }
        }
        Ok(None)
    }

    /// Remembers who has signed a query.
    pub(super) fn remember(&self, client: ClientId, signed: &str, return_url: &ReturnUrl) {
        for key in keys(signed, return_url) {
            self.known.insert(key, client);
        }
    }

    /// Takes this many tries from the budgets of the network and of the edge; all of a budget at most.
    ///
    /// # Errors
    /// 503 when one of them is used up.
    pub fn take(&self, tries: u32, peer: IpAddr, now_ns: u64) -> Result<()> {
        let of_network = self.by_network.bucket(network(peer));
        if !of_network.take_many(NETWORK_QUOTA, tries, now_ns).allowed {
            return Err(Error::share_used_up("find the signer of one more URL of this network"));
        }
        if !self.of_edge.take_many(EDGE_QUOTA, tries, now_ns).allowed {
            return Err(Error::unavailable("find the signer of one more URL"));
        }
        Ok(())
    }
}

/// The keys under which a signer is remembered: of the URL itself, and of all that return there.
fn keys(signed: &str, return_url: &ReturnUrl) -> [[u8; 32]; 2] {
    let url = Url::parse(return_url.as_str());
    let origin = url.as_ref().map_or("", |url| &url[..Position::BeforePath]);
    [sha256(&format!("url/{signed}")), sha256(&format!("origin/{origin}"))]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn is_taken(signers: &OnboardingSigners, network: u8, now_ns: u64) -> bool {
        signers.take(100_000, IpAddr::from([192, 0, 2, network]), now_ns).is_ok()
    }

    #[test]
    fn a_network_and_an_edge_try_so_many_partners_in_a_second() {
        let signers = OnboardingSigners::default();
        let taken = |network| (0..9).filter(|_| is_taken(&signers, network, 0)).count();
        assert_eq!([taken(1), taken(2), taken(3), taken(4)], [4, 4, 2, 0]);
        let later = (5..15).filter(|network| is_taken(&signers, *network, SECOND_NS));
        assert_eq!(later.count(), 5, "half of the edge's budget is back");
    }

    #[test]
    fn more_partners_than_a_budget_has_are_tried_when_it_is_full() {
        let (signers, peer) = (OnboardingSigners::default(), IpAddr::from([192, 0, 2, 1]));
        signers.take(u32::MAX, peer, 0).unwrap();
        assert!(signers.take(u32::MAX, peer, SECOND_NS).unwrap_err().is_unavailable());
        signers.take(u32::MAX, peer, 3 * SECOND_NS).unwrap();
    }

    #[test]
    fn what_no_partner_can_have_signed_is_not_tried() {
        let signature = "0".repeat(64);
        let query = |signed: &str, signature: &str| format!("{signed}&signature={signature}");
        let is_read = |query: &str| ClaimedQuery::read(query).is_some();
        assert!(is_read(&query("returnUrl=app%3Ax", &signature)));
        assert!(!is_read(&query("returnUrl=app%3Ax", "00")));
        assert!(!is_read(&query("returnUrl=back", &signature)));
        assert!(!is_read(&query("locale=nl", &signature)));
        assert!(!is_read("returnUrl=app%3Ax"));
    }

    #[test]
    fn urls_that_return_to_one_origin_share_a_key() {
        let keys = |signed: &str, url: &str| keys(signed, &url.parse().unwrap());
        let [one, origin] = keys("a", "https://shop.example/back?a=b");
        assert_eq!(keys("b", "https://shop.example/other")[1], origin);
        assert_ne!(keys("b", "https://shop.example/other")[0], one);
        assert_ne!(keys("a", "https://other.example/back")[1], origin);
        assert_ne!(keys("a", "https://shop.example:8443/back")[1], origin);
        assert_ne!(keys("a", "app:back")[1], origin);
    }
}
