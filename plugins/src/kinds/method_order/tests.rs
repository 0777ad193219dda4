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

#[test]
fn a_rule_is_any_text_of_which_one_line_is_kept() {
    let request = probe_requests().swap_remove(1);
    let rule = |rule: &str| {
        let (shown, hidden) = (Vec::new(), Vec::new());
        let answer = method_order::Ranking { shown, hidden, rule: rule.into() };
        check_ranking(answer, &request).expect("a rule breaks no contract").rule
    };
    assert_eq!(rule("Reverse\norder_1"), "Reverse order_1");
    assert_eq!(rule(&"r".repeat(65)), "r".repeat(64));
}

#[test]
fn a_label_that_the_host_does_not_know_is_dropped() {
    let request = probe_requests().swap_remove(1);
    let shown = |badge: &str| {
        let shown = vec![Placement { id: "method0".into(), badge: Some(badge.into()) }];
        let answer = method_order::Ranking { shown, hidden: Vec::new(), rule: String::new() };
        let ranking = check_ranking(answer, &request).expect("a label breaks no contract");
        ranking.shown[0].badge.clone()
    };
    assert_eq!(shown("last-used").as_deref(), Some("last-used"));
    assert_eq!((shown("sponsored"), shown("")), (None, None));
}

#[test]
fn fuzz_rankings() {
    rampart_fuzz::fuzz("policy-answers", |input| {
        let text = String::from_utf8_lossy(input);
        let mut request = probe_requests().swap_remove(1);
        for (method, id) in request.methods.iter_mut().zip(["creditCard", "ideal", "walletpay", ""])
        {
            id.clone_into(&mut method.id);
        }
        let named = |word: &str| {
            text.lines().filter_map(|line| line.strip_prefix(word)).collect::<Vec<_>>()
        };
        let (shown, hidden) = (named("show "), named("hide "));
        let rule = named("rule: ").first().copied().unwrap_or_default().to_owned();
        let answer = method_order::Ranking {
            shown: shown.iter().map(|id| Placement { id: (*id).into(), badge: None }).collect(),
            hidden: hidden.iter().map(|id| (*id).into()).collect(),
            rule,
        };
        let Ok(ranking) = check_ranking(answer, &request) else { return };
        // Every method once: first those that it shows, in its order, and none that it hides.
        let ids: Vec<&str> = ranking.shown.iter().map(|placement| placement.id.as_str()).collect();
        let hides_all = hidden.len() == request.methods.len();
        assert!(ids.starts_with(&shown) && !ids.is_empty());
        assert_eq!(ids.len() + if hides_all { 0 } else { hidden.len() }, request.methods.len());
        assert!(hides_all || hidden.iter().all(|id| !ids.contains(id)));
        for (id, index) in ids.iter().zip(&ranking.indices) {
            assert_eq!(request.methods[*index].id, *id);
        }
    });
}
