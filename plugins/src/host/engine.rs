//! The public handle of the WebAssembly host.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::{self, Admitted};
use crate::bindings::meta::PolicyInfo;
use crate::bindings::types::{CallContext, ConfigEntry};
use crate::host::compile;
use crate::host::compiler::CompilerProgram;
use crate::host::limits::PolicyLimits;
use crate::host::native_code::NativeCodeCache;
use crate::host::rejection::Rejection;
use crate::host::runtime::Runtime;
use crate::kinds::{Policy, PolicyKind, probes};

/// Wall clock of a compilation outside of an admission, in times of what an admission may take: a busy
/// machine says nothing of a component, whose processor time is bounded.
const LOAD_TIMES: u64 = 6;

/// Compiles policies and holds the memory they run in. One per process; cheap to clone.
#[derive(Clone)]
pub struct PolicyEngine {
    runtime: Arc<Runtime>,
}

impl PolicyEngine {
    /// Reserves address space for every slot (4 GiB a memory, not touched) and starts the clock of
    /// the deadlines.
    ///
    /// # Errors
    /// When the system refuses the address space or the thread, or the limits contradict each other.
    pub fn new(limits: PolicyLimits) -> wasmtime::Result<Self> {
        Ok(Self { runtime: Arc::new(Runtime::start(limits, None, None)?) })
    }

    /// The same, with native code cached in a folder and compiled in a child process, each if given: a
    /// component that this version of the engine compiled before, with the same settings, is not
    /// compiled again. Without a program this process compiles.
    ///
    /// # Errors
    /// Those of [`PolicyEngine::new`], and when the folder is not this user's alone.
    pub fn with_native_code(
        limits: PolicyLimits,
        cache: Option<&NativeCodeCache>,
        compiler: Option<CompilerProgram>,
    ) -> wasmtime::Result<Self> {
        Ok(Self { runtime: Arc::new(Runtime::start(limits, cache, compiler)?) })
    }

    /// Number of components found compiled in the folder for native code.
    pub fn reused(&self) -> usize {
        self.runtime.reused()
    }

    /// The limits in force.
    pub fn limits(&self) -> &PolicyLimits {
        &self.runtime.limits
    }

    /// Examines an uploaded component: size, imports, exports, resources, its description of
    /// itself, `config` against that, and two equal runs of every probe within half the fuel, or
    /// all of it for a request that cannot be larger.
    ///
    /// Blocks for milliseconds to [`PolicyLimits::examination_ms_max`]: never call it on a serving
    /// thread. The work runs on a thread of its own; past its time the upload is refused at once,
    /// and the slot of that thread stays taken until it ends.
    ///
    /// # Errors
    /// The reason, in one line for the operator.
    pub fn admit(
        &self,
        kind: PolicyKind,
        wasm: Vec<u8>,
        config: Vec<ConfigEntry>,
    ) -> Result<Admitted, Rejection> {
        self.admit_with(kind, wasm, probes::context(), move |_| Ok(config))
    }

    /// The same, with a configuration built from the policy's description of itself, and in a context of
    /// the caller's: one like that of live calls, so that the policy cannot tell the examination from
    /// them.
    ///
    /// # Errors
    /// The reason, that of `configure` included, in one line for the operator.
    pub fn admit_with(
        &self,
        kind: PolicyKind,
        wasm: Vec<u8>,
        context: CallContext,
        configure: impl FnOnce(&PolicyInfo) -> Result<Vec<ConfigEntry>, String> + Send + 'static,
    ) -> Result<Admitted, Rejection> {
        admission::admit(&self.runtime, kind, wasm, context, configure)
    }

    /// Compiles a component that was admitted before, at start or when another edge admitted it.
    ///
    /// Blocks for milliseconds to seconds, by the size of the component: not for a serving thread.
    ///
    /// # Errors
    /// The reason, when the component does not fit this engine (say, after lowering a limit), or could
    /// not be compiled now ([`Rejection::is_transient`]).
    pub fn load(&self, kind: PolicyKind, wasm: &[u8]) -> Result<Policy, Rejection> {
        let wait_ms = self.runtime.limits.admission_ms_max.saturating_mul(LOAD_TIMES);
        compile::load(&self.runtime, kind, wasm, Duration::from_millis(wait_ms))
    }
}
