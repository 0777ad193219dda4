//! What a component must pass before it may serve. Nothing of it runs on a serving thread.

use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use ring::digest;
use wasmtime::Store;
use wasmtime::component::{Component, Instance};

use crate::bindings::meta::{ConfigProblem, PolicyInfo, PolicyKind};
use crate::bindings::types::{ConfigEntry, PolicyError};
use crate::bindings::{fee, meta, method_order, signature};
use crate::call::{Call, Lane, linker, run};
use crate::config::check_config;
use crate::engine::Shared;
use crate::failure::{Called, Failure, one_line};
use crate::keys::KeyRing;
use crate::policy::{Compiled, FeePolicy, MethodOrderPolicy, Policy, SignaturePolicy};
use crate::samples;

/// The package every import and export of a policy belongs to, and the track of it that this host
/// speaks.
const PACKAGE: &str = "rampart:policy/";
const TRACK: &str = "0.1.";

const REASON_BYTES_MAX: usize = 512;
/// Longest of each text a policy says about itself, in bytes.
const INFO_TEXT_BYTES_MAX: usize = 1024;
/// Most configuration fields, and most keys, a policy may declare.
const INFO_ITEMS_MAX: usize = 64;
/// Compiling recurses with the nesting of the code, which the uploader chooses.
const THREAD_STACK_BYTES: usize = 16 << 20;

/// A component that passed.
pub struct Admitted {
    /// Ready to be called.
    pub policy: Policy,
    /// What it says about itself.
    pub info: PolicyInfo,
    /// The configuration it accepted.
    pub config: Vec<ConfigEntry>,
    /// SHA-256 of the component, in lower-case hex.
    pub digest: String,
    /// Size of the component, in bytes.
    pub size: usize,
    /// Most fuel a sample burnt.
    pub fuel: u64,
}

/// Why a component was not accepted: one line for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection(String);

