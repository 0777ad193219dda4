//! Waits for connections to the database, and the statements on them.

use std::time::Duration;

use prometheus::{Histogram, IntCounter};

use super::Metrics;
use crate::Core;

/// The meters of one pool of connections.
#[derive(Clone, Debug)]
pub struct PoolMeters {
    wait: Histogram,
    statements: Histogram,
    partner_wait: Histogram,
    partner_refused: IntCounter,
}

impl PoolMeters {
    /// Records the wait for one connection.
    pub(crate) fn waited(&self, took: Duration) {
        self.wait.observe(took.as_secs_f64());
    }

    /// Records a partner's wait for one of its own connections, and if it got one.
    pub(crate) fn waited_for_share(&self, took: Duration, got: bool) {
        self.partner_wait.observe(took.as_secs_f64());
        if !got {
            self.partner_refused.inc();
        }
    }

    /// Records the time of one statement.
    pub(crate) fn ran(&self, took: Duration) {
        self.statements.observe(took.as_secs_f64());
    }
}

impl Metrics {
    /// The meters of the pool of this name.
    pub(crate) fn pool(&self, name: &str) -> PoolMeters {
        PoolMeters {
            wait: self.db_pool_wait.with_label_values(&[name]),
            statements: self.db_statement_duration.with_label_values(&[name]),
            partner_wait: self.db_partner_wait.with_label_values(&[name]),
            partner_refused: self.db_partner_refused.with_label_values(&[name]),
        }
    }
}

impl Core {
    /// Sets the gauges of connections and replicas to what is there now.
    pub(super) fn update_database_gauges(&self) {
        let (mut idle, mut busy) = (0, 0);
        for (kind, kind_idle, kind_busy) in self.db.connections() {
            let connections = &self.metrics.db_connections;
            connections.with_label_values(&[kind.as_str(), "idle"]).set(kind_idle.into());
            connections.with_label_values(&[kind.as_str(), "busy"]).set(kind_busy.into());
            (idle, busy) = (idle + kind_idle, busy + kind_busy);
        }
        for (state, connections) in [("idle", idle), ("busy", busy)] {
            self.metrics.db_pool.with_label_values(&[state]).set(connections.into());
        }
        self.metrics.replica_lag.reset();
        for (replica, lag) in self.db.replica_lags() {
            self.metrics.replica_up.with_label_values(&[replica]).set(lag.is_some().into());
            let Some(lag) = lag else { continue };
            self.metrics.replica_lag.with_label_values(&[replica]).set(lag.as_seconds_f64());
        }
    }
}
