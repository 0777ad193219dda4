//! The in-memory snapshot that requests read instead of Postgres: immutable, behind an atomic
//! pointer.
//!
//! A writer raises a row of `change_counter` in its transaction; every edge polls the counters, loads
//! newer rows, builds the next snapshot and swaps it in. A request keeps the snapshot it started with.
//! After a failover an edge loads everything anew.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Once};

use arc_swap::ArcSwap;

use crate::Core;
use crate::platform::db::{BrokenRow, PoolKind};
use crate::platform::error::Result;
use crate::platform::revision::{Missing, Position, Revisions};
use crate::platform::single_flight::SingleFlight;
use crate::tenancy::tenants::load::ChangedTenants;
use crate::tenancy::tenants::{ApiKey, Tenant};
use crate::trading::catalogue::Catalogue;
use rampart_types::ClientId;

/// A consistent view of tenants and market. Cheap to clone: what has not changed is shared.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The market.
    pub catalogue: Arc<Catalogue>,
    /// All tenants whose rows can be read, including suspended ones.
    pub tenants: Arc<HashMap<ClientId, Arc<Tenant>>>,
    /// Tenants by user name.
    usernames: Arc<HashMap<Arc<str>, ClientId>>,
    /// Tenants by slug.
    slugs: Arc<HashMap<Arc<str>, ClientId>>,
    /// Live API keys by public id.
    pub api_keys: Arc<HashMap<Arc<str>, Arc<ApiKey>>>,
    /// Tenants' rows that were left out.
    broken: Arc<Vec<BrokenRow>>,
    /// Position of `change_counter('clients')` at the time of loading.
    clients_position: Position,
    /// That of `change_counter('catalogue')`.
    catalogue_position: Position,
}

/// The current snapshot, and the runs that build the next one.
#[derive(Debug)]
pub struct Snapshots {
    current: ArcSwap<Snapshot>,
    refreshes: SingleFlight,
    /// Done once it is logged that the database does not tell its timeline.
    warned: Once,
}

impl Snapshots {
    /// An empty snapshot.
    pub(crate) fn empty() -> Self {
        let (current, refreshes) = (ArcSwap::default(), SingleFlight::default());
        Self { current, refreshes, warned: Once::new() }
    }

    /// The current snapshot.
    pub fn current(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Publishes the current snapshot with a change. Its caller is the only run.
    fn publish(&self, change: impl FnOnce(&mut Snapshot)) {
        let mut next = Snapshot::clone(&self.current());
        change(&mut next);
        self.current.store(Arc::new(next));
    }
}

impl Core {
    /// Updates the snapshot from the database. Called periodically, and after a write on the edge
    /// that made it: however many have written, they wait for two runs at most. Market and tenants
    /// are published apart, so that neither waits for the other. They are read on connections of their
    /// own, which see every tenant's rows, whoever calls it.
    ///
    /// # Errors
    /// When the database cannot be read; what could not be loaded stays as it is.
    pub async fn refresh(&self) -> Result<()> {
        // On the heap: it would be part of every call of an operator.
        let refresh = || PoolKind::Snapshot.run(Box::pin(self.refresh_alone()));
        self.snapshots.refreshes.run(refresh).await
    }

    /// Serves what was just committed, on this edge at once. A failure is logged: the change has
    /// happened, and the next periodical run serves it.
    pub async fn serve_committed(&self) {
        if let Err(error) = self.refresh().await {
            tracing::warn!(%error, "a change is committed, and not served by this edge yet");
        }
    }

    async fn refresh_alone(&self) -> Result<()> {
        let revisions = Revisions::read(&self.db, &self.snapshots.warned).await?;
        let (market, tenants) = tokio::join!(
            Box::pin(self.refresh_catalogue(revisions.of("catalogue"))),
            Box::pin(self.refresh_tenants(revisions.of("clients"))),
        );
        market.and(tenants)
    }

    async fn refresh_catalogue(&self, seen: Position) -> Result<()> {
        let known = self.snapshots.current().catalogue_position;
        let position = known.moved_to(seen);
        if known.missing(position) == Missing::Nothing {
            return Ok(());
        }
        let sourced = &self.settings.prices;
        let catalogue = Arc::new(Catalogue::load(&self.db, position.revision, sourced).await?);
        self.snapshots.publish(|next| {
            next.catalogue = catalogue;
            next.catalogue_position = position;
        });
        Ok(())
    }

