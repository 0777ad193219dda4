//! All metrics, in one table. Labels come from the route table and the known tenants, never from
//! request bytes, so that their cardinality is bounded.

mod connections;
mod database;
mod measured;
mod overdue;
mod partner_series;
mod policies;
mod process;
pub mod requests;
mod zeros;

use std::fmt::Display;
use std::time::Duration;

use prometheus::{
    Encoder, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry,
    TextEncoder,
};
use uuid::Uuid;

pub use self::connections::{ConnectionMeter, RequestInFlight};
pub use self::database::PoolMeters;
use self::measured::Measured;
pub use self::measured::Measurement;
use self::partner_series::{Families, PartnerSeries};
pub use self::policies::PolicyMeters;
use crate::Core;
use crate::platform::error::{Error, Result};

/// Upper bounds of the buckets of request times, in seconds.
const REQUEST_SECONDS: &[f64] = &[
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0, 30.0,
];
/// Upper bounds of the buckets of callback lags, in seconds.
const LAG_SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 300.0, 1800.0,
];
/// Upper bounds of the buckets of policy calls, in seconds.
const POLICY_SECONDS: &[f64] = &[
    0.000_005, 0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005,
    0.01, 0.025,
];
/// Upper bounds of the buckets of policy calls, in fuel.
const FUEL: &[f64] = &[1e3, 2e3, 5e3, 1e4, 5e4, 1e5, 5e5, 1e6, 5e6, 5e7];

