//! The in-memory snapshot that requests read instead of Postgres: immutable, behind an atomic
//! pointer.
//!
//! A writer raises a row of `change_counter` in its transaction; every edge polls the counters, loads
//! newer rows, builds the next snapshot and swaps it in. A request keeps the snapshot it started with.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Mutex;

use crate::Core;
use crate::platform::error::Result;
use crate::tenancy::tenants::{ApiKey, Tenant};
use crate::trading::catalogue::Catalogue;
use rampart_types::ClientId;

/// A consistent view of tenants and market.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The market.
    pub catalogue: Arc<Catalogue>,
    /// All tenants, including suspended ones.
    pub tenants: HashMap<ClientId, Arc<Tenant>>,
    /// Tenants by user name.
    usernames: HashMap<Arc<str>, ClientId>,
    /// Live API keys by public id.
    pub api_keys: HashMap<Arc<str>, Arc<ApiKey>>,
    /// Revision of `change_counter('clients')` at the time of loading.
    clients_revision: i64,
}

/// The current snapshot, and the lock for building the next one.
#[derive(Debug)]
pub struct Snapshots {
    current: ArcSwap<Snapshot>,
    refresh_lock: Mutex<()>,
}

impl Snapshots {
    /// An empty snapshot.
    pub(crate) fn empty() -> Self {
        Self { current: ArcSwap::default(), refresh_lock: Mutex::new(()) }
    }

    /// The current snapshot.
    pub fn current(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }
}

impl Core {
    /// Updates the snapshot from the database. Called periodically, and after a write on the edge
    /// that made it.
    ///
    /// # Errors
    /// When the database cannot be read; the current snapshot stays.
    pub async fn refresh(&self) -> Result<()> {
        let _guard = self.snapshots.refresh_lock.lock().await;
        let current = self.snapshots.current();
        let counters =
            sqlx::query!("select scope, revision from change_counter").fetch_all(&self.db).await?;
        let revision = |scope: &str| {
            counters.iter().find(|row| row.scope == scope).map_or(0, |row| row.revision)
        };
        let (clients, catalogue) = (revision("clients"), revision("catalogue"));
        if clients == current.clients_revision && catalogue == current.catalogue.revision {
            return Ok(());
        }
        let mut next = Snapshot::clone(&current);
        if catalogue != current.catalogue.revision {
            let age = self.settings.prices.max_age_seconds;
            next.catalogue = Arc::new(Catalogue::load(&self.db, catalogue, age).await?);
        }
        if clients != current.clients_revision {
            let changed = Tenant::load_changed(self, &current).await?;
            next.apply(changed);
            next.clients_revision = clients;
        }
        self.snapshots.current.store(Arc::new(next));
        Ok(())
    }
}

impl Snapshot {
    /// Revision of the tenants in this snapshot.
    pub(crate) fn clients_revision(&self) -> i64 {
        self.clients_revision
    }

    /// The tenant with this user name.
    pub(crate) fn tenant_by_username(&self, username: &str) -> Option<&Arc<Tenant>> {
        self.tenants.get(self.usernames.get(username)?)
    }

    /// Replaces changed tenants with all their keys.
    fn apply(&mut self, changed: Vec<Tenant>) {
        for tenant in changed {
            self.usernames.retain(|_, client| *client != tenant.id);
            self.usernames.insert(Arc::clone(&tenant.username), tenant.id);
            self.api_keys.retain(|_, key| key.client != tenant.id);
            for key in &tenant.api_keys {
                self.api_keys.insert(Arc::clone(&key.public_id), Arc::clone(key));
            }
            self.tenants.insert(tenant.id, Arc::new(tenant));
        }
    }
}
