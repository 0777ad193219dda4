//! Metrics that alerts on saturation need.

use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::wire::Wire;

/// Metrics that tell of an edge which is full, slow or behind, each with a series from the start: an alert on
/// one that is not there never fires.
const SATURATION: [&str; 41] = [
    "rampart_connections_open",
    "rampart_connections_max",
    "rampart_connections_idle",
    r#"rampart_connections_refused_total{cause="total"}"#,
    r#"rampart_connections_refused_total{cause="network"}"#,
    r#"rampart_connections_refused_total{cause="address"}"#,
    r#"rampart_connections_refused_total{cause="address_handshakes"}"#,
    r#"rampart_connections_refused_total{cause="proxy_protocol"}"#,
    r#"rampart_connections_refused_total{cause="open_files"}"#,
    "rampart_requests_in_flight",
    r#"rampart_requests_shed_total{limit="total"}"#,
    r#"rampart_requests_shed_total{limit="address"}"#,
    r#"rampart_requests_shed_total{limit="partner"}"#,
    r#"rampart_requests_shed_total{limit="memory"}"#,
    r#"rampart_requests_shed_total{limit="sender_memory"}"#,
    r#"rampart_request_outcomes_total{outcome="failed"}"#,
    r#"rampart_queue_length{queue="orders"}"#,
    r#"rampart_queue_length{queue="passwords"}"#,
    r#"rampart_queue_length{queue="telemetry"}"#,
    r#"rampart_db_pool_wait_seconds_count{pool="requests"}"#,
    r#"rampart_db_pool_wait_seconds_count{pool="logins"}"#,
    r#"rampart_db_pool_wait_seconds_count{pool="workers"}"#,
    r#"rampart_db_pool_wait_seconds_count{pool="operators"}"#,
    r#"rampart_db_pool_wait_seconds_count{pool="connectors"}"#,
    r#"rampart_db_pool_wait_seconds_count{pool="snapshot"}"#,
    r#"rampart_db_statement_duration_seconds_count{pool="requests"}"#,
    r#"rampart_db_connections{pool="requests",state="busy"}"#,
    r#"rampart_log_lines_dropped_total{log="access"}"#,
    r#"rampart_log_lines_dropped_total{log="diagnostic"}"#,
    r#"rampart_backlog{queue="deliveries"}"#,
    r#"rampart_backlog{queue="mail"}"#,
    r#"rampart_backlog_overdue_seconds{queue="deliveries"}"#,
    r#"rampart_backlog_overdue_seconds{queue="mail"}"#,
    "rampart_deliveries_unclaimed_seconds",
    "rampart_partner_series_dropped_total",
    r#"rampart_telemetry_dropped_total{cause="queue_full"}"#,
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_open_fds",
    "process_max_fds",
    "process_start_time_seconds",
];

#[tokio::test]
async fn what_tells_of_saturation_is_there_before_anything_happens() {
    let edge = Edge::start().await;
    // An open connection, so that the gauges of connections are in use.
    let _open = Wire::open(edge.address).await;
    let mut missing = Vec::new();
    let complete = async || {
        let text = edge.ops("/metrics").await.assert_status(200).text().to_owned();
        let shown = |series: &str| text.lines().any(|line| line.starts_with(&format!("{series} ")));
        missing = SATURATION.into_iter().filter(|series| !shown(series)).collect();
        missing.is_empty().then_some(())
    };
    let within = tokio::time::timeout(SOON, until("every series is shown", SOON * 2, complete));
    assert!(within.await.is_ok(), "{missing:?}");
}
