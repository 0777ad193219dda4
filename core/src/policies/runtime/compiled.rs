//! Native code of policies: compiled off the serving threads at the first use, shared by all partners
//! with the same component, and dropped when none uses it, or for others within the bound of memory.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures::future::join_all;
use rampart_plugins::contract::PolicyKind;
use rampart_plugins::{CompilerProgram, NativeCodeCache, Policy, PolicyEngine};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::blocking_runs::BlockingRuns;
use super::compile::{Failure, compile, read};
use super::compile_permits::CompilePermits;
use super::limits::policy_limits;
use super::root_keys::{RootKey, RootKeys};
use super::slot::Slot;
use crate::Core;
use crate::platform::clock::Clock;
use crate::platform::crypto::{MasterKey, Purpose};
use crate::platform::db::Pool;
use crate::platform::error::{Error, Result};
use crate::platform::keyed_semaphore::KeyedSemaphore;
use crate::platform::settings::{self, COMPILER_ARGUMENTS};
use rampart_types::ClientId;

/// The worker in metrics and logs.
const SWEEP: &str = "policies";
/// Longest wait of a reload for compilers. Small components take milliseconds; one in JavaScript takes
/// seconds, and must not delay another tenant's suspension.
const RELOAD_WAIT: Duration = Duration::from_millis(500);
/// Concurrent dry runs; the engine has slots for them and for shadow runs.
pub(super) const DRY_RUNS_MAX: usize = 2;
/// Replaced versions that stay compiled: a small one takes 150 KiB.
const REPLACED_MAX: usize = 64;
/// Longest wait of a request for code that is not loaded: then the policy fails.
const FIRST_USE_WAIT: Duration = Duration::from_secs(5);

/// The policy engine of this edge and its compiled components.
pub struct Policies {
    pub(crate) engine: PolicyEngine,
    clock: Clock,
    /// One per component in use.
    slots: Mutex<HashMap<SlotKey, Weak<Slot>>>,
    /// Memory of loaded code, in bytes, and no less: what was dropped is found at the next overflow.
    loaded_bytes: AtomicUsize,
    memory_bytes_max: usize,
    /// The newest replaced versions, so that a rollback waits for no compiler.
    replaced: Mutex<VecDeque<Arc<Slot>>>,
    compiles: CompilePermits,
    /// Compilations for dry runs alone, one at a time: no call waits for them.
    dry_run_compiles: Arc<Semaphore>,
    /// Examinations of uploads: the engine refuses one without a free slot, here it waits.
    pub(crate) admissions: BlockingRuns,
    /// Calls that no request of a user waits for.
    pub(crate) dry_runs: BlockingRuns,
    /// Dry runs that staff ask for: one of each partner.
    pub(crate) staff_dry_runs: KeyedSemaphore<ClientId>,
    root_keys: RootKeys,
}

