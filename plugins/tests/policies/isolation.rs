//! Isolation of calls: a component stores its input wherever it can, and searches for it in the next
//! call.

use std::thread;

use rampart_plugins::contract::{FeeRequest, Money};
use rampart_plugins::{CallClass, FeePolicy, PolicyLimits};

use crate::forged::{BEHAVED, Forged};
use crate::{context, engine, extent, generous_limits, purchase};

/// Calls in total, each in a slot that others have used, unless `RAMPART_CALLS` says how many.
const CALLS: usize = 20_000;
/// Slots that they share.
const SLOTS: u32 = 2;

/// Searches its memory behind the input, a newly grown page, a table and a global for data of another
/// call; returns the rule `w` if there is none, else `wat/i`. Then it fills all of them with its
/// input.
const SPY: Forged = Forged {
    items: r#"
        (memory (export "memory") 1)
        (table $stored 8 funcref)
        (global $seen (mut i32) (i32.const 0))
        (func $other)
        (elem declare func $other)
        (func $search (param $from i32) (param $to i32)
            (local $sum i64)
            (loop $again
                (local.set $sum (i64.or (local.get $sum) (i64.load (local.get $from))))
                (local.set $from (i32.add (local.get $from) (i32.const 8)))
                (br_if $again (i32.lt_u (local.get $from) (local.get $to))))
            (if (i64.ne (local.get $sum) (i64.const 0))
                (then (i32.store (i32.const 1320) (i32.const 5)))))"#,
    price: "
        (local.set $i (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
        (call $search (local.get $i) (i32.const 65536))
        (local.set $j (i32.mul (memory.grow (i32.const 1)) (i32.const 65536)))
        (call $search (local.get $j) (i32.add (local.get $j) (i32.const 65536)))
        (if (i32.or (global.get $seen) (i32.eqz (ref.is_null (table.get $stored (i32.const 7)))))
            (then (i32.store (i32.const 1320) (i32.const 5))))
        (memory.fill (local.get $i) (i32.load8_u (i32.const 4096))
            (i32.sub (i32.const 131072) (local.get $i)))
        (memory.copy (local.get $i) (i32.const 4096) (i32.const 256))
        (global.set $seen (i32.const 1))
        (table.fill $stored (i32.const 0) (ref.func $other) (i32.const 8))
        (i32.const 1300)",
    ..BEHAVED
};

/// A request with the tenant's secret in every text.
fn secret_request(secret: &str) -> FeeRequest {
    FeeRequest {
        pay: Money { amount: "100".into(), currency: secret.into() },
        user_tier: secret.into(),
        promo_code: Some(secret.repeat(20)),
        ..purchase("100")
    }
}

fn call_in_turn(policies: [&FeePolicy; 2], calls: usize) {
    for call in 0..calls {
        let tenant = call % 2;
        let request = secret_request(["tenant-one-", "second!!"][tenant]);
        let report = policies[tenant].price(CallClass::Live, &context(), &[], &request);
        let schedule = report.outcome.expect("it answers");
        assert_eq!(schedule.rule, "w", "call {call} found data of an earlier one");
    }
}

#[test]
fn no_instance_finds_anything_of_an_earlier_one() {
    let engine = engine(PolicyLimits { live_calls_max: SLOTS, ..generous_limits() });
    let first = SPY.load(&engine);
    // Another component, so that slots change hands between two tenants.
    let items = format!("{} (global i32 (i32.const 1))", SPY.items).leak();
    let second = Forged { items, ..SPY }.load(&engine);
    let calls = extent("RAMPART_CALLS", CALLS) / SLOTS as usize;
    thread::scope(|scope| {
        for _ in 0..SLOTS {
            scope.spawn(|| call_in_turn([&first, &second], calls));
        }
    });
}

#[test]
fn the_search_finds_planted_data() {
    let engine = engine(generous_limits());
    let price = format!("(i64.store (i32.const 65528) (i64.const 1)) {}", SPY.price).leak();
    let in_memory = Forged { price, ..SPY }.load(&engine);
    let price = format!("(global.set $seen (i32.const 1)) {}", SPY.price).leak();
    let in_a_global = Forged { price, ..SPY }.load(&engine);
    for policy in [in_memory, in_a_global] {
        let report = policy.price(CallClass::Live, &context(), &[], &secret_request("tenant-one-"));
        // The rule is then `wat/i`, which is invalid.
        assert!(report.outcome.is_err(), "{report:?}");
    }
}
