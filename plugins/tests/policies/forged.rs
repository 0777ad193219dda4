//! Hand-written components that no compiler would produce. Each call ends within its limits with the
//! documented failure, and does not affect the next one.

use std::time::{Duration, Instant};

use rampart_plugins::contract::PolicyKind;
use rampart_plugins::{
    CallClass, CallReport, FailureKind, FeePolicy, FeeSchedule, Policy, PolicyEngine, PolicyLimits,
};

use crate::{ENGINE, context, engine, generous_limits, purchase};

/// Longest call: only one that has no end of its own takes as much, however busy the machine.
const BOUND: Duration = Duration::from_secs(60);

/// Addresses of the module's output and of its free memory.
const ANSWER: usize = 1300;
const FREE: usize = 4096;

/// A fee policy by the instructions of its core functions. The default returns a schedule without
/// lines, at `ANSWER`.
#[derive(Clone, Copy)]
pub(crate) struct Forged {
    pub(crate) items: &'static str,
    pub(crate) start: &'static str,
    pub(crate) realloc: &'static str,
    pub(crate) describe: &'static str,
    pub(crate) validate: &'static str,
    pub(crate) price: &'static str,
    pub(crate) post: &'static str,
}

pub(crate) const BEHAVED: Forged = Forged {
    items: "(memory (export \"memory\") 1)",
    start: "",
    realloc: "
        (local.set $i (i32.and
            (i32.add (global.get $next) (i32.sub (local.get 2) (i32.const 1)))
            (i32.sub (i32.const 0) (local.get 2))))
        (global.set $next (i32.add (local.get $i) (local.get 3)))
        (local.get $i)",
    describe: "(i32.const 1024)",
    validate: "(i32.const 1400)",
    price: "(i32.const 1300)",
    post: "",
};

/// Never ends.
const LOOP: &str = "(loop $again (br $again)) (unreachable)";

impl Forged {
    pub(crate) fn component(&self) -> Vec<u8> {
        let Self { items, start, realloc, describe, validate, price, post } = self;
        let locals = "(local $i i32) (local $j i32)";
        // Name, version and summary, kinds (one: fee), no settings, no keys.
        let info = words(&[1200, 6, 1206, 5, 1200, 6, 1100, 1, 1100, 0, 1100, 0]);
        // Ok, with no lines, no spread and the rule `w`.
        let answer = words(&[0, 1100, 0, 0, 1200, 1]);
        let text = format!(
            r#"(module
                (import "rampart:policy/log@0.1.0" "write" (func $log (param i32 i32 i32)))
                {items}
                (global $next (mut i32) (i32.const {FREE}))
                (data (i32.const 1024) "{info}")
                (data (i32.const 1100) "\01")
                (data (i32.const 1200) "wat/it1.0.0")
                (data (i32.const {ANSWER}) "{answer}")
                (func $start {locals} {start})
                (start $start)
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                    {locals} {realloc})
                (func (export "rampart:policy/meta@0.1.0#describe") (result i32)
                    {locals} {describe})
                (func (export "rampart:policy/meta@0.1.0#validate-config") (param i32 i32)
                    (result i32) {locals} {validate})
                (func $price (export "rampart:policy/fee@0.1.0#price") (param i32) (result i32)
                    {locals} {price})
                (func (export "cabi_post_rampart:policy/fee@0.1.0#price") (param i32)
                    {locals} {post})
            )"#
        );
        let module = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}"));
        componentize::component(&module).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn load(&self, engine: &PolicyEngine) -> FeePolicy {
        match engine.load(PolicyKind::Fee, &self.component()) {
            Ok(Policy::Fee(policy)) => policy,
            Ok(_) => panic!("another kind"),
            Err(reason) => panic!("{reason}"),
        }
    }

    fn refusal(&self) -> String {
        match ENGINE.admit(PolicyKind::Fee, self.component(), Vec::new()) {
            Ok(_) => panic!("it was admitted"),
            Err(reason) => reason.to_string(),
        }
    }
}

/// Words of memory, as the text format writes data.
pub(crate) fn words(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.map(|byte| format!("\\{byte:02x}")).collect()
}

#[expect(clippy::disallowed_methods, reason = "the bound is of real time")]
fn bounded(policy: &FeePolicy) -> CallReport<FeeSchedule> {
    let start = Instant::now();
    let report = policy.price(CallClass::Live, &context(), &[], &purchase("100"));
    let took = start.elapsed();
    assert!(took < BOUND, "{took:?}: {report:?}");
    report
}

#[test]
fn a_valid_hand_written_component_is_admitted_and_called() {
    let admitted = ENGINE.admit(PolicyKind::Fee, BEHAVED.component(), Vec::new());
    assert_eq!(admitted.map(|admitted| admitted.info.name).ok().as_deref(), Some("wat/it"));
    let report = bounded(&BEHAVED.load(&ENGINE));
    assert_eq!(report.outcome.map(|schedule| schedule.rule).ok().as_deref(), Some("w"));
}

