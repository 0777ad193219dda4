//! Active policies from Postgres into a snapshot, for the tenants that changed.

use std::collections::HashMap;
use std::sync::Arc;

use rampart_plugins::Breaker;
use rampart_plugins::contract::PolicyKind;
use serde_json::Value;
use uuid::Uuid;

use super::active::{ActivePolicy, TenantPolicies};
use super::compiled::Slot;
use super::{configuration, keys};
use crate::Core;
use crate::error::Result;
use crate::snapshot::Snapshot;
use crate::types::ClientId;

/// An active version as stored.
struct Row {
    client_id: Uuid,
    kind: PolicyKind,
    version: i64,
    digest: String,
    info: Value,
    config: Value,
    fail_closed: bool,
}

impl TenantPolicies {
    /// The policies of these clients. A version that `known` has too is taken from there.
    ///
    /// # Errors
    /// When the database cannot be read. A policy that cannot be made ready is no error: its calls
    /// are malfunctions, and the edge serves everybody else.
    pub(crate) async fn load(
        core: &Core,
        ids: &[Uuid],
        known: &Snapshot,
    ) -> Result<HashMap<Uuid, Self>> {
        let mut policies: HashMap<_, Self> = HashMap::new();
        for (id, ring) in keys::load(core, ids).await? {
            policies.entry(id).or_default().verification_keys = ring;
        }
        let mut changed = Vec::new();
        for row in rows(core, ids).await? {
            match known_version(known, &row) {
                Some(policy) => policies.entry(row.client_id).or_default().set(policy),
                None => changed.push((core.policies.slot(row.kind, &row.digest), row)),
            }
        }
        let slots = changed.iter().map(|(slot, _)| Arc::clone(slot)).collect();
        core.policies.compile_within_reload(&core.db, slots).await;
        for (slot, row) in changed {
            let entry = policies.entry(row.client_id).or_default();
            entry.set(Arc::new(activate(slot, row, known)));
        }
        Ok(policies)
    }
}

fn known_policy(known: &Snapshot, client: Uuid, kind: PolicyKind) -> Option<&Arc<ActivePolicy>> {
    known.tenants.get(&ClientId::from(client))?.policies.get(kind)
}

fn known_version(known: &Snapshot, row: &Row) -> Option<Arc<ActivePolicy>> {
    let policy = known_policy(known, row.client_id, row.kind)?;
    (policy.version == row.version).then(|| Arc::clone(policy))
}

fn activate(slot: Arc<Slot>, row: Row, known: &Snapshot) -> ActivePolicy {
    let (slot, config) = match configuration::entries_of_stored(&row.info, &row.config) {
        Ok(config) => (slot, config),
        Err(reason) => {
            let kind = row.kind.as_str();
            tracing::error!(kind, version = row.version, reason, "a policy's configuration");
            (Slot::broken(row.kind, &row.digest, reason), Vec::new())
        }
    };
    let previous = known_policy(known, row.client_id, row.kind)
        .filter(|_| slot.is_pending())
        .map(|policy| Arc::clone(policy.serving()));
    ActivePolicy {
        kind: row.kind,
        version: row.version,
        fail_closed: row.fail_closed,
        config,
        slot,
        breaker: Breaker::default(),
        previous,
    }
}

async fn rows(core: &Core, ids: &[Uuid]) -> Result<Vec<Row>> {
    let rows = sqlx::query!(
        "select client_id, kind, version, digest, info, config, fail_closed \
         from policy_version where client_id = any($1) and active",
        ids,
    )
    .fetch_all(&core.db)
    .await?;
    let mut known = Vec::with_capacity(rows.len());
    for row in rows {
        // The table's check knows the same three kinds.
        let Some(kind) = PolicyKind::from_name(&row.kind) else { continue };
        known.push(Row {
            client_id: row.client_id,
            kind,
            version: row.version,
            digest: row.digest,
            info: row.info,
            config: row.config,
            fail_closed: row.fail_closed,
        });
    }
    Ok(known)
}
