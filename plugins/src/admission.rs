//! Admission: the checks a component must pass before it may serve. None runs on a serving thread.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::setpriority_process;
use wasmtime::Store;
use wasmtime::component::Instance;

use crate::bindings::meta::{self, ConfigProblem, PolicyInfo};
use crate::bindings::types::{CallContext, ConfigEntry, PolicyError};
use crate::config::check_config;
use crate::host::call::{Call, CallClass, run};
use crate::host::compile::{check_size, load};
use crate::host::compiler::NICENESS;
use crate::host::keys::KeyRing;
use crate::host::rejection::{Check, Rejection};
use crate::host::runtime::Runtime;
use crate::kinds::compiled::Linked;
use crate::kinds::probes::ProbeFuel;
use crate::kinds::{Policy, PolicyKind};

/// Longest of each text a policy states about itself, in bytes.
const INFO_TEXT_BYTES_MAX: usize = 1024;
/// Most configuration fields, and most keys, a policy may declare.
const INFO_ITEMS_MAX: usize = 64;
/// Compiling recurses with the nesting of the code, which the uploader chooses.
const THREAD_STACK_BYTES: usize = 16 << 20;

/// A component that passed admission.
pub struct Admitted {
    /// Ready to be called.
    pub policy: Policy,
    /// Its description of itself, from `describe`.
    pub info: PolicyInfo,
    /// The configuration it accepted.
    pub config: Vec<ConfigEntry>,
    /// SHA-256 of the component, in lower-case hex.
    pub digest: String,
    /// Size of the component, in bytes.
    pub size: usize,
    /// Most fuel a probe burnt.
    pub fuel: u64,
}

/// Examines an upload on a thread of its own, within the time limit of an admission.
pub(crate) fn admit(
    runtime: &Arc<Runtime>,
    kind: PolicyKind,
    wasm: Vec<u8>,
    context: CallContext,
    configure: impl FnOnce(&PolicyInfo) -> Result<Vec<ConfigEntry>, String> + Send + 'static,
) -> Result<Admitted, Rejection> {
    check_size(runtime, &wasm)?;
    let slot = Arc::clone(&runtime.admission_slots)
        .try_acquire_owned()
        .map_err(|_| Rejection::transient("other uploads are being examined, try again"))?;
    let (sender, results) = mpsc::sync_channel(1);
    let examined = Arc::clone(runtime);
    thread::Builder::new()
        .name("policy-admission".into())
        .stack_size(THREAD_STACK_BYTES)
        .spawn(move || {
            // On Linux this applies to the calling thread alone. If it fails, the default priority stays.
            let _ = setpriority_process(None, NICENESS);
            let result = examine(&examined, kind, &wasm, &context, configure);
            // The slot is free before the result is sent, since its receiver may upload again. After
            // a time-out nobody receives it.
            drop(slot);
            drop(sender.send(result));
        })
        .map_err(|_| Rejection::transient("the host has no thread left for this"))?;
    match results.recv_timeout(Duration::from_millis(runtime.limits.examination_ms_max())) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => Err(overdue(runtime)),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            Err(Rejection::by(Check::Compilation, "the component broke the compiler"))
        }
    }
}

/// The refusal of an upload past its wall clock. In a process of its own the compiler meets a bound of
/// processor time before, if the component is at fault: then the machine was busy.
fn overdue(runtime: &Runtime) -> Rejection {
    let reason =
        format!("not compiled and tried within {} ms", runtime.limits.examination_ms_max());
    match runtime.compiler {
        Some(_) => Rejection::transient(reason).at(Check::Compilation),
        None => Rejection::by(Check::Compilation, reason),
    }
}

fn examine(
    runtime: &Arc<Runtime>,
    kind: PolicyKind,
    wasm: &[u8],
    context: &CallContext,
    configure: impl FnOnce(&PolicyInfo) -> Result<Vec<ConfigEntry>, String>,
) -> Result<Admitted, Rejection> {
    let time = Duration::from_millis(runtime.limits.examination_ms_max());
    let policy = load(runtime, kind, wasm, time)?;
    let info = describe(&policy, context.now)
        .and_then(|info| check_info(&info, kind).map(|()| info))
        .map_err(|rejection| rejection.at(Check::Description))?;
    let misfit = |reason: String| Rejection::by(Check::Configuration, reason);
    let entries = configure(&info).map_err(misfit)?;
    let config = &entries[..];
    check_config(&info.config, config).map_err(misfit)?;
    policy
        .check_room(context, config)
        .and_then(|()| validate(&policy, context.now, config))
        .map_err(|rejection| rejection.at(Check::Configuration))?;
    let fuel = policy.probe(context, config).map_err(|rejection| rejection.at(Check::Samples))?;
    check_fuel(fuel, runtime.limits.fuel_max)?;
    let digest = policy.digest().to_owned();
    let (size, fuel) = (wasm.len(), fuel.most);
    Ok(Admitted { policy, info, config: entries, digest, size, fuel })
}

