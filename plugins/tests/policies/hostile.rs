//! Misbehaving policies: none may exceed its limits or affect the next call.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rampart_plugins::contract::Level;
use rampart_plugins::{CallClass, CallReport, FailureKind, FeePolicy, FeeSchedule, PolicyLimits};

use crate::{ENGINE, context, engine, fee_policy, generous_limits, purchase, text};

/// Compiled once for all tests that have no limits of their own.
static HOSTILE: LazyLock<FeePolicy> = LazyLock::new(|| fee_policy(&ENGINE, "hostile"));

fn misbehave(policy: &FeePolicy, mode: &str) -> CallReport<FeeSchedule> {
    policy.price(CallClass::Live, &context(), &[text("mode", mode)], &purchase("100"))
}

fn failure_of(mode: &str) -> (FailureKind, String) {
    let report = misbehave(&HOSTILE, mode);
    let failure = report.outcome.expect_err(mode);
    (failure.kind, failure.message)
}

/// Runs of which one must be in time: other processes may slow down most of them.
const RUNS_MAX: usize = 500;

#[test]
#[expect(clippy::disallowed_methods, reason = "the promise is about real time")]
fn a_loop_is_stopped_within_50_ms() {
    let policy = fee_policy(&engine(PolicyLimits::for_threads(1)), "hostile");
    let is_in_time = (0..RUNS_MAX).any(|_| {
        let start = Instant::now();
        let failure = misbehave(&policy, "loop").outcome.expect_err("it never ends");
        assert!(matches!(failure.kind, FailureKind::Fuel | FailureKind::Deadline), "{failure}");
        start.elapsed() < Duration::from_millis(50)
    });
    assert!(is_in_time, "{RUNS_MAX} runs took longer");
}

#[test]
fn fuel_stops_a_loop_after_the_same_number_of_steps() {
    let first = misbehave(&HOSTILE, "loop");
    assert_eq!(first.outcome.as_ref().expect_err("it never ends").kind, FailureKind::Fuel);
    assert!(first.fuel >= ENGINE.limits().fuel_max);
    assert_eq!(first, misbehave(&HOSTILE, "loop"));
}

#[test]
fn the_deadline_stops_a_loop_that_fuel_does_not() {
    let limits = PolicyLimits { fuel_max: u64::MAX / 2, deadline_ms: 3, ..generous_limits() };
    let policy = fee_policy(&engine(limits), "hostile");
    let failure = misbehave(&policy, "loop").outcome.expect_err("it never ends");
    assert_eq!(failure.kind, FailureKind::Deadline);
}

#[test]
fn a_component_that_never_starts_is_stopped() {
    let policy = fee_policy(&ENGINE, "hostile-start");
    let failure = misbehave(&policy, "").outcome.expect_err("it never starts");
    assert_eq!(failure.kind, FailureKind::Fuel);
}

#[test]
fn a_panic_is_a_trap_and_its_location_is_logged() {
    let report = misbehave(&HOSTILE, "panic");
    assert_eq!(report.outcome.expect_err("it panics").kind, FailureKind::Trap);
    assert_eq!(report.log.len(), 1);
    assert_eq!(report.log[0].level, Level::Warn);
    assert!(report.log[0].text.contains("the tariff of DE is missing"), "{}", report.log[0].text);
}

#[test]
fn memory_without_end_is_refused() {
    let report = misbehave(&HOSTILE, "allocate");
    assert_eq!(report.outcome.expect_err("it never stops").kind, FailureKind::Memory);
    let most = ENGINE.limits().memory_bytes_max;
    assert!(
        report.memory_bytes <= most && report.memory_bytes > most / 2,
        "{}",
        report.memory_bytes
    );
}

#[test]
fn recursion_and_wild_reads_are_traps() {
    assert_eq!(failure_of("recurse").0, FailureKind::Trap);
    assert_eq!(failure_of("read-outside").0, FailureKind::Trap);
}

#[test]
fn output_that_breaks_the_contract_is_refused() {
    for (mode, problem) in [
        ("large-answer", "too much data"),
        ("many-lines", "17 fee lines"),
        ("exponent", "decimal"),
        ("code", "fee code"),
        ("bounds", "at-least 2 is above at-most 1"),
    ] {
        let (kind, message) = failure_of(mode);
        assert_eq!(kind, FailureKind::InvalidOutput, "{mode}: {message}");
        assert!(message.contains(problem), "{mode}: {message}");
    }
}

#[test]
fn an_error_of_the_policy_is_reported_in_one_line() {
    assert_eq!(failure_of("error"), (FailureKind::Error, "unsupported: this and that".into()));
}

#[test]
fn excess_log_lines_are_dropped_counted_and_escaped() {
    let report = misbehave(&HOSTILE, "chatter");
    assert!(report.outcome.is_ok());
    assert_eq!((report.log.len(), report.log_dropped), (16, 84));
    assert_eq!(report.log[0].text, "line 0  [2J");
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let before = misbehave(&HOSTILE, "behave");
    assert!(before.outcome.is_ok());
    for mode in ["panic", "recurse", "allocate", "loop", "large-answer"] {
        assert!(misbehave(&HOSTILE, mode).outcome.is_err(), "{mode}");
        assert_eq!(misbehave(&HOSTILE, "behave"), before, "after {mode}");
    }
}

#[test]
fn a_request_too_large_is_not_the_policys_fault() {
    let mut request = purchase("100");
    request.promo_code = Some("x".repeat(ENGINE.limits().request_bytes_max));
    let report = HOSTILE.price(CallClass::Live, &context(), &[], &request);
    assert_eq!(report.outcome.expect_err("it is too large").kind, FailureKind::Capacity);
}

#[test]
fn a_call_without_a_free_slot_fails_at_once() {
    let limits = PolicyLimits { live_calls_max: 0, ..generous_limits() };
    let report = misbehave(&fee_policy(&engine(limits), "hostile"), "behave");
    assert_eq!(report.outcome.expect_err("no slot").kind, FailureKind::Capacity);
    assert_eq!(report.fuel, 0);
}

#[test]
fn as_many_calls_as_there_are_slots_run_side_by_side() {
    let limits = PolicyLimits { live_calls_max: 8, ..generous_limits() };
    let policy = fee_policy(&engine(limits), "hostile");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert!(misbehave(&policy, "behave").outcome.is_ok());
                }
            });
        }
    });
}