#[test]
fn a_trap_or_a_loop_in_any_hook_ends_the_call_only() {
    let behaved = bounded(&BEHAVED.load(&ENGINE));
    for (body, cause) in [("(unreachable)", FailureKind::Trap), (LOOP, FailureKind::Fuel)] {
        for (hook, forged) in [
            ("start", Forged { start: body, ..BEHAVED }),
            ("realloc", Forged { realloc: body, ..BEHAVED }),
            ("price", Forged { price: body, ..BEHAVED }),
            ("post-return", Forged { post: body, ..BEHAVED }),
        ] {
            let report = bounded(&forged.load(&ENGINE));
            let failure = report.outcome.expect_err(hook);
            assert_eq!(failure.kind, cause, "{hook}: {failure}");
            assert_eq!(bounded(&BEHAVED.load(&ENGINE)), behaved, "after {hook}");
        }
    }
}

#[test]
fn a_trap_or_a_loop_in_any_hook_is_refused_at_upload() {
    for (body, cause) in [("(unreachable)", "trap"), (LOOP, "fuel")] {
        for (hook, forged) in [
            ("`describe` failed", Forged { start: body, ..BEHAVED }),
            ("`describe` failed", Forged { describe: body, ..BEHAVED }),
            ("`validate-config` failed", Forged { validate: body, ..BEHAVED }),
            ("`validate-config` failed", Forged { realloc: body, ..BEHAVED }),
            ("sample 1 failed", Forged { price: body, ..BEHAVED }),
            ("sample 1 failed", Forged { post: body, ..BEHAVED }),
        ] {
            let reason = forged.refusal();
            assert!(reason.starts_with(&format!("{hook}: {cause}: ")), "{reason}");
        }
    }
}

#[test]
fn a_description_with_a_control_character_is_refused_at_upload() {
    for describe in [
        "(i32.store8 (i32.const 1200) (i32.const 0)) (i32.const 1024)",
        "(i32.store8 (i32.const 1200) (i32.const 27)) (i32.const 1024)",
    ] {
        let reason = Forged { describe, ..BEHAVED }.refusal();
        assert_eq!(reason, "`describe` has a control character in a text", "{describe}");
    }
}

#[test]
fn invalid_pointers_and_values_are_invalid_output() {
    for (lie, price) in [
        ("an answer outside of memory", "(i32.const -16)"),
        ("an answer across the end of memory", "(i32.const 65528)"),
        ("an answer that is not aligned", "(i32.const 1301)"),
        ("neither ok nor err", "(i32.store8 (i32.const 1300) (i32.const 7)) (i32.const 1300)"),
        (
            "lines outside of memory",
            "(i32.store (i32.const 1304) (i32.const -44)) (i32.store (i32.const 1308) (i32.const 1))
             (i32.const 1300)",
        ),
        (
            "more lines than memory",
            "(i32.store (i32.const 1308) (i32.const -1)) (i32.const 1300)",
        ),
        (
            "a text of 100 MiB",
            "(i32.store (i32.const 1320) (i32.const 104857600)) (i32.const 1300)",
        ),
        (
            "a text that is not UTF-8",
            "(i32.store8 (i32.const 1200) (i32.const 255)) (i32.const 1300)",
        ),
        (
            "a text that ends in the middle of a character",
            "(i32.store8 (i32.const 1200) (i32.const 0xc3)) (i32.const 1300)",
        ),
        (
            "an error without a reason",
            "(i32.store8 (i32.const 1300) (i32.const 1)) (i32.store8 (i32.const 1304) (i32.const 9))
             (i32.const 1300)",
        ),
    ] {
        let report = bounded(&Forged { price, ..BEHAVED }.load(&ENGINE));
        let failure = report.outcome.expect_err(lie);
        assert_eq!(failure.kind, FailureKind::InvalidOutput, "{lie}: {failure}");
    }
}

#[test]
fn a_text_of_its_whole_memory_is_too_large() {
    let forged = Forged {
        items: "(memory (export \"memory\") 256 256)",
        price: "(i32.store (i32.const 1320) (i32.const 16000000)) (i32.const 1300)",
        ..BEHAVED
    };
    let failure = bounded(&forged.load(&ENGINE)).outcome.expect_err("it is too much");
    assert_eq!(failure.kind, FailureKind::InvalidOutput, "{failure}");
    assert!(failure.message.contains("too much data"), "{failure}");
}

