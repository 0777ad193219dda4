//! Measurements by workers, which set gauges.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A measurement by a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Measurement {
    Audit,
    Backlogs,
    Books,
    Commands,
    Connectors,
    DepositAddresses,
    Drift,
    OrderAges,
    OrderCounts,
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
