//! The manifests for Kubernetes and the chart: rendered, held against the API and each other.

use crate::validator;

#[test]
fn the_overlays_and_the_chart_are_valid_and_the_same() {
    let rendered = validator(&["python", "kubernetes/render.py"]);
    for kind in [
        "Deployment",
        "HorizontalPodAutoscaler",
        "Job",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "PrometheusRule",
        "ServiceMonitor",
    ] {
        assert!(rendered.contains(&format!("{kind}/rampart")), "{kind}: {rendered}");
    }
    // Those of `single` and of `ha`: partners, connectors, Prometheus.
    for service in ["rampart", "rampart-connectors", "rampart-metrics"] {
        let found =
            rendered.split_whitespace().filter(|name| *name == format!("Service/{service}"));
        assert_eq!(found.count(), 2, "{service}: {rendered}");
    }
}
