//! Native code of policies: compiled off the serving threads, shared by all partners with the same
//! component, and dropped when none uses it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures::future::try_join_all;
use rampart_plugins::contract::PolicyKind;
use rampart_plugins::{Policy, PolicyEngine, PolicyLimits};
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit, oneshot};

use super::root_keys::{RootKey, RootKeys};
use crate::Core;
use crate::platform::db::Pool;
use crate::platform::error::{Error, Result};
use crate::platform::settings;

/// Components compiled at once, each on one thread.
const COMPILES_MAX: usize = 2;
/// Longest wait of a reload for compilers. Components take milliseconds; an oversized one must not
/// delay another tenant's suspension.
const RELOAD_WAIT: Duration = Duration::from_millis(500);
/// Concurrent dry runs; the engine has slots for them and for shadow runs.
const DRY_RUNS_MAX: usize = 2;
/// Replaced versions that stay compiled: a small one takes 150 KiB.
const REPLACED_MAX: usize = 64;
/// Stack of a compiling thread, in bytes: its depth follows the nesting of the uploaded code.
const THREAD_STACK_BYTES: usize = 16 << 20;

/// The policy engine of this edge and its compiled components.
pub struct Policies {
    pub(crate) engine: PolicyEngine,
    /// One per component in use.
    slots: Mutex<HashMap<SlotKey, Weak<Slot>>>,
    /// The newest replaced versions, so that a rollback waits for no compiler.
    replaced: Mutex<VecDeque<Arc<Slot>>>,
    compiles: Arc<Semaphore>,
    /// The engine refuses an upload without a free slot; this one makes it wait.
    admissions: Semaphore,
    /// The same for dry runs.
    dry_runs: Semaphore,
    root_keys: RootKeys,
}

/// A component by kind and digest.
type SlotKey = (&'static str, Arc<str>);

/// A component and its native code, once compiled.
pub(crate) struct Slot {
    pub(crate) kind: PolicyKind,
    pub(crate) digest: Arc<str>,
    /// An error is final: the component does not fit this edge's limits.
    code: OnceCell<Result<Policy, String>>,
}

impl Policies {
    /// Reserves the memory that policies run in.
    ///
    /// # Errors
    /// When the system refuses the address space, or the limits contradict each other.
    pub(crate) fn new(settings: &settings::Policy) -> Result<Self> {
        let root_keys = RootKeys::parse(settings).map_err(|problem| {
            Error::internal("read the root keys", std::io::Error::other(problem))
        })?;
        let limits = limits(settings);
        let engine = match &settings.cache_folder {
            Some(folder) => PolicyEngine::with_native_code(limits, folder),
            None => PolicyEngine::new(limits),
        };
        let engine = engine.map_err(|error| {
            let cause = std::io::Error::other(format!("{error:#}"));
            Error::internal("start the policy engine", cause)
        })?;
        let compiles = Arc::new(Semaphore::new(COMPILES_MAX));
        let admissions = Semaphore::new(engine.limits().admissions_max as usize);
        let dry_runs = Semaphore::new(DRY_RUNS_MAX);
        let (slots, replaced) = (Mutex::default(), Mutex::default());
        Ok(Self { engine, slots, replaced, compiles, admissions, dry_runs, root_keys })
    }

    /// The root key of this name.
    pub(crate) fn root_key(&self, name: &str) -> Option<&RootKey> {
        self.root_keys.get(name)
    }

    /// True if a root key has this fingerprint.
    pub(crate) fn is_root(&self, fingerprint: &str) -> bool {
        self.root_keys.contains(fingerprint)
    }

    /// A permit to examine an upload.
    pub(crate) async fn admission_permit(&self) -> Result<SemaphorePermit<'_>> {
        self.admissions.acquire().await.map_err(|e| Error::internal("admit a policy", e))
    }

    /// A permit for a call that no request waits for.
    pub(crate) async fn dry_run_permit(&self) -> Result<SemaphorePermit<'_>> {
        self.dry_runs.acquire().await.map_err(|e| Error::internal("dry-run a policy", e))
    }

    /// The shared slot of a component.
    pub(crate) fn slot(&self, kind: PolicyKind, digest: &str) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind.as_str(), Arc::from(digest));
        if let Some(slot) = slots.get(&key).and_then(Weak::upgrade) {
            return slot;
        }
        slots.retain(|_, slot| slot.strong_count() > 0);
        let slot = Arc::new(Slot { kind, digest: Arc::clone(&key.1), code: OnceCell::new() });
        slots.insert(key, Arc::downgrade(&slot));
        slot
    }

    /// Retains the code of a replaced version.
    pub(crate) fn retain_replaced(&self, slot: Arc<Slot>) {
        // A list of whole entries: a panic elsewhere cannot have left it half written.
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        replaced.retain(|retained| !Arc::ptr_eq(retained, &slot));
        if replaced.len() == REPLACED_MAX {
            replaced.pop_front();
        }
        replaced.push_back(slot);
    }

    /// A component's code, compiled now if no active policy has it, for a dry run.
    ///
    /// # Errors
    /// When the component cannot be read; the inner error is that of the compiler.
    pub(crate) async fn compiled(
        &self,
        kind: PolicyKind,
        digest: &str,
        db: &Pool,
    ) -> Result<Result<Policy, String>> {
        let slot = self.slot(kind, digest);
        slot.fill(&self.engine, &self.compiles, db).await?;
        Ok(slot.code.get().cloned().unwrap_or_else(|| Err("it is not compiled".to_owned())))
    }

    /// The slot of a component that was compiled at admission.
    pub(crate) fn admitted(&self, policy: Policy) -> Arc<Slot> {
        let slot = self.slot(policy.kind(), policy.digest());
        // Set already: equal code from an earlier upload.
        drop(slot.code.set(Ok(policy)));
        slot
    }

    /// Compiles pending components and waits up to [`RELOAD_WAIT`]; the rest continue in the background.
    pub(crate) async fn compile_within_reload(&self, db: &Pool, slots: Vec<Arc<Slot>>) {
        let pending: Vec<_> = slots.into_iter().filter(|slot| slot.is_pending()).collect();
        if pending.is_empty() {
            return;
        }
        let (engine, compiles) = (self.engine.clone(), Arc::clone(&self.compiles));
        let db = db.clone();
        let work = tokio::spawn(async move {
            for slot in pending {
                if let Err(error) = slot.fill(&engine, &compiles, &db).await {
                    tracing::warn!(%error, digest = &*slot.digest, "a policy is not compiled yet");
                }
            }
        });
        if tokio::time::timeout(RELOAD_WAIT, work).await.is_err() {
            tracing::warn!("policies are still being compiled, their previous versions serve");
        }
    }
}

