//! What requests read instead of Postgres: one immutable snapshot behind an atomic pointer.
//!
//! A writer raises a row of `change_counter` in its transaction; every edge polls the counters and
//! loads what is newer than what it has, builds the next snapshot beside the current one, and
//! swaps. A request holds the snapshot it started with.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Mutex;

use crate::Core;
use crate::platform::error::Result;
use crate::tenancy::tenants::{ApiKey, Tenant};
use crate::trading::catalogue::Catalogue;
use rampart_types::ClientId;

/// Tenants and market as of one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The market.
    pub catalogue: Arc<Catalogue>,
    /// Every client, the suspended ones too.
    pub tenants: HashMap<ClientId, Arc<Tenant>>,
    /// Clients by their user names.
    usernames: HashMap<Arc<str>, ClientId>,
    /// Live API keys by their public id.
    pub api_keys: HashMap<Arc<str>, Arc<ApiKey>>,
    /// `change_counter('clients')` when this was loaded.
    clients_revision: i64,
}

/// The current snapshot, and who may build the next one.
#[derive(Debug)]
pub struct Snapshots {
    current: ArcSwap<Snapshot>,
    building: Mutex<()>,
}

impl Snapshots {
    /// Nothing known yet.
    pub(crate) fn empty() -> Self {
        Self { current: ArcSwap::default(), building: Mutex::new(()) }
    }

    /// The snapshot as of now.
    pub fn current(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }
}

impl Core {
    /// Brings the snapshot up to date with the database. Called by the poll, and after a write by
    /// the edge that made it.
    ///
    /// # Errors
    /// When the database cannot be read; the current snapshot stays.
    pub async fn refresh(&self) -> Result<()> {
        let _building = self.snapshots.building.lock().await;
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
            next.adopt(changed);
            next.clients_revision = clients;
        }
        self.snapshots.current.store(Arc::new(next));
        Ok(())
    }
}

impl Snapshot {
    /// Revision of the clients in this snapshot.
    pub(crate) fn clients_revision(&self) -> i64 {
        self.clients_revision
    }

    /// The client with this user name.
    pub(crate) fn tenant_named(&self, username: &str) -> Option<&Arc<Tenant>> {
        self.tenants.get(self.usernames.get(username)?)
    }

    /// Puts changed clients, with all their keys, in the place of what was known of them.
    fn adopt(&mut self, changed: Vec<Tenant>) {
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