/// Declares the struct, its registration and the help texts, one entry per family.
macro_rules! families {
    (of partners: $($of_partners:ident),*; $($(#[doc = $help:literal])+ $field:ident: $kind:ident $name:literal [$($label:literal),*] $($buckets:ident)?;)*) => {
        /// The metric families.
        #[derive(Clone, Debug)]
        pub struct Metrics {
            registry: Registry,
            partners: PartnerSeries,
            measured: Measured,
            $($(#[doc = $help])+ pub $field: $kind,)*
        }

        /// Name, help and type of every family.
        const FAMILIES: &[(&str, &str, &str)] =
            &[$(($name, concat!($($help),+), type_of!($kind))),*];

        impl Metrics {
            /// A new registry with all families, and series of at most this many partners.
            ///
            /// # Errors
            /// Only if two families had the same name.
            pub fn new(partners_max: u32) -> prometheus::Result<Self> {
                let registry = Registry::new();
                $(
                    let help = concat!($($help),+).trim();
                    let $field = build_metric!($kind $name help [$($label),*] $($buckets)?)?;
                    registry.register(Box::new($field.clone()))?;
                )*
                let families = Families { $($of_partners: $of_partners.clone(),)* };
                let partners = PartnerSeries::new(families, partners_max.into());
                let measured = Measured::default();
                let metrics = Self { registry, partners, measured, $($field,)* };
                metrics.begin_at_zero();
                Ok(metrics)
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
    (GaugeVec) => {
        "gauge"
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
    of partners: requests, rate_limited, policy_calls, policy_shadow, replay_tokens_undated,
        partner_series_dropped;
    /// Requests answered, by route of the table, client and status: aborted when nobody waited.
    requests: IntCounterVec "rampart_requests_total" ["route", "partner", "status"];
    /// Requests that are over, by outcome: answered, failed with a 5xx, refused with a 5xx that their
    /// sender caused (its share is used up, or it asked the sandbox for it), aborted by the client.
    request_outcomes: IntCounterVec "rampart_request_outcomes_total" ["outcome"];
    /// Time in seconds that the edge took for an answer, without that in which its client sent the
    /// body or took the answer, by class of partner (test, live, none) and of status.
    request_duration: HistogramVec "rampart_request_duration_seconds"
        ["route", "partner_class", "status_class"] REQUEST_SECONDS;
    /// Requests of the public listener that are under way.
    requests_in_flight: IntGaugeVec "rampart_requests_in_flight" [];
    /// Connections of the public listener that are open, TLS handshake done.
    connections_open: IntGaugeVec "rampart_connections_open" [];
    /// Most connections that the public listener may have (edge.connections_max).
    connections_max: IntGaugeVec "rampart_connections_max" [];
    /// Connections of the public listener without a request under way.
    connections_idle: IntGaugeVec "rampart_connections_idle" [];
    /// Items that wait in a queue of this edge.
    queue_length: IntGaugeVec "rampart_queue_length" ["queue"];
    /// Deliveries and mails that wait in the database, all edges together, counted to 100000.
    backlog: IntGaugeVec "rampart_backlog" ["queue"];
    /// Time in seconds by which the longest waiting delivery or mail is overdue, also when a slow
    /// endpoint is all that it waits for.
    backlog_overdue: IntGaugeVec "rampart_backlog_overdue_seconds" ["queue"];
    /// Time in seconds by which the longest waiting delivery is overdue of the partners that no edge
    /// attempts one of: our own lateness, and not that of a slow endpoint.
    deliveries_unclaimed: IntGaugeVec "rampart_deliveries_unclaimed_seconds" [];
    /// Commands to connectors that wait, by kind, counted to 10000.
    commands_open: IntGaugeVec "rampart_commands_open" ["kind"];
    /// Age of the oldest command to connectors that waits in seconds, by kind.
    command_age: IntGaugeVec "rampart_command_age_seconds" ["kind"];
    /// Members of the configuration that differ from what was applied last.
    configuration_drift: IntGaugeVec "rampart_configuration_drift" [];
    /// Payments that wait for an operator, counted to 10000: unmatched, or suspense, with payouts
    /// that came back of orders that are over and orders that owe what nobody gives back.
    payments_waiting: IntGaugeVec "rampart_payments_waiting" ["state"];
    /// Age of the oldest payment that waits for an operator in seconds, by state.
    payment_age: IntGaugeVec "rampart_payment_age_seconds" ["state"];
    /// Orders that are not final, counted to 10000 of each side and state.
    orders_open: IntGaugeVec "rampart_orders_open" ["side", "status"];
    /// Time in seconds that the oldest order in a state has been in it; those in progress without those
    /// that wait for their user alone, looked for among the 5000 oldest of a class, side and state.
    order_age: IntGaugeVec "rampart_order_age_seconds" ["partner_class", "side", "status"];
    /// Deposit addresses that no sale has taken, counted to connectors.deposit_addresses_min.
    deposit_addresses_free: IntGaugeVec "rampart_deposit_addresses_free" ["connector", "asset"];
    /// Time in seconds since the last call of a connector that a route leads to, or that has commands.
    connector_silence: IntGaugeVec "rampart_connector_silence_seconds" ["connector"];
    /// Time in seconds since the last whole check of the books.
    ledger_check_age: IntGaugeVec "rampart_ledger_check_age_seconds" [];
    /// Problems that the last whole check of the books has found.
    ledger_problems: IntGaugeVec "rampart_ledger_problems" [];
    /// 1 if the last whole verification of the audit's chain has found it broken.
    audit_broken: IntGaugeVec "rampart_audit_broken" [];
    /// Time in seconds since the last whole verification of the audit's chain.
    audit_check_age: IntGaugeVec "rampart_audit_check_age_seconds" [];
    /// Coins by asset: ours by the books as of the last check, and on chain as connectors report.
    treasury: GaugeVec "rampart_treasury_balance" ["asset", "source"];
    /// Lines that were dropped because their reader is too slow, by log: access, diagnostic.
    log_lines_dropped: IntCounterVec "rampart_log_lines_dropped_total" ["log"];
    /// Partners whose series were dropped because more than metrics.partners_max were active.
    partner_series_dropped: IntCounterVec "rampart_partner_series_dropped_total" [];
    /// Spans that the collector has taken.
    telemetry_exported: IntCounterVec "rampart_telemetry_exported_total" [];
    /// Spans that were dropped, by cause: queue_full, collector_away, rejected.
    telemetry_dropped: IntCounterVec "rampart_telemetry_dropped_total" ["cause"];
    /// Codes in error envelopes.
    errors: IntCounterVec "rampart_errors_total" ["code"];
    /// Requests refused by a rate limit.
    rate_limited: IntCounterVec "rampart_rate_limited_total" ["bucket", "partner"];
    /// 1 while this edge shares its rates through ratelimit.redis_url, else 0; there only with it.
    rates_shared: IntGaugeVec "rampart_rates_shared" [];
    /// Edges that share their rates, this one among them; without the server, those that lived
    /// last. There only with ratelimit.redis_url.
    rates_edges: IntGaugeVec "rampart_rates_edges" [];
    /// Exchanges of rates with its server by outcome: ok, away, slow, full, refused, wrong.
    rate_exchanges: IntCounterVec "rampart_rate_exchanges_total" ["outcome"];
    /// Time in seconds of an exchange of rates that was answered.
    rate_exchange_duration: HistogramVec "rampart_rate_exchange_duration_seconds"
        [] REQUEST_SECONDS;
    /// 1 while this edge can use the bucket of documents.s3_url, or write to documents.folder, else 0.
    documents_available: IntGaugeVec "rampart_documents_available" [];
    /// Time in seconds of calls of the bucket of documents.s3_url, by outcome: ok, away, slow, refused,
    /// no_bucket, failing, wrong.
    document_call_duration: HistogramVec "rampart_document_call_duration_seconds"
        ["operation", "outcome"] REQUEST_SECONDS;
    /// Policy calls by outcome: ok, refused, load, budget, breaker, or the cause of a failure;
    /// clamped fees count beside their ok.
    policy_calls: IntCounterVec "rampart_policy_calls_total" ["kind", "partner", "outcome"];
    /// Shadow runs of policies by outcome: same, different, failed, skipped.
    policy_shadow: IntCounterVec "rampart_policy_shadow_total" ["kind", "partner", "outcome"];
    /// State of a policy's breaker on this edge: 1 open, 0 closed.
    policy_breaker: IntGaugeVec "rampart_policy_breaker_open" ["kind", "partner"];
    /// Replay tokens without a signing time that a partner's payloads have used up, each of which is
    /// remembered for good.
    replay_tokens_undated: IntCounterVec "rampart_replay_tokens_undated_total" ["partner"];
    /// Time in seconds of a policy call, instance included.
    policy_duration: HistogramVec "rampart_policy_duration_seconds" ["kind"] POLICY_SECONDS;
    /// Fuel of a policy call, in about as many instructions.
    policy_fuel: HistogramVec "rampart_policy_fuel" ["kind"] FUEL;
    /// Events of orders.
    orders: IntCounterVec "rampart_orders_total" ["event"];
    /// Attempts to deliver a callback, by outcome.
    callback_attempts: IntCounterVec "rampart_callback_attempts_total" ["outcome"];
    /// Time in seconds from the event to its first attempt.
    callback_lag: HistogramVec "rampart_callback_lag_seconds" [] LAG_SECONDS;
    /// Attempts to send a mail, by outcome: sent, rejected (for good), deferred (it may be taken later),
    /// unavailable (the server gives no answer, or takes no mail).
    mail_attempts: IntCounterVec "rampart_mail_attempts_total" ["outcome"];
    /// Failed logins of operators, by cause: missing, wrong, limited, forbidden (to a person whom the
    /// provider has proven), provider (it cannot be asked).
    operator_login_failures: IntCounterVec "rampart_operator_login_failures_total" ["cause"];
    /// Calls of connectors without a token that proves one, by cause: missing, wrong, limited.
    connector_login_failures: IntCounterVec "rampart_connector_login_failures_total" ["cause"];
    /// Calls with the break-glass token of the configuration: each is an alarm.
    operator_break_glass: IntCounterVec "rampart_operator_break_glass_total" [];
    /// Connections of all pools, by state.
    db_pool: IntGaugeVec "rampart_db_pool" ["state"];
    /// Rows that cannot be read and are left out, by table; each is an alarm.
    broken_rows: IntGaugeVec "rampart_broken_rows" ["table"];
    /// Requests answered with 503 by the limit that is reached: of those in flight (total, address,
    /// partner), or of bodies held at once (memory, sender_memory).
    requests_shed: IntCounterVec "rampart_requests_shed_total" ["limit"];
    /// Connections of all listeners closed at once by cause: total, network, address,
    /// address_handshakes, proxy_protocol, open_files.
    connections_refused: IntCounterVec "rampart_connections_refused_total" ["cause"];
    /// Time in seconds that a connection was waited for, by pool (requests, logins, workers, operators,
    /// connectors, snapshot).
    db_pool_wait: HistogramVec "rampart_db_pool_wait_seconds" ["pool"] REQUEST_SECONDS;
    /// Time in seconds that requests of a partner waited because it held all connections of its share
    /// (database.partner_connections_max), by pool.
    db_partner_wait: HistogramVec "rampart_db_partner_wait_seconds" ["pool"] REQUEST_SECONDS;
    /// Requests answered with 503 because their partner's share was not free in time, by pool.
    db_partner_refused: IntCounterVec "rampart_db_partner_refused_total" ["pool"];
    /// Time in seconds of a statement, by pool.
    db_statement_duration: HistogramVec "rampart_db_statement_duration_seconds"
        ["pool"] REQUEST_SECONDS;
    /// Connections by pool (requests, logins, workers, operators, connectors, snapshot) and state.
    db_connections: IntGaugeVec "rampart_db_connections" ["pool", "state"];
    /// Time in seconds by which a replica (database.replica_urls) is behind the primary, by host and
    /// port; absent while it does not answer.
    replica_lag: GaugeVec "rampart_replica_lag_seconds" ["replica"];
    /// 1 while a replica (database.replica_urls) answers, 0 while it cannot be read, by host and port.
    replica_up: IntGaugeVec "rampart_replica_up" ["replica"];
    /// Orders of a certificate from the authority of acme.directory_url, by outcome: ok, failed.
    acme_orders: IntCounterVec "rampart_acme_orders_total" ["outcome"];
    /// Runs of background workers by outcome: ok, failed. Of the worker `all`, panics that ended every one.
    worker_runs: IntCounterVec "rampart_worker_runs_total" ["worker", "outcome"];
    /// Months to come that a table has partitions for; below 1, rows go to the default partition.
    partitions_ahead: IntGaugeVec "rampart_partitions_ahead_months" ["table"];
    /// Rows that a background worker could not settle and passed over.
    worker_rows_failed: IntCounterVec "rampart_worker_rows_failed_total" ["worker"];
    /// TLS handshakes by version and outcome: ok, failed, timeout, or closed, which the client did
    /// before its first byte.
    tls_handshakes: IntCounterVec "rampart_tls_handshakes_total" ["version", "outcome"];
    /// End of a certificate's validity in seconds since the epoch, by its file; of all listeners.
    certificate_expiry: IntGaugeVec "rampart_certificate_expiry_timestamp_seconds" ["file"];
    /// Attempts to fetch OCSP responses for certificates: ok, or why there is none.
    ocsp_fetches: IntCounterVec "rampart_ocsp_fetches_total" ["outcome"];
    /// Begin of the validity of the stapled OCSP response in seconds since the epoch, by its
    /// certificate's file.
    ocsp_this_update: IntGaugeVec "rampart_ocsp_this_update_timestamp_seconds" ["file"];
    /// End of the validity of the stapled OCSP response in seconds since the epoch, by its
    /// certificate's file.
    ocsp_next_update: IntGaugeVec "rampart_ocsp_next_update_timestamp_seconds" ["file"];
    /// Age in seconds of the price in use.
    price_age: IntGaugeVec "rampart_price_age_seconds" ["pair"];
    /// 1 while a pair that is offered is closed because its price is too old, or its sources have never
    /// given it one, else 0.
    price_stale: IntGaugeVec "rampart_price_stale" ["pair"];
    /// Part of the price in use by which its sources say another one, which closes the pair until it is
    /// confirmed; 0 while they do not.
    price_deviation: GaugeVec "rampart_price_deviation_ratio" ["pair"];
    /// Always 1; the labels say what is running.
    build_info: IntGaugeVec "rampart_build_info" ["version"];
}

impl Metrics {
    /// Renders all families in the Prometheus text format, those without samples as `HELP` and `TYPE`.
    pub fn render(&self) -> String {
        self.partners.settle();
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
        process::render(&mut text);
        text
    }

    /// True if this partner is among the active ones, which have series of their own.
    pub(crate) fn is_active(&self, partner: &str) -> bool {
        self.partners.contains(partner)
    }

    /// Shows the most connections that the public listener may have.
    pub fn set_connections_max(&self, most: usize) {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.connections_max.with_label_values::<&str>(&[]).set(most);
    }

    /// Counts a connection that is open now.
    pub fn connection(&self) -> ConnectionMeter {
        ConnectionMeter::new(
            self.connections_open.with_label_values::<&str>(&[]),
            self.connections_idle.with_label_values::<&str>(&[]),
            self.requests_in_flight.with_label_values::<&str>(&[]),
        )
    }

    /// Logs and counts a row, by its client and key, that a sweep could not settle: it goes on with
    /// the others.
    ///
    /// # Errors
    /// The row's own when the database cannot be used: nothing else would succeed. A single statement
    /// that the server ended is the row's failure.
    pub(crate) fn row_failed(
        &self,
        worker: &'static str,
        client: Uuid,
        row: &dyn Display,
        error: Error,
    ) -> Result<()> {
        if error.is_unavailable() && !error.is_of_one_statement() {
            return Err(error);
        }
        self.worker_rows_failed.with_label_values(&[worker]).inc();
        tracing::warn!(worker, %client, %row, %error, "a row was passed over");
        Ok(())
    }

    /// Counts one attempt to deliver a callback; `lag` is set for a first attempt.
    pub fn callback(&self, outcome: &'static str, lag: Option<Duration>) {
        self.callback_attempts.with_label_values(&[outcome]).inc();
        if let Some(lag) = lag {
            self.callback_lag.with_label_values::<&str>(&[]).observe(lag.as_secs_f64());
        }
    }
}

impl Core {
    /// The text of `/metrics`: all families, with the pool's current state.
    pub fn metrics_text(&self) -> String {
        self.remove_overdue_gauges();
        self.update_database_gauges();
        for (queue, length) in self.queue_lengths() {
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            self.metrics.queue_length.with_label_values(&[queue]).set(length);
        }
        self.update_broken_rows();
        self.update_price_gauges();
        self.update_breaker_gauges();
        self.metrics.render()
    }
}

#[cfg(test)]
mod tests;
