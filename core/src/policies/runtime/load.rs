//! Active policies from Postgres into a snapshot, for the tenants that changed.

use std::collections::HashMap;
use std::future::ready;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use rampart_plugins::Breaker;
use rampart_plugins::contract::PolicyKind;
use serde_json::Value;
use uuid::Uuid;

use super::active::{ActivePolicy, TenantPolicies};
use super::rollout::Rollout;
use super::sample_throttle::SampleThrottle;
use super::slot::Slot;
use super::{configuration, verification_keys};
use crate::Core;
use crate::platform::db::{BrokenRow, Readable, readable};
use crate::platform::error::Result;
use crate::platform::log_throttle::LogThrottle;

/// The policies of the current snapshot, by client.
pub(crate) type CurrentPolicies<'a> = HashMap<Uuid, &'a TenantPolicies>;

/// A stored version that is active or in a rollout.
struct Row {
    /// Id and canary percentage.
    rollout: Option<(Uuid, Option<u8>)>,
    client_id: Uuid,
    kind: PolicyKind,
    version: i64,
    digest: String,
    info: Value,
    config: Value,
    fail_closed: bool,
}

impl TenantPolicies {
    /// The policies of these clients, of all but those with a version that cannot be read. Versions
    /// in `current` are reused where their rows say the same.
    ///
    /// # Errors
    /// When the database cannot be read. A policy that does not compile is not an error: its calls
    /// fail, and the edge serves everybody else.
    pub(crate) async fn load(
        core: &Core,
        ids: &[Uuid],
        current: &CurrentPolicies<'_>,
        broken: &mut Vec<BrokenRow>,
    ) -> Result<HashMap<Uuid, Self>> {
        let mut policies: HashMap<_, Self> = ids.iter().map(|id| (*id, Self::default())).collect();
        for (id, ring) in verification_keys::load(core, ids, broken).await? {
            policies.entry(id).or_default().verification_keys = ring;
        }
        let mut changed = Vec::new();
        let rows = rows(core, ids).await?;
        for (id, reason) in &rows.broken {
            policies.remove(id);
            broken.push(BrokenRow::of_tenant("policy_version", *id, id, reason));
        }
        for row in rows.rows {
            match current_version(current, &row) {
                Some(policy) => {
                    insert(policies.entry(row.client_id).or_default(), current, &row, policy)
                }
                None => {
                    if let Some(replaced) = current_policy(current, row.client_id, row.kind) {
                        core.policies.retain_replaced(Arc::clone(&replaced.slot));
                    }
                    changed.push((core.policies.slot(row.kind, &row.digest), row));
                }
            }
        }
        // The others are compiled at their first call.
        let replacing = changed
            .iter()
            .filter(|(_, row)| current_policy(current, row.client_id, row.kind).is_some());
        let replacing = replacing.map(|(slot, _)| Arc::clone(slot)).collect();
        core.policies.compile_within_reload(&core.db, replacing).await;
        for (slot, row) in changed {
            let entry = policies.entry(row.client_id).or_default();
            let policy = Arc::new(activate(slot, &row, current));
            insert(entry, current, &row, policy);
        }
        for (id, policies) in &mut policies {
            if let Some(current) = current.get(id) {
                policies.fuel = Arc::clone(&current.fuel);
            }
        }
        Ok(policies)
    }
}

/// Adds a version as its row states: active, or in a rollout.
fn insert(
    policies: &mut TenantPolicies,
    current: &CurrentPolicies<'_>,
    row: &Row,
    policy: Arc<ActivePolicy>,
) {
    let Some((id, canary_percentage)) = row.rollout else { return policies.set(policy) };
    let is_same =
        |rollout: &&Arc<Rollout>| rollout.id == id && Arc::ptr_eq(&rollout.policy, &policy);
    let running = current.get(&row.client_id).and_then(|policies| policies.rollout(row.kind));
    let rollout = running.filter(is_same).cloned();
    policies
        .rollouts
        .push(rollout.unwrap_or_else(|| Arc::new(Rollout::new(id, policy, canary_percentage))));
}

fn current_policy<'a>(
    current: &CurrentPolicies<'a>,
    client: Uuid,
    kind: PolicyKind,
) -> Option<&'a Arc<ActivePolicy>> {
    current.get(&client)?.get(kind)
}

/// The loaded version of this row. After a failover the number of a lost one may be another's.
fn current_version(current: &CurrentPolicies<'_>, row: &Row) -> Option<Arc<ActivePolicy>> {
    let loaded = current.get(&row.client_id)?.version(row.kind, row.version)?;
    let config = configuration::entries_of_stored(&row.info, &row.config).unwrap_or_default();
    let is_same = loaded.digest() == row.digest
        && loaded.fail_closed == row.fail_closed
        && loaded.config == config;
    is_same.then(|| Arc::clone(loaded))
}

