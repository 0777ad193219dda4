//! Metrics of policies.

use std::time::Duration;

use prometheus::Histogram;

use super::Metrics;
use super::partner_series::Series;

impl Metrics {
    /// The meters of one kind of policy.
    pub fn policy_meters(&self, kind: &str) -> PolicyMeters {
        PolicyMeters {
            duration: self.policy_duration.with_label_values(&[kind]),
            fuel: self.policy_fuel.with_label_values(&[kind]),
        }
    }

    /// Counts one call of a partner's policy.
    pub(crate) fn policy_call(&self, kind: &'static str, partner: &str, outcome: &'static str) {
        self.partners.counter(partner, Series::PolicyCalls { kind, outcome }).inc();
    }

    /// Counts a replay token of a partner that is remembered for good.
    pub(crate) fn undated_replay_token(&self, partner: &str) {
        self.partners.counter(partner, Series::UndatedReplayTokens).inc();
    }

    /// Counts shadow runs of a partner's policy.
    pub(crate) fn policy_shadow_runs(
        &self,
        kind: &'static str,
        partner: &str,
        outcome: &'static str,
        runs: u64,
    ) {
        self.partners.counter(partner, Series::PolicyShadow { kind, outcome }).inc_by(runs);
    }
}

/// Metrics of one kind of policy with their labels resolved, so that a call does not look them up.
#[derive(Debug)]
pub struct PolicyMeters {
    duration: Histogram,
    fuel: Histogram,
}

impl PolicyMeters {
    /// Records the time and fuel of one call.
    pub fn cost(&self, took: Duration, fuel: u64) {
        self.duration.observe(took.as_secs_f64());
        self.fuel.observe(fuel as f64);
    }
}