impl Rejection {
    fn new(reason: impl AsRef<str>) -> Self {
        Self(one_line(reason.as_ref(), REASON_BYTES_MAX))
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Rejection {}

/// Examines an upload on a thread of its own and waits for it, within the time an admission has.
pub(crate) fn admit(
    shared: &Arc<Shared>,
    kind: PolicyKind,
    wasm: Vec<u8>,
    configure: impl FnOnce(&PolicyInfo) -> Result<Vec<ConfigEntry>, String> + Send + 'static,
) -> Result<Admitted, Rejection> {
    check_size(shared, &wasm)?;
    let place = Arc::clone(&shared.admissions)
        .try_acquire_owned()
        .map_err(|_| Rejection::new("other uploads are being examined, try again"))?;
    let (sender, verdict) = mpsc::sync_channel(1);
    let examined = Arc::clone(shared);
    thread::Builder::new()
        .name("policy-admission".into())
        .stack_size(THREAD_STACK_BYTES)
        .spawn(move || {
            let result = examine(&examined, kind, &wasm, configure);
            // The place is given back before the answer is: who hears it may upload again. Nobody
            // listens any more after a time-out.
            drop(place);
            drop(sender.send(result));
        })
        .map_err(|_| Rejection::new("the host has no thread left for this"))?;
    let wait_ms = shared.limits.admission_ms_max;
    match verdict.recv_timeout(Duration::from_millis(wait_ms)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            Err(Rejection::new(format!("not compiled and tried within {wait_ms} ms")))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            Err(Rejection::new("the component broke the compiler"))
        }
    }
}

/// Compiles and links, with the checks that make the result safe to call.
pub(crate) fn load(
    shared: &Arc<Shared>,
    kind: PolicyKind,
    wasm: &[u8],
) -> Result<Policy, Rejection> {
    check_size(shared, wasm)?;
    let component = Component::from_binary(&shared.wasm, wasm)
        .map_err(|e| Rejection::new(format!("not a component this host can run: {e:#}")))?;
    check_imports(shared, kind, &component)?;
    check_exports(shared, kind, &component)?;
    check_resources(shared, &component)?;
    let mismatch = |e: wasmtime::Error| Rejection::new(format!("breaks the contract: {e:#}"));
    let instance =
        linker(shared, kind).and_then(|l| l.instantiate_pre(&component)).map_err(mismatch)?;
    let digest = hex::encode(digest::digest(&digest::SHA256, wasm)).into();
    let shared = Arc::clone(shared);
    Ok(match kind {
        PolicyKind::Fee => {
            let exports = fee::GuestIndices::new(&instance).map_err(mismatch)?;
            Policy::Fee(FeePolicy(Compiled { shared, instance, exports, digest }))
        }
        PolicyKind::MethodOrder => {
            let exports = method_order::GuestIndices::new(&instance).map_err(mismatch)?;
            Policy::MethodOrder(MethodOrderPolicy(Compiled { shared, instance, exports, digest }))
        }
        PolicyKind::Signature => {
            let exports = signature::GuestIndices::new(&instance).map_err(mismatch)?;
            Policy::Signature(SignaturePolicy(Compiled { shared, instance, exports, digest }))
        }
    })
}

fn examine(
    shared: &Arc<Shared>,
    kind: PolicyKind,
    wasm: &[u8],
    configure: impl FnOnce(&PolicyInfo) -> Result<Vec<ConfigEntry>, String>,
) -> Result<Admitted, Rejection> {
    let policy = load(shared, kind, wasm)?;
    let info = describe(shared, &policy)?;
    check_info(&info, kind)?;
    let entries = configure(&info).map_err(Rejection::new)?;
    let config = &entries[..];
    check_config(&info.config, config).map_err(Rejection::new)?;
    validate(shared, &policy, config)?;
    let fuel = match &policy {
        Policy::Fee(p) => worst(samples::fees(), |(context, request)| {
            p.price_in(Lane::Admission, context, config, request)
        }),
        Policy::MethodOrder(p) => worst(samples::orders(), |(context, request)| {
            p.rank_in(Lane::Admission, context, config, request)
        }),
        Policy::Signature(p) => worst(samples::payloads(), |(context, payload)| {
            p.verify_in(Lane::Admission, context, config, payload, &KeyRing::default())
        }),
    }?;
    if fuel > shared.limits.fuel_max / 2 {
        let budget = shared.limits.fuel_max;
        return Err(Rejection::new(format!("a sample burnt {fuel} fuel, over half of {budget}")));
    }
    let digest = policy.digest().to_owned();
    Ok(Admitted { policy, info, config: entries, digest, size: wasm.len(), fuel })
}

/// Runs every sample twice and answers the most fuel one burnt.
fn worst<S, T: PartialEq>(
    samples: Vec<S>,
    call: impl Fn(&S) -> Called<T>,
) -> Result<u64, Rejection> {
    let mut fuel = 0;
    for (index, sample) in samples.iter().enumerate() {
        let (first, second) = (call(sample), call(sample));
        match &first.outcome {
            // That it does not cover a sample is for the policy to say.
            Ok(_) => {}
            Err(failure) if failure.cause == crate::failure::Cause::Error => {}
            Err(failure) => {
                return Err(Rejection::new(format!("sample {} failed: {failure}", index + 1)));
            }
        }
        if first != second {
            return Err(Rejection::new(format!("sample {} ran differently twice", index + 1)));
        }
        fuel = fuel.max(first.fuel);
    }
    Ok(fuel)
}

fn check_size(shared: &Shared, wasm: &[u8]) -> Result<(), Rejection> {
    let max = shared.limits.component_bytes_max;
    match wasm.len() <= max {
        true => Ok(()),
        false => Err(Rejection::new(format!("{} bytes, at most {max} are accepted", wasm.len()))),
    }
}

/// The interface named, if it is of this package and track.
fn interface(name: &str) -> Option<&str> {
    let (interface, version) = name.strip_prefix(PACKAGE)?.split_once('@')?;
    version.starts_with(TRACK).then_some(interface)
}

fn check_imports(
    shared: &Shared,
    kind: PolicyKind,
    component: &Component,
) -> Result<(), Rejection> {
    let granted: &[&str] = match kind {
        PolicyKind::Signature => &["types", "log", "crypto"],
        PolicyKind::Fee | PolicyKind::MethodOrder => &["types", "log"],
    };
    for (name, _) in component.component_type().imports(&shared.wasm) {
        if !interface(name).is_some_and(|i| granted.contains(&i)) {
            return Err(Rejection::new(format!("the import `{name}` is not granted")));
        }
    }
    Ok(())
}

fn check_exports(
    shared: &Shared,
    kind: PolicyKind,
    component: &Component,
) -> Result<(), Rejection> {
    let ty = component.component_type();
    let exports: Vec<&str> = ty.exports(&shared.wasm).filter_map(|(n, _)| interface(n)).collect();
    let kinds: Vec<&str> = PolicyKind::ALL
        .map(PolicyKind::as_str)
        .into_iter()
        .filter(|k| exports.contains(k))
        .collect();
    if kinds != [kind.as_str()] {
        let found = if kinds.is_empty() { "no policy".into() } else { kinds.join(" and ") };
        return Err(Rejection::new(format!(
            "the component exports {found}, not exactly {}",
            kind.as_str()
        )));
    }
    match exports.contains(&"meta") {
        true => Ok(()),
        false => Err(Rejection::new("the component does not export `meta`")),
    }
}

fn check_resources(shared: &Shared, component: &Component) -> Result<(), Rejection> {
    let required = component
        .resources_required()
        .ok_or_else(|| Rejection::new("the component imports modules or components"))?;
    let limits = &shared.limits;
    let memory = usize::try_from(required.max_initial_memory_size.unwrap_or(0));
    let table = usize::try_from(required.max_initial_table_size.unwrap_or(0));
    let fits = required.num_memories <= limits.memories_max
        && required.num_tables <= limits.tables_max
        && memory.is_ok_and(|bytes| bytes <= limits.memory_bytes_max)
        && table.is_ok_and(|elements| elements <= limits.table_elements_max);
    match fits {
        true => Ok(()),
        false => Err(Rejection::new("the component needs more memory or tables than it may have")),
    }
}

fn describe(shared: &Shared, policy: &Policy) -> Result<PolicyInfo, Rejection> {
    about(shared, policy, "describe", |meta, store| meta.call_describe(store).map(Ok))
}

fn validate(shared: &Shared, policy: &Policy, config: &[ConfigEntry]) -> Result<(), Rejection> {
    let result = about(shared, policy, "validate-config", |meta, store| {
        meta.call_validate_config(store, config).map(Ok)
    })?;
    result.map_err(|problems: Vec<ConfigProblem>| {
        let list: Vec<String> =
            problems.iter().map(|p| format!("`{}` {}", p.key, p.problem)).collect();
        Rejection::new(format!("the policy does not accept the configuration: {}", list.join("; ")))
    })
}

/// Calls a function of `meta`.
fn about<T>(
    shared: &Shared,
    policy: &Policy,
    function: &str,
    call: impl FnOnce(&meta::Guest, &mut Store<Call>) -> wasmtime::Result<Result<T, PolicyError>>,
) -> Result<T, Rejection> {
    let (_, instance) = policy.parts();
    let enter = |store: &mut Store<Call>, entered: &Instance| {
        let meta = meta::GuestIndices::new(instance)?.load(&mut *store, entered)?;
        call(&meta, store)
    };
    let host = Call::new(shared.limits, samples::NOW, KeyRing::default());
    let called = run(shared, instance, Lane::Admission, host, enter, |value, _| Ok(value));
    called.outcome.map_err(|f: Failure| Rejection::new(format!("`{function}` failed: {f}")))
}

fn check_info(info: &PolicyInfo, kind: PolicyKind) -> Result<(), Rejection> {
    if info.policies != [kind] {
        return Err(Rejection::new(format!(
            "`describe` does not say that this is one {} policy",
            kind.as_str()
        )));
    }
    let short = |text: &String| text.len() <= INFO_TEXT_BYTES_MAX;
    let config_short = info.config.iter().all(|field| short(&field.key) && short(&field.help));
    let texts_short = [&info.name, &info.version, &info.summary].into_iter().all(short);
    let few = info.config.len() <= INFO_ITEMS_MAX && info.keys.len() <= INFO_ITEMS_MAX;
    match texts_short && config_short && few && info.keys.iter().all(short) {
        true => Ok(()),
        false => Err(Rejection::new("`describe` says more than the host keeps")),
    }
}