fn activate(slot: Arc<Slot>, row: &Row, current: &CurrentPolicies<'_>) -> ActivePolicy {
    let (slot, config) = match configuration::entries_of_stored(&row.info, &row.config) {
        Ok(config) => (slot, config),
        Err(reason) => {
            let kind = row.kind.as_str();
            tracing::error!(kind, version = row.version, reason, "a policy's configuration");
            (Slot::broken(row.kind, &row.digest, reason), Vec::new())
        }
    };
    let previous = current_policy(current, row.client_id, row.kind)
        .filter(|_| slot.is_pending() && row.rollout.is_none())
        .map(ActivePolicy::serving);
    ActivePolicy {
        kind: row.kind,
        version: row.version,
        fail_closed: row.fail_closed,
        config,
        slot,
        breaker: Breaker::default(),
        sample_throttle: SampleThrottle::default(),
        stored_log: SampleThrottle::default(),
        log_calls_dropped: AtomicU64::new(0),
        meters: OnceLock::new(),
        log_throttle: LogThrottle::default(),
        previous: ArcSwapOption::new(previous),
    }
}

async fn rows(core: &Core, ids: &[Uuid]) -> Result<Readable<Uuid, Row>> {
    let read = |part: Option<Vec<Uuid>>| async move {
        let rows = sqlx::query!(
            r#"
            select v.client_id as "client_id!", v.kind as "kind!", v.version as "version!",
                digest as "digest!", info as "info!", config as "config!",
                fail_closed as "fail_closed!", trial_id as "trial_id?", share as "share?"
            from policy_version v left join policy_trial t
                on t.client_id = v.client_id and t.kind = v.kind and t.version = v.version
            where v.client_id = any($1) and (active or trial_id is not null)
            "#,
            part.as_deref().unwrap_or(ids),
        )
        .fetch_all(&core.db)
        .await?;
        let parsed = rows.into_iter().filter_map(|row| {
            let percentage = row.share.and_then(|share| u8::try_from(share).ok());
            Some(Row {
                rollout: row.trial_id.map(|id| (id, percentage)),
                client_id: row.client_id,
                // A later version of Rampart may know more kinds.
                kind: PolicyKind::from_name(&row.kind)?,
                version: row.version,
                digest: row.digest,
                info: row.info,
                config: row.config,
                fail_closed: row.fail_closed,
            })
        });
        Ok(parsed.collect())
    };
    Ok(readable(read, ready(Ok(ids.to_vec()))).await?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(digest: &str, rate: i64, fail_closed: bool) -> Row {
        let field = json!({"key": "rate", "type": "integer", "required": false});
        Row {
            rollout: None,
            client_id: Uuid::nil(),
            kind: PolicyKind::Fee,
            version: 2,
            digest: digest.to_owned(),
            info: json!({"config": [field]}),
            config: json!({"rate": rate}),
            fail_closed,
        }
    }

    #[test]
    fn a_loaded_version_is_reused_for_the_same_content_alone() {
        let stored = row("a", 1, false);
        let slot = Arc::new(Slot::new(PolicyKind::Fee, "a".into()));
        let loaded = Arc::new(activate(slot, &stored, &CurrentPolicies::new()));
        let mut policies = TenantPolicies::default();
        policies.set(Arc::clone(&loaded));
        let current = CurrentPolicies::from([(stored.client_id, &policies)]);
        let reused = current_version(&current, &stored).unwrap();
        assert!(Arc::ptr_eq(&reused, &loaded));
        for other in [row("b", 1, false), row("a", 2, false), row("a", 1, true)] {
            assert!(current_version(&current, &other).is_none());
        }
    }

    #[test]
    fn a_compiled_version_lets_go_of_the_one_before_it() {
        let stored = row("b", 1, false);
        let slot = |digest: &str| Arc::new(Slot::new(PolicyKind::Fee, digest.into()));
        let compile = |policy: &ActivePolicy| policy.slot.set(Arc::new(Err("none".to_owned())));
        let first = activate(slot("a"), &row("a", 1, false), &CurrentPolicies::new());
        let first = Arc::new(first);
        compile(&first);
        let mut policies = TenantPolicies::default();
        policies.set(Arc::clone(&first));
        let second = {
            let current = CurrentPolicies::from([(stored.client_id, &policies)]);
            Arc::new(activate(slot("b"), &stored, &current))
        };
        drop(policies);
        assert!(Arc::ptr_eq(&second.serving(), &first), "it is not compiled yet");
        compile(&second);
        assert!(Arc::ptr_eq(&second.serving(), &second));
        assert_eq!(Arc::strong_count(&first), 1);
    }
}
