//! The way of ended spans to the collector: OTLP over HTTP, in batches, with bounds on time, tries
//! and size.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value as OtlpValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prometheus::{IntCounter, IntCounterVec};
use prost::Message as _;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use url::Url;

use super::Telemetry;
use crate::platform::clock::Clock;
use crate::platform::http_client;
use crate::platform::metrics::Metrics;

/// Most spans of one request.
const BATCH_MAX: usize = 512;
/// Time for which spans are gathered.
const GATHER: Duration = Duration::from_millis(500);
/// Time for one request, from the name lookup to the last byte.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Most tries of one batch.
const TRIES_MAX: u32 = 4;
/// Pause after the first failure; it doubles with each further one.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause that a collector can ask for.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Time in which a stopping edge sends what is left.
const FLUSH_MAX: Duration = Duration::from_secs(2);
/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Path of traces below the collector's base URL.
const PATH: &str = "/v1/traces";
const MEDIA_TYPE: &str = "application/x-protobuf";

/// The collector, and the spans for it.
#[derive(Debug)]
pub(super) struct Exporter {
    http: reqwest::Client,
    url: Url,
    resource: Resource,
    /// Held by the one that exports.
    spans: tokio::sync::Mutex<mpsc::Receiver<Span>>,
    /// The reason the last request failed; `None` when it did not.
    problem: Mutex<Option<String>>,
    exported: IntCounter,
    dropped: IntCounterVec,
}

/// The reason a batch was not taken, without the URL.
struct Failure {
    reason: String,
    /// Time after which it may be taken; `None` when it never will be.
    again: Option<Duration>,
}

