//! A component that keeps what it sees in every place it has, and looks there in its next life.

use std::thread;

use rampart_plugins::contract::{FeeRequest, Money};
use rampart_plugins::{FeePolicy, PolicyLimits};

use crate::forged::{BEHAVED, Forged};
use crate::{context, engine, patient, purchase};

/// Calls in all: each takes a slot that others have used.
const LIVES: usize = 100_000;
/// Slots that they share.
const SLOTS: u32 = 2;

/// Searches all of its memory behind what it was told, the page that it grows by, a table and a
/// global for anything that is not as new; answers the rule `w` when there is nothing and `wat/i`
/// when there is. Then it fills all of them with what this call told it.
const SPY: Forged = Forged {
    items: r#"
        (memory (export "memory") 1)
        (table $kept 8 funcref)
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
        (if (i32.or (global.get $seen) (i32.eqz (ref.is_null (table.get $kept (i32.const 7)))))
            (then (i32.store (i32.const 1320) (i32.const 5))))
        (memory.fill (local.get $i) (i32.load8_u (i32.const 4096))
            (i32.sub (i32.const 131072) (local.get $i)))
        (memory.copy (local.get $i) (i32.const 4096) (i32.const 256))
        (global.set $seen (i32.const 1))
        (table.fill $kept (i32.const 0) (ref.func $other) (i32.const 8))
        (i32.const 1300)",
    ..BEHAVED
};

/// A call whose every text is one of this tenant's secrets.
fn told(secret: &str) -> FeeRequest {
    FeeRequest {
        pay: Money { amount: "100".into(), currency: secret.into() },
        user_tier: secret.into(),
        promo_code: Some(secret.repeat(20)),
        ..purchase("100")
    }
}

fn live(policies: [&FeePolicy; 2], lives: usize) {
    for life in 0..lives {
        let tenant = life % 2;
        let request = told(["tenant-one-", "second!!"][tenant]);
        let called = policies[tenant].price(&context(), &[], &request);
        let schedule = called.outcome.expect("it answers");
        assert_eq!(schedule.rule, "w", "life {life} found something of an earlier one");
    }
}

#[test]
fn no_instance_finds_anything_of_an_earlier_one() {
    let engine = engine(PolicyLimits { live_calls_max: SLOTS, ..patient() });
    let first = SPY.load(&engine);
    // Another component, so that slots pass from the memory of one to that of the other.
    let items = format!("{} (global i32 (i32.const 1))", SPY.items).leak();
    let second = Forged { items, ..SPY }.load(&engine);
    thread::scope(|scope| {
        for _ in 0..SLOTS {
            scope.spawn(|| live([&first, &second], LIVES / SLOTS as usize));
        }
    });
}

#[test]
fn the_search_finds_what_is_there() {
    let engine = engine(patient());
    let kept = format!("(i64.store (i32.const 65528) (i64.const 1)) {}", SPY.price).leak();
    let in_memory = Forged { price: kept, ..SPY }.load(&engine);
    let kept = format!("(global.set $seen (i32.const 1)) {}", SPY.price).leak();
    let in_a_global = Forged { price: kept, ..SPY }.load(&engine);
    for policy in [in_memory, in_a_global] {
        let called = policy.price(&context(), &[], &told("tenant-one-"));
        // The rule is `wat/i` then, which is no rule.
        assert!(called.outcome.is_err(), "{called:?}");
    }
}
