use proptest::prelude::*;

use super::*;
use crate::bindings::signature::Rejection;
use crate::samples;

#[test]
fn a_decimal_is_plain_text_of_at_most_28_digits() {
    for text in ["0", "-0", "0.00", "-12.5", "100", "7922816251426433759354395033.5"] {
        assert_eq!(decimal(text), Ok(text.parse().expect("rust_decimal reads it")), "{text}");
    }
    for text in [
        "",
        "-",
        "+1",
        "01",
        "00",
        ".5",
        "5.",
        "1e3",
        "1 ",
        " 1",
        "1,5",
        "0x1",
        "NaN",
        "1_000",
        "--1",
        "1.2.3",
        "١",
        "99999999999999999999999999999999",
        "0.00000000000000000000000000001",
    ] {
        assert!(decimal(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_decimal_keeps_its_value_to_the_last_digit(mantissa in any::<i64>(), scale in 0_u32..=18) {
        let value = Decimal::new(mantissa, scale);
        prop_assert_eq!(decimal(&value.to_string()), Ok(value));
    }

    #[test]
    fn whatever_is_read_matches_the_grammar(text in "[-+0-9.e]{0,45}") {
        if decimal(&text).is_ok() {
            let unsigned = text.strip_prefix('-').unwrap_or(&text);
            prop_assert!(text.len() <= DECIMAL_CHARS_MAX);
            prop_assert!(unsigned.starts_with(|c: char| c.is_ascii_digit()));
            prop_assert!(unsigned.ends_with(|c: char| c.is_ascii_digit()));
            prop_assert!(unsigned == "0" || unsigned.starts_with("0.") || !unsigned.starts_with('0'));
        }
    }
}

fn schedule(charge: fee::Charge) -> fee::FeeSchedule {
    let line = fee::FeeLine { kind: FeeKind::Partner, code: "a-1".into(), charge };
    fee::FeeSchedule { lines: vec![line], spread: -2_500, rule: String::new() }
}

#[test]
fn a_schedule_within_the_contract_is_taken_over() {
    let bounded = fee::BoundedRate {
        rate: 10_000,
        at_least: Some("0.50".into()),
        at_most: Some("0.50".into()),
    };
    let answer = fee_schedule(schedule(fee::Charge::Bounded(bounded))).expect("it is valid");
    let half = Some(Decimal::new(50, 2));
    assert_eq!(answer.lines[0].charge, Charge::Rate { ppm: 10_000, at_least: half, at_most: half });
    assert_eq!(answer.spread_ppm, -2_500);
}

#[test]
fn a_schedule_beyond_the_contract_is_refused() {
    let flat = || schedule(fee::Charge::Flat("1".into()));
    let bounded = |at_least: &str, at_most: &str| {
        schedule(fee::Charge::Bounded(fee::BoundedRate {
            rate: 0,
            at_least: Some(at_least.into()),
            at_most: Some(at_most.into()),
        }))
    };
    let with = |change: fn(&mut fee::FeeSchedule)| {
        let mut schedule = flat();
        change(&mut schedule);
        schedule
    };
    assert!(fee_schedule(flat()).is_ok());
    for wrong in [
        bounded("2", "1"),
        bounded("0.1", "-0.1"),
        bounded("1e1", "2"),
        schedule(fee::Charge::Flat("one".into())),
        schedule(fee::Charge::Rate(1_000_001)),
        schedule(fee::Charge::Rate(i32::MIN)),
        with(|s| s.spread = 1_000_001),
        with(|s| s.rule = "Rule".into()),
        with(|s| s.rule = "r".repeat(65)),
        with(|s| s.lines[0].code = String::new()),
        with(|s| s.lines[0].code = "c".repeat(33)),
        with(|s| s.lines[0].code = "c_d".into()),
        with(|s| s.lines = vec![s.lines[0].clone(); 17]),
    ] {
        assert!(fee_schedule(wrong.clone()).is_err(), "{wrong:?}");
    }
}

/// A ranking of the sample with methods 0 to 3.
fn ranked(shown: &[&str], hidden: &[&str]) -> Result<Vec<String>, String> {
    let (_, request) = samples::orders().swap_remove(1);
    let shown = shown.iter().map(|id| Placement { id: (*id).into(), badge: None }).collect();
    let hidden = hidden.iter().map(|id| (*id).into()).collect();
    let answer = method_order::Ranking { shown, hidden, rule: "r".into() };
    let Ranking { shown, places, .. } = ranking(answer, &request)?;
    let at_places: Vec<_> = places.iter().map(|place| request.methods[*place].id.clone()).collect();
    let shown: Vec<_> = shown.into_iter().map(|placement| placement.id).collect();
    assert_eq!(at_places, shown, "places say where the ids stand in the request");
    Ok(shown)
}

#[test]
fn methods_the_policy_did_not_name_follow_in_the_hosts_order() {
    let order = ranked(&["method3", "method1"], &[]).expect("it is valid");
    assert_eq!(order, ["method3", "method1", "method0", "method2"]);
    let order = ranked(&["method2"], &["method0"]).expect("it is valid");
    assert_eq!(order, ["method2", "method1", "method3"]);
}

#[test]
fn hiding_everything_is_not_obeyed() {
    let order = ranked(&[], &["method3", "method2", "method1", "method0"]).expect("it is valid");
    assert_eq!(order, ["method0", "method1", "method2", "method3"]);
}

#[test]
fn an_id_not_given_or_given_twice_breaks_the_contract() {
    for (shown, hidden) in [
        (&["method9"][..], &[][..]),
        (&["method1", "method1"], &[]),
        (&["method1"], &["method1"]),
        (&[], &["method1", "method1"]),
        (&[], &[""]),
    ] {
        assert!(ranked(shown, hidden).is_err(), "{shown:?} {hidden:?}");
    }
}

#[test]
fn authentic_is_believed_only_of_a_key_the_host_verified() {
    let signer = |key: &str, algorithm, token: Option<&str>| {
        Verdict::Authentic(Signer {
            key: key.into(),
            algorithm,
            signed_at: None,
            replay_token: token.map(Into::into),
        })
    };
    let verified = [("a".to_owned(), Algorithm::Ed25519)];
    assert!(verdict(signer("a", Algorithm::Ed25519, None), &verified).is_ok());
    assert!(verdict(signer("a", Algorithm::Ed25519, Some("n")), &verified).is_ok());
    assert!(verdict(signer("a", Algorithm::Ed25519, Some("")), &verified).is_err());
    assert!(verdict(signer("a", Algorithm::Ed25519, Some(&"n".repeat(256))), &verified).is_err());
    assert!(verdict(signer("a", Algorithm::HmacSha256, None), &verified).is_err());
    assert!(verdict(signer("b", Algorithm::Ed25519, None), &verified).is_err());
    assert!(verdict(signer("a", Algorithm::Ed25519, None), &[]).is_err());
    assert!(verdict(Verdict::Rejected(Rejection::Stale), &[]).is_ok());
}