    async fn refresh_tenants(&self, seen: Position) -> Result<()> {
        let mut known = Snapshot::clone(&self.snapshots.current());
        let position = known.clients_position.moved_to(seen);
        let missing = known.clients_position.missing(position);
        if missing == Missing::Nothing {
            return Ok(());
        }
        // A standby that took over, or what was restored, may lack changes that are served here.
        let is_anew = missing == Missing::Everything;
        if is_anew {
            known.clients_position = Position::default();
        }
        let changed = ChangedTenants::load(self, &known).await?;
        self.snapshots.publish(|next| {
            if is_anew {
                let (catalogue, catalogue_position) =
                    (Arc::clone(&next.catalogue), next.catalogue_position);
                *next = Snapshot { catalogue, catalogue_position, ..Snapshot::default() };
            }
            next.adopt(changed);
            next.clients_position = position;
        });
        Ok(())
    }

    /// Sets the gauge of rows that were left out.
    pub(crate) fn update_broken_rows(&self) {
        let snapshot = self.snapshots.current();
        for table in BrokenRow::TABLES {
            let broken = snapshot.broken_rows().filter(|row| row.table == table).count();
            let broken = i64::try_from(broken).unwrap_or(i64::MAX);
            self.metrics.broken_rows.with_label_values(&[table]).set(broken);
        }
    }
}

impl Snapshot {
    /// Revision of the tenants in this snapshot.
    pub(crate) fn clients_revision(&self) -> i64 {
        self.clients_position.revision
    }

    /// The tenant with this user name.
    pub(crate) fn tenant_by_username(&self, username: &str) -> Option<&Arc<Tenant>> {
        self.tenants.get(self.usernames.get(username)?)
    }

    /// The tenant with this slug.
    pub fn tenant_by_slug(&self, slug: &str) -> Option<&Arc<Tenant>> {
        self.tenants.get(self.slugs.get(slug)?)
    }

    /// Every row that was left out, of tenants and of the market.
    pub(crate) fn broken_rows(&self) -> impl Iterator<Item = &BrokenRow> {
        self.broken.iter().chain(&self.catalogue.broken)
    }

