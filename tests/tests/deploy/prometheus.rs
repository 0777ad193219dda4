//! The rules for Prometheus: read by promtool, over metrics that exist, each alert tested.

use std::collections::BTreeSet;
use std::{fs, thread};

use rampart_core::platform::metrics::Metrics;
use rampart_tests::edge::Folder;

use crate::{read, root, validator};

const RULES: &str = "prometheus/rules.yaml";
const RULES_TEST: &str = "prometheus/rules_test.yaml";
/// Processes that run the tests of the rules: promtool uses one processor for half a minute.
const PROCESSES: usize = 2;

/// Suffixes of the series that a histogram consists of.
const OF_HISTOGRAMS: [&str; 3] = ["_bucket", "_sum", "_count"];

/// The alerts that the rules declare.
pub(crate) fn alerts() -> BTreeSet<String> {
    after(&read(RULES), "- alert: ")
}

/// The rest of every line that begins with `mark` behind its indent.
fn after(text: &str, mark: &str) -> BTreeSet<String> {
    let rest = text.lines().filter_map(|line| line.trim_start().strip_prefix(mark));
    rest.map(|rest| rest.trim().to_owned()).collect()
}

/// The metrics of Rampart's that a text names and no edge has.
pub(crate) fn unknown_metrics(text: &str) -> BTreeSet<String> {
    let shown = Metrics::new(1).unwrap().render();
    let types = shown.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let types: BTreeSet<_> = types.filter_map(|line| line.split_once(' ')).collect();
    let is_known = |name: &str| {
        let plain = types.iter().any(|&(known, kind)| known == name && kind != "histogram");
        let series = OF_HISTOGRAMS.iter().filter_map(|suffix| name.strip_suffix(suffix));
        plain || { series }.any(|family| types.contains(&(family, "histogram")))
    };
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    let named = words.filter(|word| word.starts_with("rampart_") || word.starts_with("process_"));
    named.filter(|name| !is_known(name)).map(str::to_owned).collect()
}

/// Has promtool run the tests of the rules, each process its share of them.
fn run_tests(tests: &str) {
    let folder = Folder::make();
    let (head, tests) = tests.split_once("\ntests:\n").unwrap();
    let rules = root().join("deploy").join(RULES);
    let head = head.replace("[rules.yaml]", &format!("[{}]", rules.display()));
    let tests: Vec<_> = tests.split("  - name: ").skip(1).collect();
    thread::scope(|scope| {
        for process in 0..PROCESSES {
            let share = tests.iter().skip(process).step_by(PROCESSES);
            let share: String = share.map(|test| format!("  - name: {test}")).collect();
            let path = folder.path().join(format!("{process}.yaml"));
            fs::write(&path, format!("{head}\ntests:\n{share}")).unwrap();
            scope.spawn(move || validator(&["promtool", "test", "rules", path.to_str().unwrap()]));
        }
    });
}

#[test]
fn every_alert_fires_and_ends() {
    validator(&["promtool", "check", "rules", RULES]);
    let tests = read(RULES_TEST);
    run_tests(&tests);
    let tested = after(&tests, "alertname: ");
    assert_eq!(tested, alerts(), "every alert has a test");
    for alert in alerts() {
        let test = tests.split("\n  - name: ").find(|test| test.starts_with(&format!("{alert}\n")));
        let test = test.unwrap_or_else(|| panic!("{alert} has no test of its own"));
        assert!(test.contains("exp_labels: {") && test.contains("exp_alerts: []"), "{alert}");
        assert!(test.contains(&format!("runbook: deploy/runbooks/{alert}.md")), "{alert}");
    }
}

#[test]
fn the_rules_are_over_metrics_that_exist() {
    assert_eq!(unknown_metrics(&read(RULES)), BTreeSet::new());
    let unknown =
        unknown_metrics("rate(rampart_requests_total[5m]) / rampart_request_duration_seconds");
    assert_eq!(unknown, BTreeSet::from(["rampart_request_duration_seconds".to_owned()]));
}
