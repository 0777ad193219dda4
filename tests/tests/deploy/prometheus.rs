//! The rules for Prometheus: read by promtool, over metrics that exist, each alert tested.

use std::collections::BTreeSet;

use rampart_core::platform::metrics::Metrics;

use crate::{read, validator};

const RULES: &str = "prometheus/rules.yaml";
const RULES_TEST: &str = "prometheus/rules_test.yaml";

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

#[test]
fn every_alert_fires_and_ends() {
    validator(&["promtool", "check", "rules", RULES]);
    validator(&["promtool", "test", "rules", RULES_TEST]);
    let tested = after(&read(RULES_TEST), "alertname: ");
    assert_eq!(tested, alerts(), "every alert has a test");
    let tests = read(RULES_TEST);
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
