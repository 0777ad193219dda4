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
    assert!(check_schedule(flat()).is_ok());
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
        assert!(check_schedule(wrong.clone()).is_err(), "{wrong:?}");
    }
}