impl Exporter {
    /// Sends `spans` to the collector at `endpoint`.
    ///
    /// # Errors
    /// One sentence that names the setting.
    pub(super) fn new(
        endpoint: &str,
        clock: &Clock,
        spans: mpsc::Receiver<Span>,
        metrics: &Metrics,
    ) -> Result<Self, &'static str> {
        let url = traces_url(endpoint)
            .ok_or("telemetry.otlp_endpoint is not a URL such as http://127.0.0.1:4318")?;
        let http = http_client::builder()
            .timeout(REQUEST_TIMEOUT)
            .build()
            .map_err(|_| "the client for telemetry.otlp_endpoint cannot be made")?;
        let instance = clock.uuid().map_err(|_| "there is no entropy")?;
        let attributes = [
            ("service.name", "rampart".to_owned()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("service.instance.id", instance.to_string()),
        ];
        let attributes = attributes.map(|(key, value)| KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(OtlpValue::StringValue(value)) }),
            ..KeyValue::default()
        });
        Ok(Self {
            http,
            url,
            resource: Resource { attributes: attributes.into(), ..Resource::default() },
            spans: tokio::sync::Mutex::new(spans),
            problem: Mutex::default(),
            exported: metrics.telemetry_exported.with_label_values::<&str>(&[]),
            dropped: metrics.telemetry_dropped.clone(),
        })
    }

    /// Sends until `stop` is true, and then what is left.
    async fn run(&self, mut stop: watch::Receiver<bool>) {
        let mut spans = self.spans.lock().await;
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let exporting = async {
            loop {
                gather(&mut spans, &mut batch).await;
                self.deliver(&mut batch).await;
            }
        };
        tokio::select! {
            () = exporting => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        let flushing = async {
            loop {
                let room = BATCH_MAX - batch.len();
                batch.extend(std::iter::from_fn(|| spans.try_recv().ok()).take(room));
                if batch.is_empty() || self.send(&batch).await.is_err() {
                    return;
                }
                batch.clear();
            }
        };
        let _ = timeout(FLUSH_MAX, flushing).await;
    }

    /// Sends a batch, several times if need be, and empties it.
    #[expect(clippy::disallowed_methods, reason = "the pause between tries, at most PAUSE_MAX")]
    async fn deliver(&self, batch: &mut Vec<Span>) {
        let mut pause = PAUSE;
        for tried in 1..=TRIES_MAX {
            let Err(Failure { reason, again }) = self.send(batch).await else {
                self.set_problem(None);
                return batch.clear();
            };
            if self.set_problem(Some(reason.clone())) {
                tracing::warn!(reason, "traces are not exported");
            }
            match again {
                Some(asked) if tried < TRIES_MAX => sleep(asked.max(pause).min(PAUSE_MAX)).await,
                Some(_) => self.drop_spans("collector_away", batch.len()),
                None => {
                    self.drop_spans("rejected", batch.len());
                    break;
                }
            }
            pause *= 2;
        }
        batch.clear();
    }

    async fn send(&self, batch: &[Span]) -> Result<(), Failure> {
        let request = self
            .http
            .post(self.url.clone())
            .header(CONTENT_TYPE, MEDIA_TYPE)
            .body(self.request(batch).encode_to_vec());
        let unreachable = |error: reqwest::Error| Failure {
            reason: if error.is_timeout() {
                "the collector does not answer in time".to_owned()
            } else {
                "the collector cannot be reached".to_owned()
            },
            again: Some(Duration::ZERO),
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if status.is_success() {
            let rejected = rejected_spans(response).await.min(batch.len());
            self.exported.inc_by((batch.len() - rejected) as u64);
            self.drop_spans("rejected", rejected);
            return Ok(());
        }
        let reason = format!("the collector answers {}", status.as_u16());
        let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let is_passing = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        Err(Failure { reason, again: is_passing.then(|| asked.unwrap_or_default()) })
    }

    fn request(&self, batch: &[Span]) -> ExportTraceServiceRequest {
        let scope = InstrumentationScope {
            name: "rampart".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let scope_spans =
            ScopeSpans { scope: Some(scope), spans: batch.to_vec(), ..ScopeSpans::default() };
        let resource_spans = ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![scope_spans],
            ..ResourceSpans::default()
        };
        ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
    }

    fn drop_spans(&self, cause: &str, count: usize) {
        self.dropped.with_label_values(&[cause]).inc_by(count as u64);
    }

    /// Keeps the state of the exporter; true when it changed.
    fn set_problem(&self, problem: Option<String>) -> bool {
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *known != problem;
        *known = problem;
        changed
    }
}

/// Waits for spans, and for more that come soon after.
async fn gather(spans: &mut mpsc::Receiver<Span>, batch: &mut Vec<Span>) {
    spans.recv_many(batch, BATCH_MAX).await;
    let more = async {
        while batch.len() < BATCH_MAX {
            let room = BATCH_MAX - batch.len();
            spans.recv_many(batch, room).await;
        }
    };
    // A batch that is not full by then goes as it is.
    let _ = timeout(GATHER, more).await;
}

/// Spans that the collector says it has not taken, although it has the request.
async fn rejected_spans(mut response: reqwest::Response) -> usize {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_BYTES_MAX {
            return 0;
        }
    }
    let answer = ExportTraceServiceResponse::decode(body.as_slice()).ok();
    let partial = answer.and_then(|answer| answer.partial_success);
    partial.map_or(0, |partial| partial.rejected_spans.try_into().unwrap_or(0))
}

/// The URL of traces; `None` when the base is no URL, or names a user, a query or a fragment.
fn traces_url(endpoint: &str) -> Option<Url> {
    let mut url = Url::parse(endpoint).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    let is_base = url.query().is_none() && url.fragment().is_none() && url.has_host();
    if !["http", "https"].contains(&url.scheme()) || !is_plain || !is_base {
        return None;
    }
    let base = url.path().trim_end_matches('/');
    let base = base.strip_suffix(PATH).unwrap_or(base);
    let path = format!("{base}{PATH}");
    url.set_path(&path);
    Some(url)
}

impl Telemetry {
    /// Sends spans to the collector until `stop` is true.
    pub async fn export(&self, stop: watch::Receiver<bool>) {
        if let Some(exporter) = &self.exporter {
            exporter.run(stop).await;
        }
    }

    /// The reason spans do not reach the collector, if they do not.
    pub fn problem(&self) -> Option<String> {
        let exporter = self.exporter.as_ref()?;
        exporter.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_go_below_the_base_url() {
        let of = |text: &str| traces_url(text).map(|url| url.to_string());
        for base in ["http://a:4318", "http://a:4318/", "http://a:4318/v1/traces"] {
            assert_eq!(of(base).as_deref(), Some("http://a:4318/v1/traces"), "{base}");
        }
        assert_eq!(of("https://a/otlp/").as_deref(), Some("https://a/otlp/v1/traces"));
        for bad in
            ["", "a", "a:4318", "ftp://a", "http://", "http://u:p@a", "http://a?b", "http://a#b"]
        {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
