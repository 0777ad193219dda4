//! Admission of components.

use rampart_plugins::contract::{ConfigEntry, ConfigValue, PolicyKind};
use rampart_plugins::{Check, Policy, PolicyLimits};

use crate::{ENGINE, admitted, engine, generous_limits, guest, text};

fn reason(kind: PolicyKind, wasm: Vec<u8>, config: Vec<ConfigEntry>) -> String {
    match ENGINE.admit(kind, wasm, config) {
        Ok(_) => panic!("it was admitted"),
        Err(reason) => reason.to_string(),
    }
}

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the text is a component")
}

#[test]
fn every_shipped_guest_is_admitted_as_its_kind() {
    for (kind, name) in [
        (PolicyKind::Fee, "tiered-fee"),
        (PolicyKind::Fee, "volume-fee"),
        (PolicyKind::MethodOrder, "country-order"),
        (PolicyKind::Signature, "ed25519-offer"),
    ] {
        let bytes = guest(name);
        let admitted = admitted(kind, name, Vec::new());
        assert_eq!(admitted.info.name, format!("rampart/{name}"));
        assert_eq!(admitted.policy.kind(), kind);
        assert_eq!(admitted.size, bytes.len());
        assert_eq!(admitted.digest, admitted.policy.digest());
        assert_eq!(admitted.digest.len(), 64);
        assert!(admitted.fuel > 0 && admitted.fuel < 200_000, "{name} burns {}", admitted.fuel);

        let loaded = ENGINE.load(kind, &bytes).map(|policy: Policy| policy.digest().to_owned());
        assert_eq!(loaded, Ok(admitted.digest));
    }
}

#[test]
fn a_policy_of_another_kind_is_refused() {
    let reason = reason(PolicyKind::Signature, guest("tiered-fee"), Vec::new());
    assert_eq!(reason, "the component exports fee, not exactly signature");
}

#[test]
fn bytes_that_are_not_a_component_are_refused() {
    for bytes in [Vec::new(), b"<html>".to_vec(), component("(module)")] {
        let reason = reason(PolicyKind::Fee, bytes, Vec::new());
        assert!(reason.starts_with("not a component this host can run"), "{reason}");
    }
    let reason = reason(PolicyKind::Fee, component("(component)"), Vec::new());
    assert_eq!(reason, "the component exports no policy, not exactly fee");
}

#[test]
fn a_cut_or_altered_component_is_refused_and_breaks_nothing() {
    let whole = guest("tiered-fee");
    for length in (0..whole.len()).step_by(whole.len() / 7) {
        reason(PolicyKind::Fee, whole[..length].to_vec(), Vec::new());
    }
}

#[test]
fn imports_beyond_the_contract_are_refused_by_name() {
    for name in [
        "wasi:clocks/wall-clock@0.2.0",
        "rampart:policy/log@0.2.0",
        "rampart:policy/secrets@0.1.0",
        "rampart:policy-two/log@0.1.0",
    ] {
        let wasm = component(&format!("(component (import \"{name}\" (instance)))"));
        let reason = reason(PolicyKind::Fee, wasm, Vec::new());
        assert_eq!(reason, format!("the import `{name}` is not granted"));
    }
}

#[test]
fn only_a_signature_policy_may_import_crypto() {
    let wasm = component("(component (import \"rampart:policy/crypto@0.1.0\" (instance)))");
    let as_fee = reason(PolicyKind::Fee, wasm.clone(), Vec::new());
    assert_eq!(as_fee, "the import `rampart:policy/crypto@0.1.0` is not granted");
    let as_signature = reason(PolicyKind::Signature, wasm, Vec::new());
    assert_eq!(as_signature, "the component exports no policy, not exactly signature");
}