/// Half of the fuel stays for what no sample shows, but for a request that cannot be larger.
fn check_fuel(fuel: ProbeFuel, fuel_max: u64) -> Result<(), Rejection> {
    let ProbeFuel { most, most_of_usual } = fuel;
    if most_of_usual > fuel_max / 2 {
        let reason = format!("a sample burnt {most_of_usual} fuel, over half of {fuel_max}");
        return Err(Rejection::by(Check::Fuel, reason));
    }
    if most > fuel_max {
        let reason = format!("the largest sample burnt {most} fuel, over {fuel_max}");
        return Err(Rejection::by(Check::Fuel, reason));
    }
    Ok(())
}

fn describe(policy: &Policy, now: u32) -> Result<PolicyInfo, Rejection> {
    call_meta(policy, now, "describe", |meta, store| meta.call_describe(store).map(Ok))
}

fn validate(policy: &Policy, now: u32, config: &[ConfigEntry]) -> Result<(), Rejection> {
    let result = call_meta(policy, now, "validate-config", |meta, store| {
        meta.call_validate_config(store, config).map(Ok)
    })?;
    result.map_err(|problems: Vec<ConfigProblem>| {
        let list: Vec<String> =
            problems.iter().map(|p| format!("`{}` {}", p.key, p.problem)).collect();
        Rejection::new(format!("the policy does not accept the configuration: {}", list.join("; ")))
    })
}

/// Calls a function of `meta`.
fn call_meta<T>(
    policy: &Policy,
    now: u32,
    function: &str,
    call: impl FnOnce(&meta::Guest, &mut Store<Call>) -> wasmtime::Result<Result<T, PolicyError>>,
) -> Result<T, Rejection> {
    let Linked { runtime, instance, .. } = policy.linked();
    let enter = |store: &mut Store<Call>, entered: &Instance| {
        let meta = meta::GuestIndices::new(instance)?.load(&mut *store, entered)?;
        call(&meta, store)
    };
    let host = Call::new(runtime.limits, now, KeyRing::default());
    let report = run(runtime, instance, CallClass::Admission, host, enter, |value, _| Ok(value));
    report.outcome.map_err(|failure| Rejection::failed(format_args!("`{function}`"), &failure))
}

fn check_info(info: &PolicyInfo, kind: PolicyKind) -> Result<(), Rejection> {
    if info.policies != kind.declared().into_iter().collect::<Vec<_>>() {
        return Err(Rejection::new(format!(
            "`describe` does not say that this is one {} policy",
            kind.as_str()
        )));
    }
    let fields = info.config.iter().flat_map(|field| [&field.key, &field.help]);
    let texts: Vec<&String> = [&info.name, &info.version, &info.summary]
        .into_iter()
        .chain(fields)
        .chain(&info.keys)
        .collect();
    let short = texts.iter().all(|text| text.len() <= INFO_TEXT_BYTES_MAX);
    if !short || info.config.len() > INFO_ITEMS_MAX || info.keys.len() > INFO_ITEMS_MAX {
        return Err(Rejection::new("`describe` says more than the host keeps"));
    }
    // Postgres stores no U+0000, and a terminal obeys others.
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    match texts.iter().any(|text| text.contains(is_control)) {
        true => Err(Rejection::new("`describe` has a control character in a text")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_fuel_is_for_samples_and_all_of_it_for_the_largest() {
        let checked = |most_of_usual, most| {
            let fuel = ProbeFuel { most, most_of_usual };
            check_fuel(fuel, 100).map_err(|rejection| rejection.to_string())
        };
        assert_eq!(checked(50, 100), Ok(()));
        let usual = "a sample burnt 51 fuel, over half of 100".to_owned();
        assert_eq!(checked(51, 51), Err(usual));
        let largest = "the largest sample burnt 101 fuel, over 100".to_owned();
        assert_eq!(checked(50, 101), Err(largest));
    }
}
