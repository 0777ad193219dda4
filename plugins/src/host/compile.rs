//! Compilation of a component, with the checks that make the result safe to call.

use std::sync::Arc;
use std::time::Duration;

use rampart_native_code::NativeCode;
use ring::digest;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use crate::host::rejection::{Check, Rejection};
use crate::host::report::is_of_machine;
use crate::host::runtime::Runtime;
use crate::kinds::compiled::Linked;
use crate::kinds::{Policy, PolicyKind};

/// The package of every import and export of a policy, and the track of it that this host supports.
const PACKAGE: &str = "rampart:policy/";
const TRACK: &str = "0.1.";

/// The interface that every kind exports beside its own.
const META: &str = "meta";
/// The function that componentize-qjs leaves beside the contract's: it has run before the component was
/// written, and the host never calls it.
const PREINITIALIZER: &str = "init";

/// Memory of a loaded component beside its native code, in bytes, as measured.
const LOADED_BYTES: usize = 128 << 10;

/// Compiles and links a component. `time` is the longest wait for a compiler in a process of its own.
pub(crate) fn load(
    runtime: &Arc<Runtime>,
    kind: PolicyKind,
    wasm: &[u8],
    time: Duration,
) -> Result<Policy, Rejection> {
    check_size(runtime, wasm)?;
    let digest: Arc<str> = hex::encode(digest::digest(&digest::SHA256, wasm)).into();
    let uncompiled = |rejection: Rejection| rejection.at(Check::Compilation);
    let code = native_code(runtime, &digest, wasm, time).map_err(uncompiled)?;
    let component = code.load(&runtime.engine).map_err(cannot_run).map_err(uncompiled)?;
    check_imports(runtime, kind, &component)?;
    check_exports(runtime, kind, &component)?;
    check_resources(runtime, &component)?;
    let mismatch =
        |e: wasmtime::Error| Rejection::by(Check::Contract, format!("breaks the contract: {e:#}"));
    let instance = kind
        .linker(&runtime.engine)
        .and_then(|linker| linker.instantiate_pre(&component))
        .map_err(mismatch)?;
    let memory_bytes = code.as_bytes().len().saturating_add(LOADED_BYTES);
    let linked = Linked { runtime: Arc::clone(runtime), instance, digest, memory_bytes };
    Policy::new(kind, linked).map_err(mismatch)
}

/// The native code of a component: cached, or compiled now.
fn native_code(
    runtime: &Runtime,
    digest: &str,
    wasm: &[u8],
    time: Duration,
) -> Result<NativeCode, Rejection> {
    let cached = runtime.native_code.as_ref();
    if let Some(code) = cached.and_then(|folder| folder.get(&runtime.engine, digest)) {
        return Ok(code);
    }
    let code = match &runtime.compiler {
        Some(program) => program.compile(&runtime.limits, wasm, time)?,
        None => NativeCode::compile(&runtime.engine, wasm).map_err(cannot_run)?,
    };
    if let Some(folder) = cached {
        folder.put(&runtime.engine, digest, &code);
    }
    Ok(code)
}

fn cannot_run(error: wasmtime::Error) -> Rejection {
    match is_of_machine(&error) {
        true => Rejection::transient(format!("the host cannot load it now: {error:#}")),
        false => Rejection::new(format!("not a component this host can run: {error:#}")),
    }
}

pub(crate) fn check_size(runtime: &Runtime, wasm: &[u8]) -> Result<(), Rejection> {
    let max = runtime.limits.component_bytes_max;
    match wasm.len() <= max {
        true => Ok(()),
        false => {
            let reason = format!("{} bytes, at most {max} are accepted", wasm.len());
            Err(Rejection::by(Check::Size, reason))
        }
    }
}

/// The interface of that name, if it is of this package and track.
fn interface(name: &str) -> Option<&str> {
    let (interface, version) = name.strip_prefix(PACKAGE)?.split_once('@')?;
    version.starts_with(TRACK).then_some(interface)
}

fn check_imports(
    runtime: &Runtime,
    kind: PolicyKind,
    component: &Component,
) -> Result<(), Rejection> {
    let granted = kind.granted_imports();
    for (name, _) in component.component_type().imports(&runtime.engine) {
        if !interface(name).is_some_and(|i| granted.contains(&i)) {
            let reason = format!("the import `{name}` is not granted");
            return Err(Rejection::by(Check::Imports, reason));
        }
    }
    Ok(())
}

fn check_exports(
    runtime: &Runtime,
    kind: PolicyKind,
    component: &Component,
) -> Result<(), Rejection> {
    let refused = |reason: String| Err(Rejection::by(Check::Exports, reason));
    let ty = component.component_type();
    let exports: Vec<&str> =
        ty.exports(&runtime.engine).filter_map(|(n, _)| interface(n)).collect();
    let kinds: Vec<&str> = PolicyKind::ALL
        .map(PolicyKind::as_str)
        .into_iter()
        .filter(|k| exports.contains(k))
        .collect();
    if kinds != [kind.as_str()] {
        let found = if kinds.is_empty() { "no policy".into() } else { kinds.join(" and ") };
        return refused(format!("the component exports {found}, not exactly {}", kind.as_str()));
    }
    if !exports.contains(&META) {
        return refused("the component does not export `meta`".to_owned());
    }
    for (name, export) in ty.exports(&runtime.engine) {
        let is_of_world = interface(name).is_some_and(|i| i == META || i == kind.as_str());
        let is_function = matches!(export.ty, ComponentItem::ComponentFunc(_));
        if !(is_of_world || is_function && name == PREINITIALIZER) {
            return refused(format!("the export `{name}` is not of the contract"));
        }
    }
    Ok(())
}

fn check_resources(runtime: &Runtime, component: &Component) -> Result<(), Rejection> {
    let refused = |reason: &str| Rejection::by(Check::Resources, reason);
    let required = component
        .resources_required()
        .ok_or_else(|| refused("the component imports modules or components"))?;
    let limits = &runtime.limits;
    let memory = usize::try_from(required.max_initial_memory_size.unwrap_or(0));
    let table = usize::try_from(required.max_initial_table_size.unwrap_or(0));
    let fits = required.num_memories <= limits.memories_max
        && required.num_tables <= limits.tables_max
        && memory.is_ok_and(|bytes| bytes <= limits.memory_bytes_max)
        && table.is_ok_and(|elements| elements <= limits.table_elements_max);
    match fits {
        true => Ok(()),
        false => Err(refused("the component needs more memory or tables than it may have")),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_system_without_memory_is_not_the_components_fault() {
        let short = wasmtime::Error::from(Errno::NOMEM).context("map its code");
        assert!(cannot_run(short).is_transient());
        assert!(!cannot_run(wasmtime::Error::msg("odd")).is_transient());
    }
}
