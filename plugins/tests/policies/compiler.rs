//! Compilation in a child process, which may hang, die or lie.

use rampart_plugins::{CompilerProgram, Rejection};

use super::*;

fn shell(script: &str) -> CompilerProgram {
    CompilerProgram { program: "/bin/sh".into(), arguments: vec!["-c".into(), script.into()] }
}

fn compiling(script: &str) -> PolicyEngine {
    let limits = PolicyLimits { admission_ms_max: 500, admissions_max: 1, ..generous_limits() };
    PolicyEngine::with_native_code(limits, None, Some(shell(script))).expect("an engine starts")
}

fn refusal(engine: &PolicyEngine) -> Rejection {
    match engine.load(PolicyKind::Fee, &guest("tiered-fee")) {
        Ok(_) => panic!("it was compiled"),
        Err(rejection) => rejection,
    }
}

fn reason(engine: &PolicyEngine) -> String {
    refusal(engine).to_string()
}

#[test]
fn a_compiler_past_its_time_is_killed_and_frees_its_slot() {
    let engine = compiling("exec sleep 600");
    // Outside of an admission it has six times as long.
    assert_eq!(reason(&engine), "not compiled within 3000 ms");
    for _ in 0..2 {
        let refused = engine.admit(PolicyKind::Fee, guest("tiered-fee"), Vec::new()).err();
        let refused = refused.expect("it is refused").to_string();
        // The one slot may be held for the moment in which the child ends.
        assert!(refused.contains("within 2000 ms") || refused.contains("try again"), "{refused}");
    }
}

#[test]
fn an_examination_past_its_wall_clock_is_not_the_components_fault() {
    let engine = compiling("exec sleep 600");
    let refused = engine.admit(PolicyKind::Fee, guest("tiered-fee"), Vec::new()).err();
    let refused = refused.expect("it is refused");
    assert!(refused.to_string().contains("within 2000 ms"), "{refused}");
    assert!(refused.is_transient(), "its processor time is bounded separately");
}

#[test]
fn a_compiler_that_dies_or_fails_gives_the_reason() {
    assert!(reason(&compiling("kill -9 $$")).starts_with("its compiler was ended"));
    assert!(reason(&compiling("kill -XCPU $$")).starts_with("compiling it takes more than"));
    assert_eq!(reason(&compiling("echo 'rampart: too odd' >&2; exit 2")), "too odd");
    assert!(reason(&compiling("echo no code")).starts_with("not a component this host can run"));
}

#[test]
fn only_a_refusal_of_the_component_is_final() {
    for (script, is_transient) in [
        ("kill -9 $$", true),
        ("exit 3", true),
        ("echo 'rampart: no thread to compile on: EAGAIN' >&2; exit 1", true),
        ("kill -XCPU $$", false),
        ("kill -ABRT $$", false),
        ("echo 'rampart: not a component this host can run: odd' >&2; exit 1", false),
        ("echo no code", false),
    ] {
        assert_eq!(refusal(&compiling(script)).is_transient(), is_transient, "{script}");
    }
    let nowhere = CompilerProgram { program: "/nonexistent".into(), arguments: Vec::new() };
    let engine = PolicyEngine::with_native_code(generous_limits(), None, Some(nowhere));
    assert!(refusal(&engine.expect("an engine starts")).is_transient());
}

#[test]
fn an_upload_whose_compiler_is_killed_is_not_at_fault() {
    for (script, is_transient) in [("kill -9 $$", true), ("kill -XCPU $$", false)] {
        let engine = PolicyEngine::with_native_code(generous_limits(), None, Some(shell(script)));
        let engine = engine.expect("an engine starts");
        let refused = engine.admit(PolicyKind::Fee, guest("tiered-fee"), Vec::new()).err();
        assert_eq!(refused.expect("it is refused").is_transient(), is_transient, "{script}");
    }
}

#[test]
fn a_compiler_has_no_environment_of_the_edge() {
    assert_eq!(reason(&compiling("echo \"${HOME-none}\" >&2; exit 1")), "none");
}
