//! Gauges of measurements by workers. One whose measurement fails again and again does not show its
//! last value for good.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::IntGaugeVec;

use super::Metrics;
use super::measured::{Last, Measurement};
use crate::Core;

/// Age of a measurement beyond which its gauges are absent. The alert `RampartWorkerFails` begins 15
/// minutes after the last success, so that no alert over a gauge ends with nothing in its place.
const AGE_MAX: Duration = Duration::from_secs(20 * 60);

impl Core {
    /// Notes that a measurement has succeeded, before its gauges are set: they are shown from here on.
    pub fn measured(&self, measurement: Measurement) {
        self.found(measurement, None);
    }

    /// As [`Core::measured`], with what it has found. That stands until the next success, however old
    /// the gauges become.
    pub(crate) fn found(&self, measurement: Measurement, finding: Option<String>) {
        let last = Last { at_ns: self.clock.monotonic_ns(), finding };
        self.metrics.measured().insert(measurement, last);
    }

    /// The reason that the last measurement gave to look at it, if it gave one.
    pub(crate) fn finding(&self, measurement: Measurement) -> Option<String> {
        self.metrics.measured().get(&measurement)?.finding.clone()
    }

    /// Removes the gauges whose last measurement is too old.
    pub(super) fn remove_overdue_gauges(&self) {
        // Held meanwhile: what is measured now is set afterwards.
        let measured = self.metrics.measured();
        let now = self.clock.monotonic_ns();
        let is_overdue = |measurement: &Measurement| {
            let last = measured.get(measurement);
            last.is_none_or(|last| Duration::from_nanos(now.saturating_sub(last.at_ns)) > AGE_MAX)
        };
        for measurement in Measurement::ALL.into_iter().filter(is_overdue) {
            self.metrics.remove_gauges(measurement);
        }
    }
}

impl Metrics {
    fn measured(&self) -> MutexGuard<'_, BTreeMap<Measurement, Last>> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

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
