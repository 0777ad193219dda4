//! A signature policy, hand-written in WebAssembly text, that makes too many host calls.

use rampart_plugins::contract::{PolicyKind, Purpose, Rejection, SignedPayload, Verdict};
use rampart_plugins::{CallClass, CallReport, FailureKind, KeyRing, Policy};

use crate::forged::words;
use crate::{ENGINE, context};

/// Runs `calls`, then rejects the payload as badly signed.
fn verdict(calls: &str) -> CallReport<Verdict> {
    let info = words(&[1200, 6, 1206, 5, 1200, 6, 1100, 1, 1100, 0, 1100, 0]);
    let answer = words(&[0, 1, 3, 0, 0, 0, 0, 0, 0, 0]);
    let text = format!(
        r#"(module
            (import "rampart:policy/crypto@0.1.0" "verify"
                (func $verify (param i32 i32 i32 i32 i32 i32 i32 i32)))
            (import "rampart:policy/crypto@0.1.0" "digest"
                (func $digest (param i32 i32 i32 i32)))
            (memory (export "memory") 256 256)
            (global $next (mut i32) (i32.const 65536))
            (data (i32.const 1024) "{info}")
            (data (i32.const 1100) "\00")
            (data (i32.const 1200) "wat/it1.0.0")
            (data (i32.const 1300) "{answer}")
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                (global.set $next (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
                (global.get $next)
                (global.set $next (i32.add (global.get $next) (local.get 3))))
            (func (export "rampart:policy/meta@0.1.0#describe") (result i32) (i32.const 1024))
            (func (export "rampart:policy/meta@0.1.0#validate-config") (param i32 i32) (result i32)
                (i32.const 1400))
            (func (export "rampart:policy/signature@0.1.0#verify") (param i32) (result i32)
                {calls} (i32.const 1300)))"#
    );
    let module = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}"));
    let component = componentize::component(&module).unwrap_or_else(|error| panic!("{error}"));
    let policy = match ENGINE.load(PolicyKind::Signature, &component) {
        Ok(Policy::Signature(policy)) => policy,
        Ok(_) => panic!("another kind"),
        Err(reason) => panic!("{reason}"),
    };
    let payload = SignedPayload {
        purpose: Purpose::Offer,
        fields: Vec::new(),
        claimed: None,
        method: "POST".into(),
        path: "/api/v2/buy/offer".into(),
        query: String::new(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    policy.verify(CallClass::Live, &context(), &[], &payload, &KeyRing::default())
}

const VERIFY: &str = "(call $verify (i32.const 1200) (i32.const 6) (i32.const 0) (i32.const 1200)
    (i32.const 6) (i32.const 1200) (i32.const 6) (i32.const 2048))";
const DIGEST: &str = "(call $digest (i32.const 0) (i32.const 1200) (i32.const 6) (i32.const 2048))";

#[test]
fn host_calls_up_to_the_limit_succeed() {
    let most = ENGINE.limits().crypto_calls_max as usize;
    for ask in [VERIFY, DIGEST] {
        let report = verdict(&ask.repeat(most));
        assert_eq!(report.outcome, Ok(Verdict::Rejected(Rejection::BadSignature)));
        let failure = verdict(&ask.repeat(most + 1)).outcome.expect_err("one more");
        assert_eq!(failure.kind, FailureKind::Fuel, "{failure}");
    }
}

#[test]
fn a_flood_of_host_calls_is_stopped_by_its_limit() {
    for ask in [VERIFY, DIGEST] {
        let report = verdict(&format!("(loop $again {ask} (br $again))"));
        assert_eq!(report.outcome.expect_err("it never ends").kind, FailureKind::Fuel);
        assert!(report.fuel < 100_000, "{}", report.fuel);
    }
}

#[test]
fn arguments_of_a_host_call_are_bounded() {
    for (lie, ask) in [
        (
            "15 MiB to digest",
            "(call $digest (i32.const 0) (i32.const 0) (i32.const 15728640) (i32.const 2048))",
        ),
        (
            "100 MiB to digest",
            "(call $digest (i32.const 0) (i32.const 0) (i32.const 104857600) (i32.const 2048))",
        ),
        (
            "no such algorithm",
            "(call $digest (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 2048))",
        ),
        (
            "an answer outside of memory",
            "(call $digest (i32.const 0) (i32.const 0) (i32.const 1) (i32.const -8))",
        ),
    ] {
        let failure = verdict(ask).outcome.expect_err(lie);
        assert!(
            matches!(failure.kind, FailureKind::InvalidOutput | FailureKind::Trap),
            "{lie}: {failure}"
        );
    }
}
