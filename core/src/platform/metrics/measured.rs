//! Measurements by workers, which set gauges.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A measurement by a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measurement {
    /// Verification of the audit chain.
    Audit,
    /// Queues in the database.
    Backlogs,
    /// Check of the books.
    Books,
    /// Open commands for connectors.
    Commands,
    /// Silence of connectors.
    Connectors,
    /// Free deposit addresses.
    DepositAddresses,
    /// Drift of the configuration.
    Drift,
    /// Ages of open orders.
    OrderAges,
    /// Numbers of open orders.
    OrderCounts,
    /// Payments that wait for an operator.
    Payments,
}

impl Measurement {
    pub(super) const ALL: [Self; 10] = [
        Self::Audit,
        Self::Backlogs,
        Self::Books,
        Self::Commands,
        Self::Connectors,
        Self::DepositAddresses,
        Self::Drift,
        Self::OrderAges,
        Self::OrderCounts,
        Self::Payments,
    ];
}

/// The last success of each measurement.
pub(super) type Measured = Arc<Mutex<BTreeMap<Measurement, Last>>>;

/// The last success of a measurement.
#[derive(Debug)]
pub(super) struct Last {
    /// Monotonic nanoseconds.
    pub(super) at_ns: u64,
    /// The reason for an operator to look, if it has found one.
    pub(super) finding: Option<String>,
}
