//! One call: a fresh instance in a store of its own, metered, that is thrown away after it.
//!
//! A trap poisons its store for good, and a policy must keep no state: hence one store per call.

use wasmtime::component::{Instance, InstancePre};
use wasmtime::{ResourceLimiter, Store, Trap};

use crate::bindings::crypto::{self, Algorithm, CryptoError, DigestAlgorithm};
use crate::bindings::log::{self, Level};
use crate::bindings::types::PolicyError;
use crate::host::crypto as host_crypto;
use crate::host::deadline::ProcessorDeadline;
use crate::host::keys::KeyRing;
use crate::host::limits::PolicyLimits;
use crate::host::report::{CallReport, Failure, FailureKind, LogLine, is_of_machine, one_line};
use crate::host::runtime::Runtime;

/// Component handles a call may hold. The contract has no resources, so any use is a mistake.
const HANDLES_MAX: usize = 16;

/// The class of a call, which decides its slot, its limits and the clock of its deadline: wall clock
/// where a request waits, and otherwise the processor time of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallClass {
    /// A request waits for it: a live slot, the limits of live calls.
    Live,
    /// A shadow run, dry run or replay: a background slot, and the fuel of live calls, so that it
    /// ends as a live call would.
    Background,
    /// At admission, whose slot the engine holds: the larger limits.
    Admission,
}

/// State of the host during one call.
pub(crate) struct Call {
    limits: PolicyLimits,
    log: Vec<LogLine>,
    log_bytes: usize,
    log_dropped: u32,
    memory_bytes: usize,
    /// It asked for more memory than it may have: a crash after that counts as memory.
    memory_refused: bool,
    now: u32,
    keys: KeyRing,
    crypto_calls: u32,
    verified: Vec<(String, Algorithm)>,
}

impl Call {
    pub(crate) fn new(limits: PolicyLimits, now: u32, keys: KeyRing) -> Self {
        Self {
            limits,
            log: Vec::new(),
            log_bytes: 0,
            log_dropped: 0,
            memory_bytes: 0,
            memory_refused: false,
            now,
            keys,
            crypto_calls: 0,
            verified: Vec::new(),
        }
    }

    /// Signatures that the host found genuine during this call.
    pub(crate) fn verified(&self) -> &[(String, Algorithm)] {
        &self.verified
    }

    fn count_crypto_call(&mut self) -> wasmtime::Result<()> {
        self.crypto_calls += 1;
        match self.crypto_calls <= self.limits.crypto_calls_max {
            true => Ok(()),
            false => Err(Trap::OutOfFuel.into()),
        }
    }
}

/// Runs `enter` in a fresh instance and `check` on its output.
pub(crate) fn run<A, T>(
    runtime: &Runtime,
    policy: &InstancePre<Call>,
    class: CallClass,
    call: Call,
    enter: impl FnOnce(&mut Store<Call>, &Instance) -> wasmtime::Result<Result<A, PolicyError>>,
    check: impl FnOnce(A, &Call) -> Result<T, String>,
) -> CallReport<T> {
    let (fuel_max, deadline_ms) = match class {
        CallClass::Live => (runtime.limits.fuel_max, runtime.limits.deadline_ms),
        CallClass::Background => (runtime.limits.fuel_max, runtime.limits.admission_deadline_ms),
        CallClass::Admission => {
            (runtime.limits.admission_fuel_max, runtime.limits.admission_deadline_ms)
        }
    };
    let slot = match class {
        CallClass::Live => Some(runtime.live_slots.try_acquire()),
        CallClass::Background => Some(runtime.background_slots.try_acquire()),
        CallClass::Admission => None,
    };
    let Ok(slot) = slot.transpose() else {
        return not_called(Failure::new(FailureKind::Capacity, "every slot is taken"));
    };
    let mut store = Store::new(&runtime.engine, call);
    let deadline_ticks = runtime.deadlines.begin(deadline_ms);
    if class != CallClass::Live {
        let deadline = ProcessorDeadline::begin(&runtime.deadlines, deadline_ms);
        store.epoch_deadline_callback(move |_| Ok(deadline.check()));
    }
    let ran = metered(&mut store, fuel_max, deadline_ticks).and_then(|()| {
        let instance = policy.instantiate(&mut store)?;
        enter(&mut store, &instance)
    });
    let fuel = fuel_max.saturating_sub(store.get_fuel().unwrap_or(fuel_max));
    let outcome = match ran {
        Ok(Ok(output)) => check(output, store.data())
            .map_err(|problem| Failure::new(FailureKind::InvalidOutput, problem)),
        Ok(Err(error)) => Err(Failure::from_policy(&error)),
        Err(error) => Err(engine_failure(&error, store.data())),
    };
    let Call { log, log_dropped, memory_bytes, .. } = store.into_data();
    drop(slot);
    CallReport { outcome, fuel, memory_bytes, log, log_dropped }
}

