//! Series that are there from the start. One that begins with its first event hides that event from
//! whoever looks at increases.

use super::Metrics;
use super::partner_series::ABORTED;
use crate::platform::error::Code;

/// Causes of refused connections.
const REFUSED: [&str; 6] =
    ["total", "network", "address", "address_handshakes", "proxy_protocol", "open_files"];
/// Outcomes of fetches of OCSP responses.
const FETCHED: [&str; 9] = [
    "ok",
    "unreachable",
    "refused",
    "malformed",
    "forged",
    "mismatched",
    "revoked",
    "unknown",
    "expired",
];
/// Causes of failed logins of operators.
const OPERATOR_LOGINS: [&str; 5] = ["missing", "wrong", "limited", "forbidden", "provider"];
/// Outcomes of attempts to deliver.
const DELIVERED: [&str; 9] = [
    "delivered",
    "gone",
    "unwanted",
    "redirect",
    "status",
    "timeout",
    "unreachable",
    "forbidden",
    "unsigned",
];
/// Events of orders.
const EVENTS: [&str; 14] = [
    "confirmed",
    "payment-received",
    "payment-late",
    "payment-amount-wrong",
    "price-moved",
    "payment-denied",
    "expired",
    "cancelled",
    "coins-sent",
    "confirmed-on-chain",
    "held",
    "released",
    "refunded",
    "paid-out",
];

impl Metrics {
    /// Shows counters of known labels as 0, and the gauges that begin with the first connection.
    pub(super) fn begin_at_zero(&self) {
        // What scales edges by requests in flight waits for one that does not tell any.
        for gauge in [&self.requests_in_flight, &self.connections_open, &self.connections_idle] {
            gauge.with_label_values::<&str>(&[]).set(0);
        }
        let plain =
            [&self.partner_series_dropped, &self.operator_break_glass, &self.telemetry_exported];
        for counter in plain {
            counter.with_label_values::<&str>(&[]).inc_by(0);
        }
        let by_cause: [(_, &[&str]); 13] = [
            (&self.log_lines_dropped, &["access", "diagnostic"]),
            (&self.orders, &EVENTS),
            (&self.callback_attempts, &DELIVERED),
            (&self.mail_attempts, &["sent", "rejected", "deferred", "unavailable"]),
            (&self.acme_orders, &["ok", "failed"]),
            (&self.rate_exchanges, &["ok", "away", "slow", "full", "refused", "wrong"]),
            (&self.connections_refused, &REFUSED),
            (&self.request_outcomes, &["answered", "failed", "refused", ABORTED]),
            (&self.requests_shed, &["total", "address", "partner", "memory", "sender_memory"]),
            (&self.telemetry_dropped, &["queue_full", "collector_away", "rejected"]),
            (&self.ocsp_fetches, &FETCHED),
            (&self.operator_login_failures, &OPERATOR_LOGINS),
            (&self.connector_login_failures, &["missing", "wrong", "limited"]),
        ];
        for (counter, causes) in by_cause {
            for cause in causes {
                counter.with_label_values(&[cause]).inc_by(0);
            }
        }
        // Of no version, which a handshake that fails has not.
        for outcome in ["failed", "timeout", "closed"] {
            self.tls_handshakes.with_label_values(&["", outcome]).inc_by(0);
        }
        for code in Code::ALL {
            self.errors.with_label_values(&[code.as_str()]).inc_by(0);
        }
        // Of no partner, because it comes before anybody has proven who they are. Series of partners
        // begin with their first event: there is a bound on them.
        self.rate_limited.with_label_values(&["address", ""]).inc_by(0);
    }
}
