//! The ops listener: `/metrics`, `/healthz`, `/readyz` (section 11 of the contract).

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use rampart_core::Core;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::Head;

use crate::lifecycle::{Lifecycle, Phase};
use crate::local::{Answer, error};

/// Media type of the Prometheus text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers from the core's own state.
pub(crate) struct Ops {
    /// Whose metrics and readiness.
    pub(crate) core: Arc<Core>,
    /// A process that stops is not ready.
    pub(crate) lifecycle: Arc<Lifecycle>,
}

impl Ops {
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

impl Answer for Ops {
    const BODY_BYTES_MAX: usize = 0;

    async fn answer(&self, head: Head, _: Bytes) -> Reply {
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
}
