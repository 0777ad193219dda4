//! Requests that are over, and those that a limit refused.

use std::time::Duration;

use super::Metrics;
use super::partner_series::{ABORTED, Series};
use crate::platform::error::Code;

impl Metrics {
    /// Counts one request that is over.
    pub fn request(&self, request: &FinishedRequest<'_>) {
        let FinishedRequest { route, partner, partner_class, status, took, codes, .. } = *request;
        self.partners.counter(partner, Series::Requests { route, status }).inc();
        self.request_outcomes.with_label_values(&[request.outcome()]).inc();
        let labels = [route, partner_class, status_class(status)];
        self.request_duration.with_label_values(&labels).observe(took.as_secs_f64());
        for code in codes {
            self.errors.with_label_values(&[code.as_str()]).inc();
        }
    }

    /// Counts one request that the limit of a bucket refused. `partner` is a known tenant's slug or
    /// empty.
    pub fn rate_limited(&self, bucket: &'static str, partner: &str) {
        self.partners.counter(partner, Series::RateLimited { bucket }).inc();
    }

    /// Counts one request that a limit of the edge refused with 503, by the limit's name.
    pub fn request_shed(&self, limit: &'static str) {
        self.requests_shed.with_label_values(&[limit]).inc();
    }
}

/// A request that is over.
#[derive(Clone, Copy, Debug)]
pub struct FinishedRequest<'a> {
    /// Path of the route as declared.
    pub route: &'static str,
    /// A known tenant's slug, or empty.
    pub partner: &'a str,
    /// `test` or `live`; `none` without a partner.
    pub partner_class: &'static str,
    /// Status of the answer; 0 when the client did not wait for it.
    pub status: u16,
    /// True for an error of the server that its sender caused.
    pub by_sender: bool,
    /// Time from its head until the answer was made, without that in which its body was received.
    pub took: Duration,
    /// Codes of the error envelope.
    pub codes: &'a [Code],
}

impl FinishedRequest<'_> {
    /// Its outcome, as a label: a 5xx counts as failed when no sender caused it.
    const fn outcome(&self) -> &'static str {
        match (self.status / 100, self.by_sender) {
            (5, true) => "refused",
            (5, false) => "failed",
            (1..=4, _) => "answered",
            _ => ABORTED,
        }
    }
}

/// The class of a status, as a label.
const fn status_class(status: u16) -> &'static str {
    match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => ABORTED,
    }
}