    /// Replaces changed tenants with all their keys; those that cannot be read are removed. Takes
    /// time in proportion to what changed, once the maps are its own: the snapshot that requests
    /// hold has to be copied before, 30 ms for 100,000 tenants.
    fn adopt(&mut self, changed: ChangedTenants) {
        let ids: HashSet<ClientId> = changed.ids.into_iter().collect();
        let tenants = Arc::make_mut(&mut self.tenants);
        let usernames = Arc::make_mut(&mut self.usernames);
        let slugs = Arc::make_mut(&mut self.slugs);
        let api_keys = Arc::make_mut(&mut self.api_keys);
        // All of the old first: one tenant may have another's former names.
        for old in ids.iter().filter_map(|id| tenants.remove(id)) {
            usernames.remove(&old.username);
            slugs.remove(&old.slug);
            for key in &old.api_keys {
                if api_keys.get(&key.public_id).is_some_and(|held| held.client == old.id) {
                    api_keys.remove(&key.public_id);
                }
            }
        }
        for tenant in changed.tenants {
            usernames.insert(Arc::clone(&tenant.username), tenant.id);
            slugs.insert(Arc::clone(&tenant.slug), tenant.id);
            for key in &tenant.api_keys {
                api_keys.insert(Arc::clone(&key.public_id), Arc::clone(key));
            }
            tenants.insert(tenant.id, Arc::new(tenant));
        }
        let broken = Arc::make_mut(&mut self.broken);
        broken.retain(|row| row.client.is_none_or(|client| !ids.contains(&client)));
        broken.extend(changed.broken);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::http::html::brand::Brand;
    use crate::platform::clock::Clock;
    use std::collections::BTreeMap;

    use crate::platform::crypto::day_key::DayKey;
    use crate::platform::settings::RateLimits;
    use crate::policies::runtime::TenantPolicies;
    use crate::tenancy::tenants::{AllowedSenders, Buckets, GuestOrders, Mode, Rates, Scopes};
    use rampart_types::{ApiKeyId, LoopbackHttp};
    use rust_decimal::Decimal;
    use uuid::Uuid;

    /// A tenant with one key.
    fn tenant(number: u128, username: &str, public_id: &str) -> Tenant {
        let id = ClientId::from(Uuid::from_u128(number));
        let key = ApiKey {
            id: ApiKeyId::from(Uuid::from_u128(number)),
            client: id,
            public_id: public_id.into(),
            secret_digest: [0; 32],
            scopes: Scopes::from_stored(&[]),
            expires_at: None,
            allowed_senders: AllowedSenders::default(),
        };
        let rates = Rates::new(&RateLimits::default(), &BTreeMap::new());
        Tenant {
            compliance_gate: None,
            compliance_gates: BTreeMap::new(),
            guest_orders: GuestOrders::Allowed,
            id,
            slug: username.into(),
            username: username.into(),
            name: String::new(),
            brand: Brand::default(),
            mode: Mode::Test,
            suspended: false,
            tokens_valid_from: chrono::DateTime::UNIX_EPOCH,
            default_fee_percentage: Decimal::ZERO,
            fee_cap_percentage: Decimal::ZERO,
            wallet_address_required: false,
            allowed_countries: Vec::new(),
            allowed_senders: AllowedSenders::default(),
            rates,
            buckets: Arc::new(Buckets::new(id, &rates, None)),
            signing_secrets: Vec::new(),
            webhook_secrets: Vec::new(),
            quote_key: DayKey::default(),
            api_keys: vec![Arc::new(key)],
            policies: TenantPolicies::default(),
            loopback_http: LoopbackHttp::Refused,
        }
    }

    fn changed(tenants: Vec<Tenant>) -> ChangedTenants {
        let ids = tenants.iter().map(|tenant| tenant.id).collect();
        ChangedTenants { ids, tenants, broken: Vec::new() }
    }

    fn broken(number: u128) -> ChangedTenants {
        let client = ClientId::from(Uuid::from_u128(number));
        let row = BrokenRow { table: "client", client: Some(client) };
        ChangedTenants { ids: vec![client], tenants: Vec::new(), broken: vec![row] }
    }

    #[test]
    fn a_changed_tenant_replaces_itself_and_nobody_else() {
        let mut snapshot = Snapshot::default();
        snapshot.adopt(changed(vec![tenant(1, "ann", "a"), tenant(2, "bob", "b")]));
        let before = snapshot.clone();
        // They swap their names, and the second one's key is another.
        snapshot.adopt(changed(vec![tenant(1, "bob", "a"), tenant(2, "ann", "c")]));
        let id = |name: &str| snapshot.tenant_by_username(name).map(|tenant| tenant.id.uuid());
        assert_eq!(id("ann"), Some(Uuid::from_u128(2)));
        assert_eq!(id("bob"), Some(Uuid::from_u128(1)));
        let slug = |name: &str| snapshot.tenant_by_slug(name).map(|tenant| tenant.id.uuid());
        assert_eq!((slug("ann"), slug("bob")), (id("ann"), id("bob")));
        let mut keys: Vec<_> = snapshot.api_keys.keys().map(|key| &**key).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["a", "c"]);
        assert!(before.api_keys.contains_key("b"), "a request keeps what it began with");
    }

    #[test]
    fn a_tenant_that_cannot_be_read_is_removed_until_it_can() {
        let mut snapshot = Snapshot::default();
        snapshot.adopt(changed(vec![tenant(1, "ann", "a"), tenant(2, "bob", "b")]));
        snapshot.adopt(broken(2));
        assert!(snapshot.tenant_by_username("bob").is_none());
        assert!(snapshot.tenant_by_slug("bob").is_none());
        assert!(!snapshot.api_keys.contains_key("b") && snapshot.api_keys.contains_key("a"));
        snapshot.adopt(changed(vec![tenant(1, "ann", "a")]));
        assert_eq!(snapshot.broken_rows().count(), 1, "it is another's");
        snapshot.adopt(changed(vec![tenant(2, "bob", "b")]));
        assert_eq!(snapshot.broken_rows().count(), 0);
        assert!(snapshot.tenant_by_username("bob").is_some());
    }

    #[test]
    fn many_changes_take_time_in_proportion_to_them() {
        const TENANTS: u128 = 20_000;
        let many = || {
            let tenant = |number: u128| tenant(number, &number.to_string(), &format!("k{number}"));
            changed((0..TENANTS).map(tenant).collect())
        };
        let (mut snapshot, all, again) = (Snapshot::default(), many(), many());
        let clock = Clock::system();
        snapshot.adopt(all);
        snapshot.adopt(again);
        let took = Duration::from_nanos(clock.monotonic_ns());
        assert_eq!(u128::try_from(snapshot.tenants.len()).unwrap(), TENANTS);
        assert!(took < Duration::from_secs(4), "{took:?}: pairs of tenants take much longer");
    }
}
