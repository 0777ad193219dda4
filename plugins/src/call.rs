//! One call: a fresh instance in a store of its own, metered, that is thrown away after it.
//!
//! A trap poisons its store for good, and a policy must not remember; both say one store per call.

use wasmtime::component::{HasSelf, Instance, InstancePre, Linker};
use wasmtime::{PoolConcurrencyLimitError, ResourceLimiter, Store, Trap};

use crate::bindings::crypto::{self, Algorithm, CryptoError, DigestAlgorithm};
use crate::bindings::log::{self, Level};
use crate::bindings::meta::PolicyKind;
use crate::bindings::types::PolicyError;
use crate::crypto as host_crypto;
use crate::engine::Shared;
use crate::failure::{Called, Cause, Failure, LogLine, one_line};
use crate::keys::KeyRing;
use crate::limits::PolicyLimits;

/// Component handles a call may hold. The contract has no resources, so any use is a mistake.
const HANDLES_MAX: usize = 16;

/// On whose account a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// A request waits for it: in a serving slot, within the serving budget.
    Serving,
    /// Nobody's request waits for it (a shadow run, a dry run, a replay): in a slot of its own kind,
    /// within the fuel of serving, so that it ends as a serving call would.
    Aside,
    /// At admission, whose place the engine holds: within the larger budget.
    Admission,
}

/// What the host knows during one call.
pub(crate) struct Call {
    limits: PolicyLimits,
    log: Vec<LogLine>,
    log_bytes: usize,
    log_dropped: u32,
    memory_bytes: usize,
    /// It asked for more memory than it may have; a crash after that is about memory.
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

    /// Signatures the host found genuine during this call.
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

/// The imports a policy of this kind may have.
pub(crate) fn linker(shared: &Shared, kind: PolicyKind) -> wasmtime::Result<Linker<Call>> {
    let mut linker = Linker::new(&shared.wasm);
    log::add_to_linker::<Call, HasSelf<Call>>(&mut linker, |call| call)?;
    if kind == PolicyKind::Signature {
        crypto::add_to_linker::<Call, HasSelf<Call>>(&mut linker, |call| call)?;
    }
    Ok(linker)
}

/// Runs `enter` in a fresh instance and `check` on what it answered.
pub(crate) fn run<A, T>(
    shared: &Shared,
    policy: &InstancePre<Call>,
    lane: Lane,
    call: Call,
    enter: impl FnOnce(&mut Store<Call>, &Instance) -> wasmtime::Result<Result<A, PolicyError>>,
    check: impl FnOnce(A, &Call) -> Result<T, String>,
) -> Called<T> {
    let (fuel_max, deadline_ms) = match lane {
        Lane::Serving => (shared.limits.fuel_max, shared.limits.deadline_ms),
        Lane::Aside => (shared.limits.fuel_max, shared.limits.admission_deadline_ms),
        Lane::Admission => (shared.limits.admission_fuel_max, shared.limits.admission_deadline_ms),
    };
    let slot = match lane {
        Lane::Serving => Some(shared.slots.try_acquire()),
        Lane::Aside => Some(shared.asides.try_acquire()),
        Lane::Admission => None,
    };
    let Ok(slot) = slot.transpose() else {
        return not_called(Failure::new(Cause::Capacity, "every slot is taken"));
    };
    let mut store = Store::new(&shared.wasm, call);
    let deadline_ticks = shared.clock.begin(deadline_ms);
    let ran = metered(&mut store, fuel_max, deadline_ticks).and_then(|()| {
        let instance = policy.instantiate(&mut store)?;
        enter(&mut store, &instance)
    });
    let fuel = fuel_max.saturating_sub(store.get_fuel().unwrap_or(fuel_max));
    let outcome = match ran {
        Ok(Ok(answer)) => {
            check(answer, store.data()).map_err(|problem| Failure::new(Cause::Answer, problem))
        }
        Ok(Err(error)) => Err(Failure::said_by_policy(&error)),
        Err(error) => Err(broken(&error, store.data())),
    };
    let Call { log, log_dropped, memory_bytes, .. } = store.into_data();
    drop(slot);
    Called { outcome, fuel, memory_bytes, log, log_dropped }
}

/// A call that never ran.
pub(crate) fn not_called<T>(failure: Failure) -> Called<T> {
    Called { outcome: Err(failure), fuel: 0, memory_bytes: 0, log: Vec::new(), log_dropped: 0 }
}

fn metered(store: &mut Store<Call>, fuel_max: u64, deadline_ticks: u64) -> wasmtime::Result<()> {
    store.limiter(|call| call);
    // Both start at nothing left, so a forgotten one stops every call instead of none.
    store.set_fuel(fuel_max)?;
    store.set_epoch_deadline(deadline_ticks);
    store.epoch_deadline_trap();
    store.set_hostcall_fuel(store.data().limits.answer_bytes_max);
    store.set_max_component_handles(HANDLES_MAX);
    Ok(())
}

/// Sorts what the engine reports. What is not a trap came up while an answer was read: too large,
/// not UTF-8, out of bounds.
fn broken(error: &wasmtime::Error, call: &Call) -> Failure {
    let cause = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => Cause::Fuel,
        Some(Trap::Interrupt) => Cause::Deadline,
        _ if call.memory_refused => Cause::Memory,
        Some(_) => Cause::Trap,
        None if error.is::<PoolConcurrencyLimitError>() => Cause::Capacity,
        None => Cause::Answer,
    };
    Failure::new(cause, error.root_cause().to_string())
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
        let answer =
            host_crypto::verify(&self.keys, self.now, &key, algorithm, &message, &signature);
        if answer == Ok(true) {
            self.verified.push((key, algorithm));
        }
        Ok(answer)
    }

    fn digest(&mut self, algorithm: DigestAlgorithm, data: Vec<u8>) -> wasmtime::Result<Vec<u8>> {
        self.count_crypto_call()?;
        Ok(host_crypto::digest(algorithm, &data))
    }
}

impl ResourceLimiter for Call {
    /// Also sees the memory a policy starts with.
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
