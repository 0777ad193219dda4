//! The WebAssembly engine with its limits, call slots and deadline clock.

use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime::{Config, Engine, PoolingAllocationConfig};

use crate::host::compiler::CompilerProgram;
use crate::host::deadline::DeadlineClock;
use crate::host::limits::PolicyLimits;
use crate::host::native_code::{Folder, NativeCodeCache};

/// Everything that calls of all policies share.
pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    pub(crate) limits: PolicyLimits,
    /// Free slots for calls that a request waits for.
    pub(crate) live_slots: Semaphore,
    /// Free slots for calls that no request waits for.
    pub(crate) background_slots: Semaphore,
    /// Free slots for admissions.
    pub(crate) admission_slots: Arc<Semaphore>,
    pub(crate) deadlines: Arc<DeadlineClock>,
    pub(crate) native_code: Option<Folder>,
    pub(crate) compiler: Option<CompilerProgram>,
}

impl Runtime {
    /// Reserves the memory of every slot and starts the clock of the deadlines.
    ///
    /// # Errors
    /// When the system refuses either, the limits contradict each other, or the folder for native
    /// code is not this user's alone.
    pub(crate) fn start(
        limits: PolicyLimits,
        native_code: Option<&NativeCodeCache>,
        compiler: Option<CompilerProgram>,
    ) -> wasmtime::Result<Self> {
        let native_code = native_code.map(Folder::open).transpose()?;
        let engine = Engine::new(&engine_config(&limits))?;
        let deadline_ms_max = limits.deadline_ms.max(limits.admission_deadline_ms);
        let deadlines = DeadlineClock::start(&engine, limits.deadline_ms, deadline_ms_max)?;
        Ok(Self {
            engine,
            limits,
            live_slots: Semaphore::new(limits.live_calls_max as usize),
            background_slots: Semaphore::new(limits.background_calls_max as usize),
            admission_slots: Arc::new(Semaphore::new(limits.admissions_max as usize)),
            deadlines: Arc::new(deadlines),
            native_code,
            compiler,
        })
    }

    /// Components whose native code was found in the folder.
    pub(crate) fn reused(&self) -> usize {
        self.native_code.as_ref().map_or(0, Folder::hits)
    }
}

/// Deterministic and metered, with no feature that a policy does not need.
fn engine_config(limits: &PolicyLimits) -> Config {
    // Admissions and background calls do not run in the slots of live calls.
    let others = limits.admissions_max.saturating_add(limits.background_calls_max);
    let live = limits.live_calls_max.saturating_add(others);
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
        // Each slot is cleared whole. `pagemap_scan` would clear only the pages that the kernel reports as
        // present and written, and while it moves a page (compaction) or has it in swap, that page is not
        // present: a call found bytes of an earlier one. Under forced compaction, 5 of 63,600 scans on
        // Linux 6.18 left a written page out; wasmtime's pull request 14357 is the mend.
        .decommit_batch_size(16);
    let mut config = compiler_config();
    config.allocation_strategy(pool).max_wasm_stack(limits.stack_bytes_max);
    config
}

/// The settings that native code depends on.
pub(crate) fn compiler_config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .concurrency_support(false)
        .consume_fuel(true)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        // Deterministic first: the engine refuses relaxed instructions only as a set.
        .relaxed_simd_deterministic(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        // A component of JavaScript has components within, and the engine's own code between two of
        // them has the memories of both. A policy's module has one at most: the pool refuses more.
        .wasm_multi_memory(true)
        // A policy has a few KiB of data, and writing them costs less than a page fault. Mapping them
        // would cost a call five times as much where many partners share a slot, and an open file
        // per policy.
        .memory_init_cow(false)
        // Nobody reads a backtrace, and every policy would pay for it in memory; registering unwind
        // tables takes time that is quadratic in the number of policies.
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        .native_unwind_info(false);
    config
}
