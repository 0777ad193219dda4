//! Settings of traces.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `telemetry`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Base URL of an OpenTelemetry collector that takes traces by OTLP over HTTP, such as
    /// `http://127.0.0.1:4318`; they are sent to `/v1/traces` below it.
    #[schemars(extend("x-default" = "none: no traces are recorded"))]
    pub otlp_endpoint: Option<String>,
    /// Part of the traces that begin at this edge and are recorded; one that a caller's
    /// `traceparent` began is recorded if the caller says so, without a credential ten a second.
    #[schemars(with = "String", extend("type" = "number", "x-bounds" = "0 to 1"))]
    pub sample_ratio: Decimal,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { otlp_endpoint: None, sample_ratio: Decimal::ONE }
    }
}
