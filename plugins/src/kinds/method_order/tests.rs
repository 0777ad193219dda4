use super::*;

/// A ranking of the probe with methods 0 to 3.
fn ranked(shown: &[&str], hidden: &[&str]) -> Result<Vec<String>, String> {
    let request = probe_requests().swap_remove(1);
    let shown = shown.iter().map(|id| Placement { id: (*id).into(), badge: None }).collect();
    let hidden = hidden.iter().map(|id| (*id).into()).collect();
    let output = method_order::Ranking { shown, hidden, rule: "r".into() };
    let Ranking { shown, indices, .. } = check_ranking(output, &request)?;
    let at_indices: Vec<_> =
        indices.iter().map(|index| request.methods[*index].id.clone()).collect();
    let shown: Vec<_> = shown.into_iter().map(|placement| placement.id).collect();
    assert_eq!(at_indices, shown, "an index is that of the id in the request");
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
fn hiding_everything_is_ignored() {
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
