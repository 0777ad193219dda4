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
    // Connectors have their way, which wants a certificate, where somebody has asked for it.
    for overlay in ["single", "ha", "single+connectors", "ha+connectors"] {
        let objects = rendered.lines().find_map(|line| line.strip_prefix(&format!("{overlay} ")));
        let objects: Vec<_> = objects.unwrap().split(' ').collect();
        for object in ["Service/rampart", "Service/rampart-metrics", "Secret/rampart-tls"] {
            assert!(objects.contains(&object), "{overlay}, {object}: {rendered}");
        }
        let of_connectors = [
            "Service/rampart-connectors",
            "NetworkPolicy/rampart-connectors",
            "Secret/rampart-connectors-tls",
        ];
        for object in of_connectors {
            let is_there = objects.contains(&object);
            assert_eq!(is_there, overlay.contains('+'), "{overlay}, {object}: {rendered}");
        }
    }
}
