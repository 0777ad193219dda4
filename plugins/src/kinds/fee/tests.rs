use super::*;

fn schedule(charge: fee::Charge) -> fee::FeeSchedule {
    let line = fee::FeeLine { kind: FeeKind::Partner, code: "a-1".into(), charge };
    fee::FeeSchedule { lines: vec![line], spread: -2_500, rule: String::new() }
}

#[test]
fn a_schedule_within_the_contract_is_accepted() {
    let bounded = fee::BoundedRate {
        rate: 10_000,
        at_least: Some("0.50".into()),
        at_most: Some("0.50".into()),
    };
    let checked = check_schedule(schedule(fee::Charge::Bounded(bounded))).expect("it is valid");
    let half = Some(Decimal::new(50, 2));
    assert_eq!(
        checked.lines[0].charge,
        Charge::Rate { ppm: 10_000, at_least: half, at_most: half }
    );
    assert_eq!(checked.spread_ppm, -2_500);
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
    // The operator's bounds clamp a rate, whatever it is.
    for sound in [flat(), schedule(fee::Charge::Rate(i32::MIN)), with(|s| s.spread = i32::MAX)] {
        assert!(check_schedule(sound.clone()).is_ok(), "{sound:?}");
    }
    for wrong in [
        bounded("2", "1"),
        bounded("0.1", "-0.1"),
        bounded("1e1", "2"),
        schedule(fee::Charge::Flat("one".into())),
        with(|s| s.rule = "Rule".into()),
        with(|s| s.rule = "r".repeat(65)),
        with(|s| s.lines[0].code = String::new()),
        with(|s| s.lines[0].code = "c".repeat(33)),
        with(|s| s.lines[0].code = "c_d".into()),
        with(|s| s.lines = vec![s.lines[0].clone(); 17]),
    ] {
        assert!(check_schedule(wrong.clone()).is_err(), "{wrong:?}");
    }
}

/// The schedule that a text describes, as a policy could answer it: a line each.
fn described(text: &str) -> fee::FeeSchedule {
    let mut schedule = fee::FeeSchedule { lines: Vec::new(), spread: 0, rule: String::new() };
    for line in text.lines() {
        let mut words = line.split(' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        let rate = |text: String| text.parse().unwrap_or(i32::MAX);
        let bound = |text: String| (text != "-").then_some(text);
        match word().as_str() {
            "rule:" => schedule.rule = word(),
            "spread:" => schedule.spread = rate(word()),
            kind => {
                let kind =
                    if kind == "partner" { FeeKind::Partner } else { FeeKind::PaymentMethod };
                let code = word();
                let charge = match word().as_str() {
                    "flat" => fee::Charge::Flat(word()),
                    "rate" => fee::Charge::Rate(rate(word())),
                    _ => fee::Charge::Bounded(fee::BoundedRate {
                        rate: rate(word()),
                        at_least: bound(word()),
                        at_most: bound(word()),
                    }),
                };
                schedule.lines.push(fee::FeeLine { kind, code, charge });
            }
        }
    }
    schedule
}

#[test]
fn fuzz_fee_answers() {
    rampart_fuzz::fuzz("policy-answers", |input| {
        let asked = described(&String::from_utf8_lossy(input));
        let Ok(checked) = check_schedule(asked.clone()) else { return };
        assert!(checked.lines.len() <= LINES_MAX && checked.lines.len() == asked.lines.len());
        assert_eq!((checked.spread_ppm, &checked.rule), (asked.spread, &asked.rule));
        assert!(checked.rule.len() <= 64);
        for (line, asked) in checked.lines.iter().zip(asked.lines) {
            assert!((1..=CODE_CHARS_MAX).contains(&line.code.len()));
            match (line.charge, asked.charge) {
                // Digit for digit, but for decimals that do not fit.
                (Charge::Flat(amount), fee::Charge::Flat(text)) => {
                    let (held, asked) = (amount.abs().to_string(), text.trim_start_matches('-'));
                    assert!(held == asked || held.len() >= 28 && asked.starts_with(&held));
                }
                (Charge::Rate { at_least, at_most, .. }, _) => {
                    let crossed = at_least.zip(at_most).is_some_and(|(least, most)| least > most);
                    assert!(!crossed);
                }
                other => panic!("another charge: {other:?}"),
            }
        }
    });
}
