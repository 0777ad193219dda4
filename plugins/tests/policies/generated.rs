//! Generated modules: valid WebAssembly with random behaviour, exported as a policy.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;

use arbitrary::Unstructured;
use rampart_plugins::contract::PolicyKind;
use rampart_plugins::{CallClass, FailureKind, Policy, PolicyEngine, PolicyLimits};
use wasm_smith::{Config, Module};

use crate::forged::BEHAVED;
use crate::{context, engine, extent, generous_limits, purchase};

/// Modules generated and uploaded, unless `RAMPART_MODULES` says how many.
const MODULES: usize = 250;
/// One of so many is also called, as if another edge had admitted it.
const CALLED_EVERY: usize = 4;
/// Input of the generator for one module, in bytes.
const SEED_BYTES: usize = 2_048;
const THREADS: usize = 2;

/// Exports of a fee policy; the generator writes their bodies.
const EXPORTS: &str = r#"(module
    (memory (export "memory") 1)
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
    (func (export "rampart:policy/meta@0.1.0#describe") (result i32) unreachable)
    (func (export "rampart:policy/meta@0.1.0#validate-config") (param i32 i32) (result i32)
        unreachable)
    (func (export "rampart:policy/fee@0.1.0#price") (param i32) (result i32) unreachable)
)"#;

/// Pseudo-random bytes, the same in every run (SplitMix64).
fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(count).collect()
}

fn generated(seed: u64, exports: &[u8]) -> Option<Vec<u8>> {
    let seed_bytes = bytes(seed, SEED_BYTES);
    let config = Config {
        exports: Some(exports.to_vec()),
        max_imports: 0,
        max_memories: 0, // beside the one that is exported
        max_tables: 1,
        max_memory32_bytes: 1 << 20,
        max_table_elements: 1_000,
        max_instructions: 60,
        max_funcs: 8,
        memory64_enabled: false,
        relaxed_simd_enabled: false,
        threads_enabled: false,
        exceptions_enabled: false,
        gc_enabled: false,
        multi_value_enabled: true,
        shared_everything_threads_enabled: false,
        custom_page_sizes_enabled: false,
        wide_arithmetic_enabled: false,
        custom_descriptors_enabled: false,
        tail_call_enabled: false,
        reference_types_enabled: false,
        ..Config::default()
    };
    let module = Module::new(config, &mut Unstructured::new(&seed_bytes)).ok()?;
    componentize::component(&module.to_bytes()).ok()
}

/// Result of a call of a module loaded without admission: its failure, or the reason of refusal.
fn call_unadmitted(engine: &PolicyEngine, component: &[u8]) -> String {
    match engine.load(PolicyKind::Fee, component) {
        Ok(Policy::Fee(policy)) => {
            let report = policy.price(CallClass::Live, &context(), &[], &purchase("100"));
            report.outcome.map_or_else(|f| f.kind.as_str().to_owned(), |_| "answered".to_owned())
        }
        Ok(_) => panic!("another kind"),
        Err(reason) => reason.to_string().split(" (at").next().unwrap_or_default().to_owned(),
    }
}

#[test]
fn generated_modules_and_parts_of_them_break_nothing_at_upload() {
    let limits =
        PolicyLimits { deadline_ms: 20, admission_fuel_max: 5_000_000, ..generous_limits() };
    let engine = engine(limits);
    let modules = extent("RAMPART_MODULES", MODULES);
    let exports = wat::parse_str(EXPORTS).expect("the text is a module");
    let outcomes = Mutex::new(BTreeMap::<String, usize>::new());
    let share = |first: usize| {
        for seed in (first..modules).step_by(THREADS) {
            let component = generated(seed as u64, &exports).expect("the seed is long enough");
            let part = component[..component.len() * (seed % 100) / 100].to_vec();
            let part = engine.admit(PolicyKind::Fee, part, Vec::new());
            assert!(part.is_err(), "a part of {seed} was admitted");
            if (seed / THREADS).is_multiple_of(CALLED_EVERY) {
                let outcome = call_unadmitted(&engine, &component);
                let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                *outcomes.entry(outcome).or_default() += 1;
            }
            // Either decision is fine here, as long as there is one.
            drop(engine.admit(PolicyKind::Fee, component, Vec::new()));
        }
    };
    thread::scope(|scope| {
        for first in 0..THREADS {
            let share = &share;
            scope.spawn(move || share(first));
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Guards against refusing all unread: most of those called must have run.
    let ran: usize = outcomes
        .iter()
        .filter(|(o, _)| FailureKind::ALL.iter().any(|c| c.as_str() == *o))
        .map(|(_, n)| n)
        .sum();
    assert!(ran > modules / CALLED_EVERY / 2, "{outcomes:#?}");
    let admitted = engine.admit(PolicyKind::Fee, BEHAVED.component(), Vec::new());
    assert!(admitted.is_ok(), "the engine still works");
}
