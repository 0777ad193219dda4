//! Waits for connections to the database, and the statements on them.

use std::time::Duration;

use prometheus::Histogram;

use super::Metrics;

/// The meters of one pool of connections.
#[derive(Clone, Debug)]
pub(crate) struct PoolMeters {
    wait: Histogram,
    statements: Histogram,
}

impl PoolMeters {
    /// Records the wait for one connection.
    pub(crate) fn waited(&self, took: Duration) {
        self.wait.observe(took.as_secs_f64());
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
        }
    }
}