#[test]
fn an_invalid_allocation_is_refused() {
    for (lie, realloc) in [
        ("outside of memory", "(i32.const -4096)"),
        ("across the end of memory", "(i32.const 65535)"),
        ("not aligned", "(i32.const 4097)"),
    ] {
        let report = bounded(&Forged { realloc, ..BEHAVED }.load(&ENGINE));
        let failure = report.outcome.expect_err(lie);
        assert!(
            matches!(failure.kind, FailureKind::InvalidOutput | FailureKind::Trap),
            "{lie}: {failure}"
        );
    }
}

#[test]
fn unbounded_memory_and_tables_are_refused() {
    let grow = Forged {
        price: "(loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
                (unreachable)",
        ..BEHAVED
    };
    let report = bounded(&grow.load(&ENGINE));
    assert_eq!(report.outcome.expect_err("it never stops").kind, FailureKind::Memory);
    assert_eq!(report.memory_bytes, ENGINE.limits().memory_bytes_max);

    let at_once =
        Forged { price: "(drop (memory.grow (i32.const 65535))) (i32.const 1300)", ..BEHAVED };
    let report = bounded(&at_once.load(&ENGINE));
    assert!(report.outcome.is_ok() && report.memory_bytes == 65_536, "{report:?}");

    let table = Forged {
        items: "(memory (export \"memory\") 1) (table $t 0 funcref)",
        price: "(loop $again
                    (br_if $again (i32.ne
                        (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))
                (if (i32.gt_u (table.size $t) (i32.const 20000)) (then (unreachable)))
                (i32.const 1300)",
        ..BEHAVED
    };
    assert!(bounded(&table.load(&ENGINE)).outcome.is_ok(), "it was given no more than 20,000");
}

#[test]
fn a_module_with_two_memories_is_refused() {
    let two = Forged { items: "(memory (export \"memory\") 1) (memory 1)", ..BEHAVED };
    let reason = two.refusal();
    assert!(reason.contains("memories count of 2 exceeds"), "{reason}");
}

/// Processors differ in the sign of what they make of zero by zero, by which a policy could tell them
/// apart. The zeros are read from memory: no compiler knows them.
#[test]
fn what_is_no_number_has_the_same_bits_on_every_machine() {
    let price = "
        (local.set $i (i32.reinterpret_f32
            (f32.div (f32.load (i32.const 60000)) (f32.load (i32.const 60000)))))
        (if (i32.ne (local.get $i) (i32.const 0x7fc00000)) (then (unreachable)))
        (i32.const 1300)";
    let report = bounded(&Forged { price, ..BEHAVED }.load(&ENGINE));
    assert!(report.outcome.is_ok(), "{report:?}");
}

#[test]
fn unbounded_recursion_is_a_trap() {
    let forged = Forged { price: "(call $price (local.get 0))", ..BEHAVED };
    let failure = bounded(&forged.load(&ENGINE)).outcome.expect_err("it never returns");
    assert_eq!(failure.kind, FailureKind::Trap);
}

#[test]
fn a_flood_of_log_lines_ends_with_the_fuel_or_the_deadline() {
    let engine = engine(PolicyLimits { deadline_ms: 20, ..generous_limits() });
    for (flood, price) in [
        (
            "short lines",
            "(loop $again (call $log (i32.const 0) (i32.const 1200) (i32.const 1)) (br $again))
             (unreachable)",
        ),
        (
            "long lines",
            "(loop $again (call $log (i32.const 2) (i32.const 32768) (i32.const 32000)) (br $again))
             (unreachable)",
        ),
    ] {
        let report = bounded(&Forged { price, ..BEHAVED }.load(&engine));
        let kind = report.outcome.as_ref().expect_err(flood).kind;
        assert!(matches!(kind, FailureKind::Fuel | FailureKind::Deadline), "{flood}: {report:?}");
        assert!(report.log.len() <= 16 && report.log_dropped > 0, "{flood}");
    }
}

#[test]
fn a_host_call_with_invalid_arguments_is_invalid_output() {
    for (lie, call) in [
        ("a text outside of memory", "(call $log (i32.const 0) (i32.const -16) (i32.const 8))"),
        ("a text of 100 MiB", "(call $log (i32.const 0) (i32.const 0) (i32.const 104857600))"),
        ("no such level", "(call $log (i32.const 3) (i32.const 1200) (i32.const 1))"),
        (
            "a text that is not UTF-8",
            "(i32.store8 (i32.const 1200) (i32.const 255))
             (call $log (i32.const 0) (i32.const 1200) (i32.const 1))",
        ),
    ] {
        let price = format!("{call} (i32.const 1300)").leak();
        let report = bounded(&Forged { price, ..BEHAVED }.load(&ENGINE));
        let failure = report.outcome.expect_err(lie);
        assert!(
            matches!(failure.kind, FailureKind::InvalidOutput | FailureKind::Trap),
            "{lie}: {failure}"
        );
        assert!(report.log.is_empty(), "{lie}");
    }
}
