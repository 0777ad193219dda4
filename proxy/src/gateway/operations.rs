//! The listener for operations: `/metrics`, `/healthz`, `/readyz` (section 11 of the contract).

use std::collections::BTreeSet;
use std::sync::PoisonError;

use http::{Method, StatusCode};
use rampart_core::http::reply::Reply;
use rampart_core::http::request::Head;

use super::Gateway;
use super::private_listener::error;
use crate::server::{Phase, StapleStatus};

/// Media type of the Prometheus text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Seconds after which an edge that is not ready may be asked again.
const READY_RETRY_SECONDS: u64 = 1;

impl Gateway {
    /// Answers from the core's own state.
    pub(super) async fn answer_operations(&self, head: &Head) -> Reply {
        match head.path.as_str() {
            "/metrics" | "/healthz" | "/readyz" if head.method != Method::GET => {
                let mut reply = error(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
                reply.set("allow", "GET, HEAD");
                reply
            }
            "/metrics" => {
                Reply::with_body(StatusCode::OK, METRICS_TYPE, self.metrics_text().into())
            }
            "/healthz" => {
                Reply::with_body(StatusCode::OK, "application/json", r#"{"alive":true}"#.into())
            }
            "/readyz" => self.ready().await,
            _ => error(StatusCode::NOT_FOUND, "there is /metrics, /healthz and /readyz"),
        }
    }

    /// The text of `/metrics`, with every certificate and stapled OCSP response as of now.
    fn metrics_text(&self) -> String {
        let _one = self.scrape.lock().unwrap_or_else(PoisonError::into_inner);
        let metrics = &self.core.metrics;
        let (this, next) = (&metrics.ocsp_this_update, &metrics.ocsp_next_update);
        [&metrics.certificate_expiry, this, next].iter().for_each(|metric| metric.reset());
        // Listeners may share a file.
        for (file, end) in self.certificates.iter().flat_map(|all| all.expiries()) {
            metrics.certificate_expiry.with_label_values(&[&file]).set(end);
        }
        for staple in self.staples() {
            if let Some((begin, end)) = staple.validity {
                this.with_label_values(&[&staple.file]).set(begin);
                next.with_label_values(&[&staple.file]).set(end);
            }
        }
        self.core.metrics_text()
    }

    fn staples(&self) -> Vec<StapleStatus> {
        self.certificates.iter().flat_map(|all| all.staples().to_vec()).collect()
    }

    /// Sentences about what will keep the edge from serving soon, although it does now.
    fn warnings(&self) -> Vec<String> {
        let now = self.core.clock.now().timestamp();
        let public = self.certificates.first();
        let none = public.is_none_or(|public| public.expiries().is_empty()).then(|| {
            "there is no certificate yet: the log tells of the order at acme.directory_url"
                .to_owned()
        });
        let traces = self.core.telemetry.problem();
        let traces = traces.map(|problem| {
            format!("traces are not exported to telemetry.otlp_endpoint: {problem}")
        });
        let staples = self.staples().into_iter().filter_map(|staple| {
            let failure = staple.failure.filter(|_| staple.validity.is_none())?;
            let file = staple.file;
            Some(format!("no OCSP response is stapled to the certificate in '{file}': {failure}"))
        });
        // Listeners may share a file.
        let expiries: BTreeSet<String> =
            self.certificates.iter().flat_map(|all| all.expiry_warnings(now)).collect();
        expiries.into_iter().chain(none).chain(staples).chain(traces).collect()
    }

    async fn ready(&self) -> Reply {
        let readiness = self.core.readiness().await;
        let stopping = self.lifecycle.phase() >= Phase::Draining;
        let ready = readiness.ready && !stopping;
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let body = serde_json::json!({
            "ready": ready,
            "stopping": stopping,
            "checks": readiness.checks,
            "warnings": self.warnings(),
        });
        let mut reply = Reply::with_body(status, "application/json", body.to_string().into());
        if !ready {
            reply.set("retry-after", READY_RETRY_SECONDS);
        }
        reply
    }
}