/// A component by kind and digest.
type SlotKey = (&'static str, Arc<str>);

/// The code of a component, or the reason that it has none; `None` when it cannot be loaded now.
type Loaded = Option<Arc<Result<Policy, String>>>;

impl Policies {
    /// Reserves the memory that policies run in.
    ///
    /// # Errors
    /// When the system refuses the address space, or the limits contradict each other.
    pub(crate) fn new(settings: &settings::Policy, keys: &MasterKey, clock: Clock) -> Result<Self> {
        let root_keys = RootKeys::parse(settings).map_err(|problem| {
            Error::internal("read the root keys", std::io::Error::other(problem))
        })?;
        let limits = policy_limits(settings);
        let key = keys.derive(Purpose::NativeCode)?;
        let cache = settings.cache_folder.clone().map(|folder| NativeCodeCache { folder, key });
        let compiler = settings.compiler.clone().map(|program| CompilerProgram {
            program,
            arguments: COMPILER_ARGUMENTS.map(str::to_owned).to_vec(),
        });
        let engine = PolicyEngine::with_native_code(limits, cache.as_ref(), compiler);
        let engine = engine.map_err(|error| {
            let cause = std::io::Error::other(format!("{error:#}"));
            Error::internal("start the policy engine", cause)
        })?;
        let compiles = CompilePermits::new();
        let admissions = BlockingRuns::new(engine.limits().admissions_max as usize);
        let dry_runs = BlockingRuns::new(DRY_RUNS_MAX);
        let (slots, replaced) = (Mutex::default(), Mutex::default());
        let (loaded_bytes, memory_bytes_max) = (AtomicUsize::new(0), settings.memory_bytes);
        Ok(Self {
            engine,
            clock,
            slots,
            loaded_bytes,
            memory_bytes_max,
            replaced,
            compiles,
            dry_run_compiles: Arc::new(Semaphore::new(1)),
            admissions,
            dry_runs,
            staff_dry_runs: KeyedSemaphore::new(1),
            root_keys,
        })
    }

    /// Memory of loaded code, in bytes, and no less.
    pub fn loaded_bytes(&self) -> usize {
        self.loaded_bytes.load(Ordering::Relaxed)
    }

    /// The root key of this name.
    pub(crate) fn root_key(&self, name: &str) -> Option<&RootKey> {
        self.root_keys.get(name)
    }

    /// True if the settings have a root key.
    pub(crate) fn has_root_key(&self) -> bool {
        !self.root_keys.is_empty()
    }

    /// True if a root key has this fingerprint.
    pub(crate) fn is_root(&self, fingerprint: &str) -> bool {
        self.root_keys.contains(fingerprint)
    }

    /// The shared slot of a component.
    pub(crate) fn slot(&self, kind: PolicyKind, digest: &str) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind.as_str(), Arc::from(digest));
        if let Some(slot) = slots.get(&key).and_then(Weak::upgrade) {
            return slot;
        }
        // Before the map would grow, not each time: a start makes a slot for each component.
        if slots.len() == slots.capacity() {
            slots.retain(|_, slot| slot.strong_count() > 0);
        }
        let slot = Arc::new(Slot::new(kind, Arc::clone(&key.1)));
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

    /// The code of a component in use for a dry run, loaded now if it is not.
    ///
    /// # Errors
    /// When the component cannot be read, or not be compiled now; the inner error is that of the
    /// compiler.
    pub(crate) async fn compiled(
        self: &Arc<Self>,
        kind: PolicyKind,
        digest: &str,
        db: &Pool,
    ) -> Result<Result<Policy, String>> {
        let loaded = self.begin_load(&self.slot(kind, digest), db).await;
        let code = loaded.map_err(|error| Error::internal("load a policy", error))??;
        let code = code.ok_or_else(|| Error::unavailable("compile the policy now"))?;
        Ok(Result::clone(&code))
    }

    /// The code of any component for a dry run. Code that is not loaded is compiled for the dry run alone:
    /// it takes no compile permit of calls, and evicts no code of theirs.
    ///
    /// # Errors
    /// As for [`Self::compiled`].
    pub(crate) async fn compiled_apart(
        &self,
        kind: PolicyKind,
        digest: &str,
        db: &Pool,
    ) -> Result<Result<Policy, String>> {
        if let Some(code) = self.slot(kind, digest).code.load_full() {
            return Ok(Result::clone(&code));
        }
        let permit = Arc::clone(&self.dry_run_compiles).acquire_owned().await;
        let permit = permit.map_err(|error| Error::internal("compile", error))?;
        let component = read(db, digest).await?;
        let engine = self.engine.clone();
        // In a task of its own: it keeps its permit to its end, also when nobody waits any more.
        let compiling = tokio::spawn(async move {
            let _permit = permit;
            compile(engine, kind, component).await
        });
        match compiling.await.map_err(|error| Error::internal("compile", error))? {
            Ok(policy) => Ok(Ok(policy)),
            Err(Failure::Final(reason)) => Ok(Err(reason)),
            Err(Failure::Transient(reason)) => {
                tracing::warn!(kind = kind.as_str(), digest, reason, "a policy is not compiled");
                Err(Error::unavailable("compile the policy now"))
            }
        }
    }

    /// The code of a slot for a request that waits, loaded now if it is not; bounded in time. It stays
    /// with the caller: the slot's may be dropped for others at any time.
    pub(crate) async fn ready(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        now_ms: u64,
        db: &Pool,
    ) -> Option<Policy> {
        slot.used_ms.store(now_ms, Ordering::Relaxed);
        if let Some(code) = slot.code.load_full() {
            return Result::as_ref(&code).ok().cloned();
        }
        if slot.is_delayed(&self.clock) {
            return None;
        }
        let work = self.begin_load(slot, db);
        let reason = match tokio::time::timeout(FIRST_USE_WAIT, work).await {
            Ok(Ok(Ok(code))) => return code.and_then(|code| Result::as_ref(&code).ok().cloned()),
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it takes long".to_owned(),
        };
        if let Some(not_logged) = slot.log_throttle.try_log(now_ms, false) {
            let digest = &*slot.digest;
            tracing::warn!(reason, digest, not_logged, "a policy is not loaded");
        }
        None
    }

    /// Loads a component in a task of its own: what nobody waits for any more is there for the next
    /// call, and no second compilation of it begins meanwhile.
    fn begin_load(self: &Arc<Self>, slot: &Arc<Slot>, db: &Pool) -> JoinHandle<Result<Loaded>> {
        let (policies, slot, db) = (Arc::clone(self), Arc::clone(slot), db.clone());
        tokio::spawn(async move { policies.load(&slot, &db).await })
    }

    /// Reads and compiles a component, unless it is loaded. `None` when it cannot be compiled now: that
    /// is logged, and it is tried again after a pause. `None`, too, after the failure of a read that this
    /// has waited for.
    async fn load(&self, slot: &Arc<Slot>, db: &Pool) -> Result<Loaded> {
        let Some(mut failures) = slot.turn().await else { return Ok(None) };
        if let Some(code) = slot.code.load_full() {
            return Ok(Some(code));
        }
        if slot.is_delayed(&self.clock) {
            return Ok(None);
        }
        let bytes = sqlx::query_scalar!(
            r#"select octet_length(component) as "bytes!" from policy_component where digest = $1"#,
            &*slot.digest,
        )
        .fetch_one(db)
        .await
        .inspect_err(|_| slot.fail_waiting())?;
        let permit = self.compiles.acquire(usize::try_from(bytes).unwrap_or(usize::MAX)).await;
        let _permit = permit.map_err(|e| Error::internal("compile", e))?;
        let component = read(db, &slot.digest).await.inspect_err(|_| slot.fail_waiting())?;
        let kind = slot.kind.as_str();
        let code = match compile(self.engine.clone(), slot.kind, component).await {
            Ok(policy) => Ok(policy),
            Err(Failure::Transient(reason)) => {
                tracing::warn!(kind, digest = &*slot.digest, reason, "a policy is not compiled");
                slot.delay(&self.clock, *failures);
                *failures = failures.saturating_add(1);
                return Ok(None);
            }
            Err(Failure::Final(reason)) => {
                tracing::error!(kind, digest = &*slot.digest, reason, "a policy does not compile");
                Err(reason)
            }
        };
        *failures = 0;
        Ok(Some(self.keep(slot, code)))
    }

    /// Keeps the code of a component within the bound of memory.
    fn keep(&self, slot: &Arc<Slot>, code: Result<Policy, String>) -> Arc<Result<Policy, String>> {
        let bytes = code.as_ref().map_or(0, Policy::memory_bytes);
        let code = Arc::new(code);
        // `make_room` holds the lock from its sum to its store: between them this code would not count.
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slot.set(Arc::clone(&code));
        let before = self.loaded_bytes.fetch_add(bytes, Ordering::Relaxed);
        drop(slots);
        if before.saturating_add(bytes) > self.memory_bytes_max {
            self.make_room(slot);
        }
        code
    }

    /// Drops the code that was called least recently, down to the bound; `kept` stays.
    fn make_room(&self, kept: &Arc<Slot>) {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut loaded: Vec<_> = slots.values().filter_map(Weak::upgrade).collect();
        loaded.retain(|slot| slot.memory_bytes() > 0);
        loaded.sort_by_cached_key(|slot| slot.used_ms.load(Ordering::Relaxed));
        let mut total: usize = loaded.iter().map(|slot| slot.memory_bytes()).sum();
        for slot in loaded.iter().filter(|slot| !Arc::ptr_eq(slot, kept)) {
            if total <= self.memory_bytes_max {
                break;
            }
            total = total.saturating_sub(slot.memory_bytes());
            // Calls in flight hold it until they end.
            slot.code.store(None);
        }
        self.loaded_bytes.store(total, Ordering::Relaxed);
    }

    /// The slot of a component that was compiled at admission: where it could not be compiled before, it
    /// has its code from then on.
    pub(crate) fn admitted(&self, policy: Policy) -> Arc<Slot> {
        let slot = self.slot(policy.kind(), policy.digest());
        if !slot.is_loaded() {
            self.keep(&slot, Ok(policy));
        }
        slot
    }

    /// Compiles the components of versions that replace others, and waits up to [`RELOAD_WAIT`]; the
    /// rest continue in the background, and the replaced versions serve meanwhile.
    pub(crate) async fn compile_within_reload(self: &Arc<Self>, db: &Pool, slots: Vec<Arc<Slot>>) {
        let pending: Vec<_> = slots.into_iter().filter(|slot| slot.is_pending()).collect();
        if pending.is_empty() {
            return;
        }
        let (policies, db) = (Arc::clone(self), db.clone());
        let work = tokio::spawn(async move {
            for slot in pending {
                if let Err(error) = policies.load(&slot, &db).await {
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
    /// Compiles every version for which another one serves meanwhile. A component that cannot be
    /// read is passed over; one that does not compile is logged, and its calls fail.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn compile_replacing_policies(&self) -> Result<()> {
        let pending = self.pending_slots();
        let loads = join_all(pending.iter().map(|slot| self.policies.load(slot, &self.db)));
        for (slot, loaded) in pending.iter().zip(loads.await) {
            if let Err(error) = loaded {
                // Partners share a component.
                self.metrics.row_failed(SWEEP, Uuid::nil(), &slot.digest, error)?;
            }
        }
        Ok(())
    }

    /// Number of versions for which another one serves until they are compiled here. What could not
    /// be compiled at the last try is not among them: it holds up no edge.
    pub fn policies_pending(&self) -> usize {
        self.pending_slots().iter().filter(|slot| !slot.has_failed()).count()
    }

    /// Number of versions that could not be compiled here at the last try, for reasons of this machine:
    /// the earlier ones serve.
    pub fn policies_failed(&self) -> usize {
        self.pending_slots().iter().filter(|slot| slot.has_failed()).count()
    }

    fn pending_slots(&self) -> Vec<Arc<Slot>> {
        let snapshot = self.snapshots.current();
        let active = snapshot.tenants.values().flat_map(|tenant| tenant.policies.all());
        let pending =
            active.filter(|policy| policy.slot.is_pending() && policy.previous.load().is_some());
        pending.map(|policy| Arc::clone(&policy.slot)).collect()
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policies").field("limits", self.engine.limits()).finish_non_exhaustive()
    }
}
