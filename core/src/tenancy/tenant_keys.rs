//! Tenants' keys in the database: loaded before anything that they have sealed, and made for
//! earlier tenants.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::future::ready;
use std::sync::Arc;

use uuid::Uuid;

use crate::Core;
use crate::platform::crypto::MasterKey;
use crate::platform::crypto::tenant_key::{TENANT_MARK, TenantCipher, TenantKey};
use crate::platform::db::{BrokenRow, Connection, Pool, readable};
use crate::platform::error::Result;
use crate::platform::revision;
use rampart_types::ClientId;

/// Keys of one transaction.
const BATCH_KEYS: i64 = 100;
/// Seconds until a new key of an older tenant seals values. An edge that has not loaded it by then is
/// not ready (`SNAPSHOT_AGE_MAX`).
const LOADED_EVERYWHERE_SECONDS: i64 = 60;

/// Tenants by the state of their keys.
#[derive(Clone, Copy, Debug)]
pub struct TenantKeyCounts {
    /// Keys.
    pub total: i64,
    /// Those of them that the master key in use has wrapped.
    pub current: i64,
    /// Tenants without a key, whose values the master key seals.
    pub missing: i64,
}

/// The key of a tenant that is not stored yet.
#[derive(Debug)]
pub(crate) struct NewTenantKey {
    key: Arc<TenantKey>,
    wrapped: Vec<u8>,
}

impl NewTenantKey {
    /// Generates the key of a new tenant; `None` where tenants have none.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn generate(core: &Core, client: ClientId) -> Result<Option<Self>> {
        if !core.has_tenant_keys {
            return Ok(None);
        }
        let key = TenantKey::generate(&core.clock)?;
        let wrapped = key.wrapped(&core.keys, &core.clock, client)?;
        Ok(Some(Self { key: Arc::new(key), wrapped }))
    }

    /// The key itself.
    pub(crate) fn key(&self) -> Arc<TenantKey> {
        Arc::clone(&self.key)
    }

    /// Stores the key with its tenant.
    pub(crate) async fn insert(
        &self,
        conn: &mut Connection,
        client: ClientId,
    ) -> Result<(), sqlx::Error> {
        sqlx::query!(
            "insert into tenant_key (client_id, sealed, created_at) values ($1, $2, rampart_now())",
            client.uuid(),
            self.wrapped,
        )
        .execute(conn)
        .await?;
        Ok(())
    }
}

/// Loads the keys of these tenants. Those that cannot be opened are noted; returns their tenants.
pub(crate) async fn load(
    core: &Core,
    clients: &[ClientId],
    broken: &mut Vec<BrokenRow>,
) -> Result<HashSet<ClientId>> {
    let ids: Vec<Uuid> = clients.iter().map(|client| client.uuid()).collect();
    let ids = &ids;
    let read = |part: Option<Vec<Uuid>>| async move {
        sqlx::query!(
            "select client_id, sealed, usable_from from tenant_key where client_id = any($1)",
            part.as_deref().unwrap_or(ids),
        )
        .fetch_all(&core.db)
        .await
    };
    let rows = readable(read, ready(Ok(ids.clone()))).await?;
    let (mut keys, mut unreadable) = (HashMap::new(), HashSet::new());
    let mut leave_out = |client: ClientId, reason: &dyn Display| {
        broken.push(BrokenRow::of_tenant("tenant_key", client, &client, reason));
        unreadable.insert(client);
    };
    for (id, reason) in rows.broken {
        leave_out(id.into(), &reason);
    }
    for row in rows.rows {
        let client = ClientId::from(row.client_id);
        match TenantKey::from_wrapped(&core.keys, client, &row.sealed, row.usable_from) {
            Ok(key) => drop(keys.insert(client, key)),
            Err(error) => leave_out(client, &error),
        }
    }
    core.tenant_keys.replace(clients, keys);
    Ok(unreadable)
}

/// True if tenants get keys of their own although no setting says so: earlier edges, which cannot
/// open what these seal, have left no tenant behind, or keys were made already.
pub(crate) async fn by_default(db: &Pool) -> Result<bool> {
    let decided = sqlx::query_scalar!(
        r#"
        select exists (select from tenant_key)
            or not exists (select from client where slug <> 'house') as "is!"
        "#
    );
    Ok(decided.fetch_one(db).await?)
}

