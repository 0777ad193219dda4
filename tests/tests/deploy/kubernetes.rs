//! The manifests for Kubernetes and the chart: rendered, held against the API and each other.

use crate::validator;

#[test]
fn the_overlays_and_the_chart_are_valid_and_the_same() {
    let rendered = validator(&["python", "kubernetes/render.py"]);
    for kind in [
        "CronJob",
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
    // Connectors have their way, which wants a certificate, and the cache of policies its volume,
    // where somebody has asked for it.
    for (overlay, component) in [
        ("single", ""),
        ("ha", ""),
        ("single+connectors", "connectors"),
        ("ha+connectors", "connectors"),
        ("single+policy-cache", "policy-cache"),
        ("ha+policy-cache", "policy-cache"),
    ] {
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
            assert_eq!(is_there, component == "connectors", "{overlay}, {object}: {rendered}");
        }
        let keeps_cache = objects.contains(&"PersistentVolumeClaim/rampart-policy-cache");
        assert_eq!(keeps_cache, component == "policy-cache", "{overlay}: {rendered}");
    }
}