/// A call that never ran.
pub(crate) fn not_called<T>(failure: Failure) -> CallReport<T> {
    CallReport { outcome: Err(failure), fuel: 0, memory_bytes: 0, log: Vec::new(), log_dropped: 0 }
}

/// A request larger than a policy may be given.
pub(crate) fn too_large<T>(size: usize) -> CallReport<T> {
    let message = format!("a request of {size} bytes is more than a policy may be given");
    not_called(Failure::new(FailureKind::Capacity, message))
}

fn metered(store: &mut Store<Call>, fuel_max: u64, deadline_ticks: u64) -> wasmtime::Result<()> {
    store.limiter(|call| call);
    // Fuel and deadline both start at zero: one that is not set stops every call.
    store.set_fuel(fuel_max)?;
    store.set_epoch_deadline(deadline_ticks);
    store.set_hostcall_fuel(store.data().limits.output_bytes_max);
    store.set_max_component_handles(HANDLES_MAX);
    Ok(())
}

/// Classifies an error of the engine. One that is not a trap came up while output was read: too
/// large, not UTF-8, out of bounds.
fn engine_failure(error: &wasmtime::Error, call: &Call) -> Failure {
    let kind = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => FailureKind::Fuel,
        Some(Trap::Interrupt) => FailureKind::Deadline,
        _ if call.memory_refused => FailureKind::Memory,
        Some(_) => FailureKind::Trap,
        None if is_of_machine(error) => FailureKind::Capacity,
        None => FailureKind::InvalidOutput,
    };
    Failure::new(kind, error.root_cause().to_string())
}

impl log::Host for Call {
    fn write(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        let room = self.limits.log_bytes_max - self.log_bytes;
        if self.log.len() == self.limits.log_lines_max || message.len() > room {
            self.log_dropped = self.log_dropped.saturating_add(1);
        } else {
            let text = one_line(&message, room);
            self.log_bytes += message.len();
            self.log.push(LogLine { level, text });
        }
        Ok(())
    }
}

impl crypto::Host for Call {
    fn verify(
        &mut self,
        key: String,
        algorithm: Algorithm,
        message: Vec<u8>,
        signature: Vec<u8>,
    ) -> wasmtime::Result<Result<bool, CryptoError>> {
        self.count_crypto_call()?;
        let result =
            host_crypto::verify(&self.keys, self.now, &key, algorithm, &message, &signature);
        if result == Ok(true) {
            self.verified.push((key, algorithm));
        }
        Ok(result)
    }

    fn digest(&mut self, algorithm: DigestAlgorithm, data: Vec<u8>) -> wasmtime::Result<Vec<u8>> {
        self.count_crypto_call()?;
        Ok(host_crypto::digest(algorithm, &data))
    }
}

impl ResourceLimiter for Call {
    /// Also called for the memory a policy starts with.
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = desired <= self.limits.memory_bytes_max;
        match granted {
            true => self.memory_bytes = self.memory_bytes.max(desired),
            false => self.memory_refused = true,
        }
        Ok(granted)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= self.limits.table_elements_max)
    }

    fn instances(&self) -> usize {
        self.limits.core_instances_max as usize
    }

    fn memories(&self) -> usize {
        self.limits.memories_max as usize
    }

    fn tables(&self) -> usize {
        self.limits.tables_max as usize
    }
}