#[test]
fn a_name_without_the_contracts_types_is_refused() {
    let wasm = component(
        "(component
            (component $empty)
            (instance $fee (instantiate $empty))
            (export \"rampart:policy/fee@0.1.0\" (instance $fee))
            (export \"rampart:policy/meta@0.1.0\" (instance $fee)))",
    );
    let reason = reason(PolicyKind::Fee, wasm, Vec::new());
    assert!(reason.starts_with("breaks the contract"), "{reason}");
}

#[test]
fn exports_beyond_the_contract_are_refused_by_name() {
    for name in ["wasi:cli/run@0.2.0", "rampart:policy/log@0.1.0", "extra", "init"] {
        let wasm = component(&format!(
            "(component
                (component $empty)
                (instance $fee (instantiate $empty))
                (export \"rampart:policy/fee@0.1.0\" (instance $fee))
                (export \"rampart:policy/meta@0.1.0\" (instance $fee))
                (export \"{name}\" (instance $fee)))"
        ));
        let reason = reason(PolicyKind::Fee, wasm, Vec::new());
        assert_eq!(reason, format!("the export `{name}` is not of the contract"));
    }
}

#[test]
fn more_memory_than_a_policy_may_have_is_refused() {
    let wasm =
        component("(component (core module $m (memory 300)) (core instance (instantiate $m)))");
    let reason = reason(PolicyKind::Fee, wasm, Vec::new());
    assert!(reason.contains("memory"), "{reason}");
}

/// A policy could tell two machines apart by them, or learn from another call.
#[test]
fn shared_memory_large_memory_and_relaxed_instructions_are_refused() {
    for module in [
        "(memory 1 1 shared)",
        "(memory i64 1)",
        "(func (result v128) (i8x16.relaxed_swizzle
            (v128.const i32x4 0 0 0 0) (v128.const i32x4 0 0 0 0)))",
    ] {
        let wasm = component(&format!("(component (core module {module}))"));
        let reason = reason(PolicyKind::Fee, wasm, Vec::new());
        assert!(reason.starts_with("not a component this host can run"), "{module}: {reason}");
    }
}

#[test]
fn a_component_over_the_size_limit_is_refused_unread() {
    let bytes = vec![0; ENGINE.limits().component_bytes_max + 1];
    assert_eq!(
        reason(PolicyKind::Fee, bytes, Vec::new()),
        "2097153 bytes, at most 2097152 are accepted"
    );
}

#[test]
fn a_configuration_the_policy_does_not_declare_or_accept_is_refused() {
    for (config, expected) in [
        (text("zz", "1"), "the policy has no configuration `zz`"),
        (
            ConfigEntry { key: "mode".into(), value: ConfigValue::Flag(true) },
            "configuration `mode` is not of the type the policy declares",
        ),
        (
            text("mode", "refuse"),
            "the policy does not accept the configuration: `mode` cannot be `refuse`",
        ),
    ] {
        assert_eq!(reason(PolicyKind::Fee, guest("hostile"), vec![config]), expected);
    }
}

#[test]
fn a_configuration_that_leaves_no_room_for_a_request_is_refused() {
    let whole = "x".repeat(generous_limits().request_bytes_max);
    let refused = ENGINE.admit(PolicyKind::Fee, guest("hostile"), vec![text("mode", &whole)]).err();
    let refused = refused.expect("it is refused");
    assert!(refused.to_string().ends_with("leave room for a request"), "{refused}");
    assert_eq!(refused.check(), Some(Check::Configuration));
    assert!(!refused.is_transient(), "it has no room at any time");
}

#[test]
fn a_policy_that_fails_a_probe_is_refused() {
    for (mode, expected) in [
        ("loop", "sample 1 failed: fuel: "),
        ("panic", "sample 1 failed: trap: "),
        ("exponent", "sample 1 failed: answer: "),
        ("slow", "fuel, over half of 5000000"),
    ] {
        let reason = reason(PolicyKind::Fee, guest("hostile"), vec![text("mode", mode)]);
        assert!(reason.contains(expected), "{mode}: {reason}");
    }
    let reason = reason(PolicyKind::Fee, guest("hostile-start"), Vec::new());
    assert!(reason.starts_with("`describe` failed: fuel: "), "{reason}");
}

#[test]
fn the_most_payment_methods_may_burn_more_than_half_of_the_fuel() {
    let fuel = admitted(PolicyKind::MethodOrder, "country-order", Vec::new()).fuel;
    let exact = engine(PolicyLimits { fuel_max: fuel + fuel / 2, ..generous_limits() });
    let admitted = exact.admit(PolicyKind::MethodOrder, guest("country-order"), Vec::new());
    let admitted = admitted.map(|admitted| admitted.fuel).map_err(|reason| reason.to_string());
    assert_eq!(admitted, Ok(fuel));
}

#[test]
fn an_error_for_a_probe_is_not_a_failure() {
    admitted(PolicyKind::Fee, "hostile", vec![text("mode", "error")]);
}

#[test]
fn an_admission_over_its_time_limit_is_refused() {
    let impatient = engine(PolicyLimits { admission_ms_max: 0, ..generous_limits() });
    let refused = impatient.admit(PolicyKind::Fee, guest("tiered-fee"), Vec::new()).err();
    let refused = refused.expect("it is refused");
    assert_eq!(refused.to_string(), "not compiled and tried within 0 ms");
    assert!(!refused.is_transient(), "nothing else bounds what this process compiles");
}

#[test]
fn an_admission_without_a_free_slot_is_refused() {
    let busy = engine(PolicyLimits { admissions_max: 0, ..generous_limits() });
    let refused = busy.admit(PolicyKind::Fee, guest("tiered-fee"), Vec::new()).err();
    let refused = refused.expect("it is refused");
    assert!(refused.is_transient());
    assert_eq!(refused.to_string(), "other uploads are being examined, try again");
}
