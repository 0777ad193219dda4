//! Series that are there from the start. One that begins with its first event hides that event from
//! whoever looks at increases.

use super::Metrics;
use crate::platform::error::Code;

impl Metrics {
    /// Shows counters of known labels as 0.
    pub(super) fn begin_at_zero(&self) {
        let plain = [
            &self.log_lines_dropped,
            &self.partner_series_dropped,
            &self.operator_break_glass,
            &self.telemetry_exported,
        ];
        for counter in plain {
            counter.with_label_values::<&str>(&[]).inc_by(0);
        }
        let refused = ["total", "address", "address_handshakes", "proxy_protocol", "open_files"];
        let fetched = [
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
        let by_cause: [(_, &[&str]); 7] = [
            (&self.acme_orders, &["ok", "failed"]),
            (&self.rate_exchanges, &["ok", "away", "slow", "full", "refused", "wrong"]),
            (&self.connections_refused, &refused),
            (&self.requests_shed, &["total", "address", "partner"]),
            (&self.telemetry_dropped, &["queue_full", "collector_away", "rejected"]),
            (&self.ocsp_fetches, &fetched),
            (&self.operator_login_failures, &["missing", "wrong", "limited"]),
        ];
        for (counter, causes) in by_cause {
            for cause in causes {
                counter.with_label_values(&[cause]).inc_by(0);
            }
        }
        for code in Code::ALL {
            self.errors.with_label_values(&[code.as_str()]).inc_by(0);
        }
        // Of no partner, because it comes before anybody has proven who they are. Series of partners
        // begin with their first event: there is a bound on them.
        self.rate_limited.with_label_values(&["address", ""]).inc_by(0);
    }
}
