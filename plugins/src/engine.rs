//! The WebAssembly engine all policies share.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime::{Cache, Config, Enabled, Engine, PoolingAllocationConfig};

use crate::admission::{self, Admitted, Rejection};
use crate::bindings::meta::{PolicyInfo, PolicyKind};
use crate::bindings::types::ConfigEntry;
use crate::clock::DeadlineClock;
use crate::limits::PolicyLimits;
use crate::native_code;
use crate::policy::Policy;

/// Compiles policies and holds the memory they run in. One per process; cheap to clone.
#[derive(Clone)]
pub struct PolicyEngine {
    shared: Arc<Shared>,
}

/// What a policy needs of its engine for as long as it lives.
pub(crate) struct Shared {
    pub(crate) wasm: Engine,
    pub(crate) limits: PolicyLimits,
    /// Free slots for calls.
    pub(crate) slots: Semaphore,
    /// Free slots for calls that no request waits for.
    pub(crate) asides: Semaphore,
    /// Free places for admissions.
    pub(crate) admissions: Arc<Semaphore>,
    pub(crate) clock: DeadlineClock,
    native_code: Option<Cache>,
}

impl PolicyEngine {
    /// Reserves address space for every slot (4 GiB a memory, not touched) and starts the clock of
    /// the deadlines.
    ///
    /// # Errors
    /// When the system refuses the address space or the thread, or the limits contradict each other.
    pub fn new(limits: PolicyLimits) -> wasmtime::Result<Self> {
        Self::start(limits, None)
    }

    /// The same, with native code kept in a folder, so that what was compiled there before, by this
    /// version of the engine with the same settings, is not compiled again.
    ///
    /// # Errors
    /// Those of [`PolicyEngine::new`], and when the folder is not this user's alone.
    pub fn with_native_code(limits: PolicyLimits, folder: &Path) -> wasmtime::Result<Self> {
        Self::start(limits, Some(native_code::open(folder)?))
    }

    fn start(limits: PolicyLimits, native_code: Option<Cache>) -> wasmtime::Result<Self> {
        let wasm = Engine::new(engine_config(&limits).cache(native_code.clone()))?;
        let deadline_ms_max = limits.deadline_ms.max(limits.admission_deadline_ms);
        let clock = DeadlineClock::start(&wasm, deadline_ms_max)?;
        let slots = Semaphore::new(limits.live_calls_max as usize);
        let admissions = Arc::new(Semaphore::new(limits.admissions_max as usize));
        let asides = Semaphore::new(limits.asides_max as usize);
        let shared = Shared { wasm, limits, slots, asides, admissions, clock, native_code };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// How many components were found compiled in the folder for native code.
    pub fn reused(&self) -> usize {
        self.shared.native_code.as_ref().map_or(0, Cache::cache_hits)
    }

    /// The limits in force.
    pub fn limits(&self) -> &PolicyLimits {
        &self.shared.limits
    }

    /// Examines an uploaded component: size, imports, exports, resources, what it says about
    /// itself, `config` against that, and two equal runs of every sample within half the fuel.
    ///
    /// Blocks for milliseconds to [`PolicyLimits::admission_ms_max`]: never call it on a serving
    /// thread. The work runs on a thread of its own; past its time the upload is refused at once,
    /// and the place of that thread stays taken until it ends.
    ///
    /// # Errors
    /// The reason, in one line for the operator.
    pub fn admit(
        &self,
        kind: PolicyKind,
        wasm: Vec<u8>,
        config: Vec<ConfigEntry>,
    ) -> Result<Admitted, Rejection> {
        self.admit_with(kind, wasm, move |_| Ok(config))
    }

    /// The same, with a configuration that is made once the policy has said what it takes.
    ///
    /// # Errors
    /// The reason, that of `configure` included, in one line for the operator.
    pub fn admit_with(
        &self,
        kind: PolicyKind,
        wasm: Vec<u8>,
        configure: impl FnOnce(&PolicyInfo) -> Result<Vec<ConfigEntry>, String> + Send + 'static,
    ) -> Result<Admitted, Rejection> {
        admission::admit(&self.shared, kind, wasm, configure)
    }

    /// Compiles a component that was admitted before, at start or when another edge admitted it.
    ///
    /// Blocks for milliseconds to seconds, by the size of the component: not for a serving thread.
    ///
    /// # Errors
    /// The reason, when the component does not fit this engine (say, after lowering a limit).
    pub fn load(&self, kind: PolicyKind, wasm: &[u8]) -> Result<Policy, Rejection> {
        admission::load(&self.shared, kind, wasm)
    }
}

/// Deterministic, metered, and nothing a policy does not need.
fn engine_config(limits: &PolicyLimits) -> Config {
    // Admissions and rehearsals run beside the serving calls, not in their slots.
    let beside = limits.admissions_max.saturating_add(limits.asides_max);
    let live = limits.live_calls_max.saturating_add(beside);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(live)
        .total_core_instances(live.saturating_mul(limits.core_instances_max))
        .total_memories(live.saturating_mul(limits.memories_max))
        .total_tables(live.saturating_mul(limits.tables_max))
        .max_memory_size(limits.memory_bytes_max)
        .table_elements(limits.table_elements_max)
        .max_core_instances_per_component(limits.core_instances_max)
        .max_memories_per_component(limits.memories_max)
        .max_tables_per_component(limits.tables_max)
        .max_component_instance_size(256 << 10)
        .max_core_instance_size(256 << 10)
        .linear_memory_keep_resident(limits.resident_bytes)
        .table_keep_resident(64 << 10)
        .max_unused_warm_slots(live)
        .decommit_batch_size(16)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config
        .allocation_strategy(pool)
        .wasm_component_model(true)
        .concurrency_support(false)
        .consume_fuel(true)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        // Deterministic first, because the engine refuses relaxed instructions only as a set.
        .relaxed_simd_deterministic(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        // A policy has a few KiB of data: writing them costs less than a page fault, while mapping
        // them would cost a call five times as much where many partners take turns in a slot, and
        // each policy an open file.
        .memory_init_cow(false)
        // One thread for each compilation, of which there are few at a time: an upload must not
        // take every processor from the requests.
        .parallel_compilation(false)
        .max_wasm_stack(limits.stack_bytes_max)
        // Nobody reads a backtrace, and every policy would pay for it in memory; registering unwind
        // tables takes time that is quadratic in the number of policies.
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        .native_unwind_info(false);
    config
}