impl Core {
    /// Compiles every active policy that is not compiled yet, at start and after a reload.
    ///
    /// # Errors
    /// When the database cannot be read. A component that does not compile is not an error here: it
    /// is logged, and its calls fail.
    pub(crate) async fn compile_policies(&self) -> Result<()> {
        let Policies { engine, compiles, .. } = &self.policies;
        let pending = self.pending_slots();
        try_join_all(pending.iter().map(|slot| slot.fill(engine, compiles, &self.db))).await?;
        Ok(())
    }

    /// Number of active policies that this edge has not compiled yet.
    pub fn policies_pending(&self) -> usize {
        self.pending_slots().len()
    }

    fn pending_slots(&self) -> Vec<Arc<Slot>> {
        let snapshot = self.snapshots.current();
        let active = snapshot.tenants.values().flat_map(|tenant| tenant.policies.all());
        active.filter(|p| p.slot.is_pending()).map(|p| Arc::clone(&p.slot)).collect()
    }
}

impl Slot {
    /// A slot without code, for good.
    pub(crate) fn broken(kind: PolicyKind, digest: &str, reason: String) -> Arc<Self> {
        let code = OnceCell::new_with(Some(Err(reason)));
        Arc::new(Self { kind, digest: digest.into(), code })
    }

    /// True until the component has been compiled or refused.
    pub(crate) fn is_pending(&self) -> bool {
        !self.code.initialized()
    }

    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.code.get()?.as_ref().ok()
    }

    /// Reads and compiles the component once.
    async fn fill(&self, engine: &PolicyEngine, compiles: &Semaphore, db: &Pool) -> Result<()> {
        let compile = || async {
            let _permit = compiles.acquire().await.map_err(|e| Error::internal("compile", e))?;
            let component = sqlx::query_scalar!(
                "select component from policy_component where digest = $1",
                &*self.digest,
            )
            .fetch_one(db)
            .await?;
            let code = compile(engine.clone(), self.kind, component).await;
            if let Err(reason) = &code {
                let kind = self.kind.as_str();
                tracing::error!(kind, digest = &*self.digest, reason, "a policy does not compile");
            }
            Ok::<_, Error>(code)
        };
        self.code.get_or_try_init(compile).await.map(drop)
    }
}

/// Compiles on a thread with a stack that is deep enough.
async fn compile(
    engine: PolicyEngine,
    kind: PolicyKind,
    component: Vec<u8>,
) -> Result<Policy, String> {
    let (sender, compiled) = oneshot::channel();
    std::thread::Builder::new()
        .name("policy-compiler".into())
        .stack_size(THREAD_STACK_BYTES)
        .spawn(move || drop(sender.send(engine.load(kind, &component))))
        .map_err(|error| format!("no thread to compile on: {error}"))?;
    match compiled.await {
        Ok(result) => result.map_err(|rejection| rejection.to_string()),
        Err(_) => Err("the component broke the compiler".into()),
    }
}

/// The engine's limits with those of the settings.
fn limits(settings: &settings::Policy) -> PolicyLimits {
    let defaults = PolicyLimits::default();
    PolicyLimits {
        fuel_max: settings.fuel,
        deadline_ms: settings.deadline_ms,
        memory_bytes_max: settings.memory_bytes,
        live_calls_max: settings.live_max,
        // Background calls and admissions get no more slots than live calls.
        background_calls_max: defaults.background_calls_max.min(settings.live_max),
        admissions_max: defaults.admissions_max.min(settings.live_max),
        ..defaults
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policies").field("limits", self.engine.limits()).finish_non_exhaustive()
    }
}
