//! The listener for operations: `/metrics`, `/healthz`, `/readyz` (section 11 of the contract).

use http::{Method, StatusCode};
use rampart_core::http::reply::Reply;
use rampart_core::http::request::Head;

use super::Gateway;
use super::private_listener::error;
use crate::server::Phase;

/// Media type of the Prometheus text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Gateway {
    /// Answers from the core's own state.
    pub(super) async fn answer_operations(&self, head: &Head) -> Reply {
        let known = ["/metrics", "/healthz", "/readyz"].contains(&head.path.as_str());
        if known && head.method != Method::GET {
            let mut reply = error(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
            reply.set("allow", "GET, HEAD");
            return reply;
        }
        match head.path.as_str() {
            "/metrics" => {
                Reply::with_body(StatusCode::OK, METRICS_TYPE, self.core.metrics_text().into())
            }
            "/healthz" => {
                Reply::with_body(StatusCode::OK, "application/json", r#"{"alive":true}"#.into())
            }
            "/readyz" => self.ready().await,
            _ => error(StatusCode::NOT_FOUND, "there is /metrics, /healthz and /readyz"),
        }
    }

    async fn ready(&self) -> Reply {
        let readiness = self.core.readiness().await;
        let serving = self.lifecycle.phase() == Phase::Serving;
        let ready = readiness.ready && serving;
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let body = serde_json::json!({
            "ready": ready,
            "stopping": !serving,
            "checks": readiness.checks,
        });
        Reply::with_body(status, "application/json", body.to_string().into())
    }
}
