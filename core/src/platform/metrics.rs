//! All metrics, in one table. Labels come from the route table and the known tenants, never from
//! request bytes, so that their cardinality is bounded.

use std::time::Duration;

use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts,
    Registry, TextEncoder,
};

use crate::Core;
use crate::platform::error::Code;

/// Upper bounds of the buckets of request and callback times, in seconds.
const SECONDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Upper bounds of the buckets of policy calls, in seconds.
const POLICY_SECONDS: &[f64] = &[
    0.000_005, 0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005,
    0.01, 0.025,
];
/// Upper bounds of the buckets of policy calls, in fuel.
const FUEL: &[f64] = &[1e3, 2e3, 5e3, 1e4, 5e4, 1e5, 5e5, 1e6, 5e6, 5e7];

/// Declares the struct, its registration and the help texts, one entry per family.
macro_rules! families {
    ($($(#[doc = $help:literal])+ $field:ident: $kind:ident $name:literal [$($label:literal),*] $($buckets:ident)?;)*) => {
        /// The metric families.
        #[derive(Clone, Debug)]
        pub struct Metrics {
            registry: Registry,
            $($(#[doc = $help])+ pub $field: $kind,)*
        }

        /// Name, help and type of every family.
        const FAMILIES: &[(&str, &str, &str)] =
            &[$(($name, concat!($($help),+), type_of!($kind))),*];

        impl Metrics {
            /// A new registry with all families.
            ///
            /// # Errors
            /// Only if two families had the same name.
            pub fn new() -> prometheus::Result<Self> {
                let registry = Registry::new();
                $(
                    let help = concat!($($help),+).trim();
                    let $field = build_metric!($kind $name help [$($label),*] $($buckets)?)?;
                    registry.register(Box::new($field.clone()))?;
                )*
                Ok(Self { registry, $($field,)* })
            }
        }
    };
}

macro_rules! type_of {
    (HistogramVec) => {
        "histogram"
    };
    (IntCounterVec) => {
        "counter"
    };
    (IntGaugeVec) => {
        "gauge"
    };
}

macro_rules! build_metric {
    (HistogramVec $name:literal $help:ident [$($label:literal),*] $buckets:ident) => {
        HistogramVec::new(HistogramOpts::new($name, $help).buckets($buckets.to_vec()), &[$($label),*])
    };
    ($kind:ident $name:literal $help:ident [$($label:literal),*]) => {
        $kind::new(Opts::new($name, $help), &[$($label),*])
    };
}

families! {
    /// Requests answered, by route of the table, client and status.
    requests: IntCounterVec "rampart_requests_total" ["route", "partner", "status"];
    /// Time from the request's head to the end of the answer.
    request_duration: HistogramVec "rampart_request_duration_seconds" ["route"] SECONDS;
    /// Codes in error envelopes.
    errors: IntCounterVec "rampart_errors_total" ["code"];
    /// Requests refused by a rate limit.
    rate_limited: IntCounterVec "rampart_rate_limited_total" ["bucket", "partner"];
    /// Policy calls by outcome: ok, refused, load, breaker, or the cause of a malfunction; clamped
    /// fees count beside their ok.
    policy_calls: IntCounterVec "rampart_policy_calls_total" ["kind", "partner", "outcome"];
    /// Shadow runs of policies by outcome: same, different, failed, skipped.
    policy_shadow: IntCounterVec "rampart_policy_shadow_total" ["kind", "partner", "outcome"];
    /// State of a policy's breaker on this edge: 1 open, 0 closed.
    policy_breaker: IntGaugeVec "rampart_policy_breaker_open" ["kind", "partner"];
    /// Time of a policy call, instance included.
    policy_duration: HistogramVec "rampart_policy_duration_seconds" ["kind"] POLICY_SECONDS;
    /// Fuel of a policy call.
    policy_fuel: HistogramVec "rampart_policy_fuel" ["kind"] FUEL;
    /// Events of orders.
    orders: IntCounterVec "rampart_orders_total" ["event"];
    /// Attempts to deliver a callback, by outcome.
    callback_attempts: IntCounterVec "rampart_callback_attempts_total" ["outcome"];
    /// Time from the event to its first attempt.
    callback_lag: HistogramVec "rampart_callback_lag_seconds" [] SECONDS;
    /// Failed logins of operators, by cause: missing, wrong, limited.
    operator_login_failures: IntCounterVec "rampart_operator_login_failures_total" ["cause"];
    /// Calls with the break-glass token of the configuration: each is an alarm.
    operator_break_glass: IntCounterVec "rampart_operator_break_glass_total" [];
    /// Connections of all pools, by state.
    db_pool: IntGaugeVec "rampart_db_pool" ["state"];
    /// Requests answered with 503 because too many are in flight, by limit: total, address, partner.
    requests_shed: IntCounterVec "rampart_requests_shed_total" ["limit"];
    /// Connections closed at once by cause: total, address, address_handshakes,
    /// proxy_protocol.
    connections_refused: IntCounterVec "rampart_connections_refused_total" ["cause"];
    /// Connections by pool (requests, logins, workers, operators) and state.
    db_connections: IntGaugeVec "rampart_db_connections" ["pool", "state"];
    /// Runs of background workers by outcome: ok, failed.
    worker_runs: IntCounterVec "rampart_worker_runs_total" ["worker", "outcome"];
    /// TLS handshakes by version and outcome.
    tls_handshakes: IntCounterVec "rampart_tls_handshakes_total" ["version", "outcome"];
    /// Age of the price in use.
    price_age: IntGaugeVec "rampart_price_age_seconds" ["pair"];
    /// Always 1; the labels say what is running.
    build_info: IntGaugeVec "rampart_build_info" ["version"];
}

impl Metrics {
    /// Renders all families in the Prometheus text format, those without samples as `HELP` and `TYPE`.
    pub fn render(&self) -> String {
        let mut text = Vec::new();
        let families = self.registry.gather();
        if let Err(error) = TextEncoder::new().encode(&families, &mut text) {
            tracing::error!(%error, "metrics cannot be written");
        }
        let mut text = String::from_utf8(text).unwrap_or_default();
        let has_samples = |name: &str| families.iter().any(|family| family.name() == name);
        for (name, help, kind) in FAMILIES.iter().filter(|(name, ..)| !has_samples(name)) {
            text += &format!("# HELP {name} {}\n# TYPE {name} {kind}\n", help.trim());
        }
        text
    }

    /// The meters of one policy.
    pub fn policy_meters(&self, kind: &str, partner: &str) -> PolicyMeters {
        PolicyMeters {
            duration: self.policy_duration.with_label_values(&[kind]),
            fuel: self.policy_fuel.with_label_values(&[kind]),
            ok: self.policy_calls.with_label_values(&[kind, partner, "ok"]),
        }
    }

    /// Counts one answered request. `partner` is a known tenant's slug or empty.
    pub fn request(&self, route: &str, partner: &str, status: u16, took: Duration, codes: &[Code]) {
        self.requests.with_label_values(&[route, partner, status_text(status)]).inc();
        self.request_duration.with_label_values(&[route]).observe(took.as_secs_f64());
        for code in codes {
            self.errors.with_label_values(&[code.as_str()]).inc();
        }
    }

    /// Counts one attempt to deliver a callback; `lag` is set for a first attempt.
    pub fn callback(&self, outcome: &'static str, lag: Option<Duration>) {
        self.callback_attempts.with_label_values(&[outcome]).inc();
        if let Some(lag) = lag {
            self.callback_lag.with_label_values::<&str>(&[]).observe(lag.as_secs_f64());
        }
    }
}

/// Metrics of one policy with their labels resolved, so that a call does not look them up.
#[derive(Debug)]
pub struct PolicyMeters {
    duration: Histogram,
    fuel: Histogram,
    /// Calls with a valid result.
    pub ok: IntCounter,
}

impl PolicyMeters {
    /// Records the time and fuel of one call.
    pub fn cost(&self, took: Duration, fuel: u64) {
        self.duration.observe(took.as_secs_f64());
        self.fuel.observe(fuel as f64);
    }
}

impl Core {
    /// The text of `/metrics`: all families, with the pool's current state.
    pub fn metrics_text(&self) -> String {
        let (mut idle, mut busy) = (0, 0);
        for (lane, lane_idle, lane_busy) in self.db.connections() {
            let connections = &self.metrics.db_connections;
            connections.with_label_values(&[lane.as_str(), "idle"]).set(lane_idle.into());
            connections.with_label_values(&[lane.as_str(), "busy"]).set(lane_busy.into());
            (idle, busy) = (idle + lane_idle, busy + lane_busy);
        }
        for (state, connections) in [("idle", idle), ("busy", busy)] {
            self.metrics.db_pool.with_label_values(&[state]).set(connections.into());
        }
        self.update_breaker_gauges();
        self.metrics.render()
    }
}

/// The status as a label, without an allocation.
fn status_text(status: u16) -> &'static str {
    match status {
        200 => "200",
        201 => "201",
        204 => "204",
        304 => "304",
        400 => "400",
        401 => "401",
        404 => "404",
        405 => "405",
        408 => "408",
        409 => "409",
        413 => "413",
        414 => "414",
        422 => "422",
        429 => "429",
        431 => "431",
        500 => "500",
        503 => "503",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_rendered_with_its_labels() {
        let metrics = Metrics::new().unwrap();
        metrics.request(
            "/api/v1/prices",
            "acme",
            400,
            Duration::from_millis(1),
            &[Code::ClientTokenInvalid],
        );
        let text = metrics.render();
        assert!(text.contains(
            r#"rampart_requests_total{partner="acme",route="/api/v1/prices",status="400"} 1"#
        ));
        assert!(text.contains(r#"rampart_errors_total{code="ER800"} 1"#));
    }

    #[test]
    fn a_family_without_a_sample_is_rendered_once() {
        let metrics = Metrics::new().unwrap();
        metrics.db_pool.with_label_values(&["idle"]).set(2);
        let text = metrics.render();
        for (name, ..) in FAMILIES {
            let head = format!("# TYPE {name} ");
            assert_eq!(text.matches(&head).count(), 1, "{name}");
        }
    }
}
