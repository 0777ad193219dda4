//! Gauges that workers set to what they have measured. One whose measurement fails again and again
//! does not show its last value for good.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus::IntGaugeVec;

use super::Metrics;
use crate::Core;

/// Age of a measurement beyond which its gauges are absent. The alert `RampartWorkerFails` begins 15
/// minutes after the last success, so that no alert over a gauge ends with nothing in its place.
const AGE_MAX: Duration = Duration::from_secs(20 * 60);

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
    const ALL: [Self; 10] = [
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

/// Times of the last measurements, in monotonic nanoseconds.
pub(super) type MeasuredAt = Arc<Mutex<BTreeMap<Measurement, u64>>>;

impl Core {
    /// Notes that a measurement has succeeded, before its gauges are set: they are shown from here on.
    pub(crate) fn measured(&self, measurement: Measurement) {
        let mut measured_at =
            self.metrics.measured_at.lock().unwrap_or_else(PoisonError::into_inner);
        measured_at.insert(measurement, self.clock.monotonic_ns());
    }

    /// Removes the gauges whose last measurement is too old.
    pub(super) fn remove_overdue_gauges(&self) {
        // Held meanwhile: what is measured now is set afterwards.
        let measured_at = self.metrics.measured_at.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.monotonic_ns();
        let is_overdue = |measurement: &Measurement| {
            let at = measured_at.get(measurement);
            at.is_none_or(|at| Duration::from_nanos(now.saturating_sub(*at)) > AGE_MAX)
        };
        for measurement in Measurement::ALL.into_iter().filter(is_overdue) {
            self.metrics.remove_gauges(measurement);
        }
    }
}

impl Metrics {
    fn remove_gauges(&self, measurement: Measurement) {
        let gauges: Vec<&IntGaugeVec> = match measurement {
            Measurement::Audit => vec![&self.audit_broken, &self.audit_check_age],
            Measurement::Backlogs => {
                vec![&self.backlog, &self.backlog_overdue, &self.deliveries_unclaimed]
            }
            Measurement::Books => {
                self.treasury.reset();
                vec![&self.ledger_check_age, &self.ledger_problems]
            }
            Measurement::Commands => vec![&self.commands_open, &self.command_age],
            Measurement::Connectors => vec![&self.connector_silence],
            Measurement::DepositAddresses => vec![&self.deposit_addresses_free],
            Measurement::Drift => vec![&self.configuration_drift],
            Measurement::OrderAges => vec![&self.order_age],
            Measurement::OrderCounts => vec![&self.orders_open],
            Measurement::Payments => vec![&self.payments_waiting, &self.payment_age],
        };
        for gauge in gauges {
            gauge.reset();
        }
    }
}