impl TenantKeyCounts {
    /// Counts keys and tenants without one.
    pub(crate) async fn read(db: &Pool, master: &MasterKey) -> Result<Self> {
        let prefix = master.prefix();
        let counts = sqlx::query!(
            r#"
            select count(k.client_id) as "total!",
                count(*) filter (where substring(k.sealed from 1 for $2) = $1) as "current!",
                count(*) filter (where k.client_id is null) as "missing!"
            from client left join tenant_key k using (client_id)
            "#,
            &prefix[..],
            i32::try_from(prefix.len()).unwrap_or(i32::MAX),
        )
        .fetch_one(db)
        .await?;
        Ok(Self { total: counts.total, current: counts.current, missing: counts.missing })
    }
}

impl Core {
    /// The cipher of a tenant's values. Needs no statement.
    pub fn cipher(&self, client: ClientId) -> TenantCipher<'_> {
        TenantCipher::new(&self.keys, &self.clock, self.tenant_keys.get(client))
    }

    /// Makes keys for tenants that have none: one run of a worker. A tenant whose secrets are sealed
    /// under a key that is gone gets no other: that key must be restored.
    ///
    /// # Errors
    /// When the database cannot be written; the next run continues.
    pub async fn make_tenant_keys(&self) -> Result<()> {
        if !self.has_tenant_keys {
            return Ok(());
        }
        loop {
            let without = sqlx::query_scalar!(
                "select client_id from client c \
                 where not exists (select from tenant_key k where k.client_id = c.client_id) \
                     and not exists (select from client_secret s where s.client_id = c.client_id \
                         and substring(s.sealed from 1 for 3) = $2) \
                 limit $1",
                BATCH_KEYS,
                &TENANT_MARK[..],
            )
            .fetch_all(&self.db)
            .await?;
            if without.is_empty() {
                return Ok(());
            }
            let wrap = |client: &Uuid| {
                TenantKey::generate(&self.clock)?.wrapped(
                    &self.keys,
                    &self.clock,
                    ClientId::from(*client),
                )
            };
            let wrapped: Vec<_> = without.iter().map(wrap).collect::<Result<_>>()?;
            self.store_tenant_keys(&without, &wrapped).await?;
        }
    }

    async fn store_tenant_keys(&self, clients: &[Uuid], wrapped: &[Vec<u8>]) -> Result<()> {
        let mut tx = self.db.begin().await?;
        sqlx::query_scalar!(
            "select client_id from client where client_id = any($1) order by client_id \
             for no key update",
            clients,
        )
        .fetch_all(&mut *tx)
        .await?;
        let revision = revision::next_client_revision(&mut tx).await?;
        let stored = sqlx::query!(
            "with stored as ( \
                 insert into tenant_key (client_id, sealed, usable_from, created_at) \
                 select client_id, sealed, rampart_now() + $4::bigint * interval '1 second', \
                     rampart_now() \
                 from unnest($1::uuid[], $2::bytea[]) v (client_id, sealed) \
                 on conflict (client_id) do nothing returning client_id) \
             update client c set revision = $3 from stored where c.client_id = stored.client_id",
            clients,
            wrapped,
            revision,
            LOADED_EVERYWHERE_SECONDS,
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        let keys = stored.rows_affected();
        tracing::info!(keys, "tenants have keys of their own");
        Ok(())
    }

    /// Loads what is newer than the snapshot if one of these tenants is not in it: what another edge
    /// has sealed for a new one can be opened then.
    pub(crate) async fn refresh_for(
        &self,
        clients: impl IntoIterator<Item = ClientId>,
    ) -> Result<()> {
        let known = self.snapshots.current();
        let is_new = |client: ClientId| {
            !known.tenants.contains_key(&client) && self.tenant_keys.get(client).is_none()
        };
        if clients.into_iter().any(is_new) {
            self.refresh().await?;
        }
        Ok(())
    }

    /// True if tenants get keys of their own.
    pub const fn has_tenant_keys(&self) -> bool {
        self.has_tenant_keys
    }

    /// Tenants by the state of their keys.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn tenant_key_counts(&self) -> Result<TenantKeyCounts> {
        TenantKeyCounts::read(&self.db, &self.keys).await
    }
}
