//! Modules that a generator made: valid WebAssembly that does anything, exported as a policy.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use arbitrary::Unstructured;
use rampart_plugins::contract::PolicyKind;
use rampart_plugins::{Policy, PolicyEngine, PolicyLimits};
use wasm_smith::{Config, Module};

use crate::forged::BEHAVED;
use crate::{context, engine, patient, purchase};

/// Modules made and uploaded.
const MODULES: u64 = 2_000;
/// Bytes that the generator makes one of.
const SEED_BYTES: usize = 2_048;
const THREADS: u64 = 2;

/// What a fee policy exports; the generator fills it with whatever it likes.
const EXPORTS: &str = r#"(module
    (memory (export "memory") 1)
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
    (func (export "rampart:policy/meta@0.1.0#describe") (result i32) unreachable)
    (func (export "rampart:policy/meta@0.1.0#validate-config") (param i32 i32) (result i32)
        unreachable)
    (func (export "rampart:policy/fee@0.1.0#price") (param i32) (result i32) unreachable)
)"#;

/// Bytes that look random and are the same in every run (SplitMix64).
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
        max_memories: 1,
        max_memory32_bytes: 1 << 20,
        max_table_elements: 1_000,
        max_instructions: 60,
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
        compact_imports_enabled: false,
        acquire_release_atomics_enabled: false,
        tail_call_enabled: false,
        ..Config::default()
    };
    let module = Module::new(config, &mut Unstructured::new(&seed_bytes)).ok()?;
    componentize::component(&module.to_bytes()).ok()
}

/// What became of an upload: refused, or admitted and then called.
fn upload(engine: &PolicyEngine, component: Vec<u8>) -> bool {
    match engine.admit(PolicyKind::Fee, component, Vec::new()) {
        Ok(admitted) => {
            let Policy::Fee(policy) = admitted.policy else { panic!("another kind") };
            drop(policy.price(&context(), &[], &purchase("100")));
            true
        }
        Err(_) => false,
    }
}

#[test]
fn generated_modules_and_parts_of_them_break_nothing_at_upload() {
    let engine = engine(PolicyLimits { deadline_ticks: 20, ..patient() });
    let exports = wat::parse_str(EXPORTS).expect("the text is a module");
    let (made, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let share = |first: u64| {
        for seed in (first..MODULES).step_by(THREADS as usize) {
            let Some(component) = generated(seed, &exports) else { continue };
            made.fetch_add(1, Ordering::Relaxed);
            let cut = component.len() * (seed as usize % 100) / 100;
            assert!(!upload(&engine, component[..cut].to_vec()), "a part of {seed} was admitted");
            // Loading is what an edge does with what another one admitted.
            if let Ok(Policy::Fee(policy)) = engine.load(PolicyKind::Fee, &component) {
                ran.fetch_add(1, Ordering::Relaxed);
                drop(policy.price(&context(), &[], &purchase("100")));
            }
            upload(&engine, component);
        }
    };
    thread::scope(|scope| {
        for first in 0..THREADS {
            scope.spawn(move || share(first));
        }
    });
    let (made, ran) = (made.into_inner(), ran.into_inner());
    // The generator may run out of seed, and a start function may not fit; most must get through.
    assert!(made > 1_900 && ran > 1_000, "{made} made, {ran} compiled and called");
    let admitted = engine.admit(PolicyKind::Fee, BEHAVED.component(), Vec::new());
    assert!(admitted.is_ok(), "the engine still works");
}
