//! Traces: what a request, a delivery or a background worker's run consists of, sent to an
//! OpenTelemetry collector.
//!
//! A [`Span`] begins with a request ([`Telemetry::begin_request`]) or goes on from where a trace was
//! left ([`Telemetry::resume`]). Its [`TraceScope`] goes along with the task that does the work, and what
//! is below finds it there: statements, policy calls, requests of ours. Ended spans wait in a bounded
//! queue (`recorder`) for `export`, which sends them by OTLP. Nothing ever waits for the collector.
//!
//! A span holds what the table of endpoints, the code and the ids of this edge say: never a query, a
//! body, a header, an address or a name.

mod export;
mod recorder;
mod span;
mod trace_context;

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use rust_decimal::Decimal;

use self::export::Exporter;
use self::recorder::Recorder;
pub(crate) use self::span::Spans;
use self::span::span_id;
pub use self::span::{Span, SpanKind, TraceScope};
pub(crate) use self::trace_context::StoredTrace;
pub use self::trace_context::TraceContext;
use crate::platform::clock::Clock;
use crate::platform::metrics::Metrics;
use crate::platform::rate_limit::{Gcra, Quota};
use crate::platform::settings;

/// Rate of the traces that are recorded because callers without a credential ask for it.
const UNAUTHENTICATED_QUOTA: Quota = Quota::new(10, 1, 100);

/// The caller of a request, which decides how far its trace goes: a trace may reach the partner's
/// endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceCaller {
    /// A partner, or somebody on a page of its: the trace goes on.
    Partner,
    /// A connector: the trace goes on, which is its command's, without the `tracestate`.
    Connector,
    /// An operator: a trace of the edge begins, and links to the operator's.
    Operator,
}

/// The beginnings of traces on this edge, and the way out of their spans.
#[derive(Debug)]
pub struct Telemetry {
    clock: Clock,
    recorder: Option<Arc<Recorder>>,
    exporter: Option<Exporter>,
    /// Traces whose id ends in a number below this are recorded: all of them at 2^63.
    sampled_below: u64,
    /// Recorded traces of callers without a credential.
    unauthenticated: Gcra,
}

impl Telemetry {
    /// Records traces if there is a collector.
    ///
    /// # Errors
    /// One sentence that names the setting.
    pub(crate) fn new(
        settings: &settings::Telemetry,
        clock: &Clock,
        metrics: &Metrics,
    ) -> Result<Self, &'static str> {
        let sampled_below = sampled_below(settings.sample_ratio)
            .ok_or("telemetry.sample_ratio is not between 0 and 1")?;
        let off = Self {
            clock: clock.clone(),
            recorder: None,
            exporter: None,
            sampled_below,
            unauthenticated: Gcra::default(),
        };
        let Some(endpoint) = &settings.otlp_endpoint else { return Ok(off) };
        let dropped = metrics.telemetry_dropped.with_label_values(&["queue_full"]);
        let (recorder, spans) = Recorder::new(clock.clone(), dropped);
        let exporter = Exporter::new(endpoint, clock, spans, metrics)?;
        Ok(Self { recorder: Some(Arc::new(recorder)), exporter: Some(exporter), ..off })
    }

    /// The span of a request, in the caller's trace or a new one. `None` when no trace is recorded
    /// here and none of a caller goes on.
    pub fn begin_request(&self, headers: &HeaderMap, caller: TraceCaller) -> Option<Span> {
        let remote = TraceContext::of_headers(headers);
        let (kind, name) = (SpanKind::Server, "request".into());
        match caller {
            TraceCaller::Partner => self.begin(remote, kind, name),
            TraceCaller::Connector => {
                let remote = remote.map(|remote| TraceContext { state: None, ..remote });
                self.begin(remote, kind, name)
            }
            TraceCaller::Operator => {
                let sampled = remote.as_ref().map(|remote| remote.is_sampled);
                let mut span = self.begin_trace(sampled, kind, name)?;
                if let Some(remote) = &remote {
                    span.link(remote);
                }
                Some(span)
            }
        }
    }

    /// Limits the rate at which callers without a credential have their requests recorded by a
    /// `traceparent`, which anybody can send. Beyond it the ratio decides, by a draw, because the caller
    /// has chosen the trace's id.
    pub fn limit_unauthenticated(&self, span: &mut Span) {
        if !span.is_recorded_for_caller() {
            return;
        }
        let drawn = self.clock.nonce().is_ok_and(|id| is_sampled(id, self.sampled_below));
        let now = self.clock.monotonic_ns();
        if !drawn && !self.unauthenticated.take(UNAUTHENTICATED_QUOTA, now).allowed {
            span.discard();
        }
    }

    /// A span below the stored one of a trace that was left, or of a new trace.
    pub(crate) fn resume(
        &self,
        stored: Option<TraceContext>,
        kind: SpanKind,
        name: impl Into<Cow<'static, str>>,
    ) -> Option<Span> {
        self.begin(stored, kind, name.into())
    }

    /// A trace of this edge's own work.
    pub fn begin_work(&self, name: impl Into<Cow<'static, str>>) -> Option<Span> {
        self.begin(None, SpanKind::Internal, name.into())
    }

    fn begin(
        &self,
        remote: Option<TraceContext>,
        kind: SpanKind,
        name: Cow<'static, str>,
    ) -> Option<Span> {
        let Some(remote) = remote else { return self.begin_trace(None, kind, name) };
        let (recorder, parent) = (self.recorder.as_ref(), remote.span_id);
        let context = TraceContext { span_id: span_id(&self.clock)?, ..remote };
        Some(Span::begin(context, Some(parent), recorder, kind, name))
    }

    /// The first span of a trace, if there is a collector. Without `sampled` the ratio decides.
    fn begin_trace(
        &self,
        sampled: Option<bool>,
        kind: SpanKind,
        name: Cow<'static, str>,
    ) -> Option<Span> {
        let recorder = self.recorder.as_ref()?;
        let (trace_id, span_id) = (self.clock.nonce().ok()?, span_id(&self.clock)?);
        let is_sampled = sampled.unwrap_or_else(|| is_sampled(trace_id, self.sampled_below));
        let context = TraceContext { trace_id, span_id, is_sampled, state: None };
        Some(Span::begin(context, None, Some(recorder), kind, name))
    }

    /// Spans that wait to be sent.
    pub(crate) fn waiting(&self) -> usize {
        self.recorder.as_ref().map_or(0, |recorder| recorder.waiting())
    }
}

/// The bound below which a ratio of all numbers of 63 bits lies; `None` for no ratio.
fn sampled_below(ratio: Decimal) -> Option<u64> {
    let within = (Decimal::ZERO..=Decimal::ONE).contains(&ratio);
    let below = ratio.checked_mul(Decimal::from(1_u64 << 63))?;
    within.then(|| below.trunc().try_into().ok()).flatten()
}

/// Decides by the trace's id, so that every edge decides alike.
fn is_sampled(trace_id: [u8; 16], below: u64) -> bool {
    let [.., a, b, c, d, e, f, g, h] = trace_id;
    u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1 < below
}

#[cfg(test)]
mod tests {
    use super::TraceCaller::{Connector, Operator, Partner};
    use super::*;

    fn telemetry(endpoint: Option<&str>, ratio: &str) -> Result<Telemetry, &'static str> {
        let otlp_endpoint = endpoint.map(str::to_owned);
        let sample_ratio = ratio.parse().unwrap();
        let settings = settings::Telemetry { otlp_endpoint, sample_ratio };
        Telemetry::new(&settings, &Clock::system(), &Metrics::new(1).unwrap())
    }

    const COLLECTOR: Option<&str> = Some("http://127.0.0.1:4318");
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(parent: &str) -> HeaderMap {
        HeaderMap::from_iter([("traceparent".parse().unwrap(), parent.parse().unwrap())])
    }

    #[tokio::test]
    async fn a_trace_is_sampled_by_its_parent_or_else_by_the_ratio() {
        let all = telemetry(COLLECTOR, "1.0").unwrap();
        let none = telemetry(COLLECTOR, "0.0").unwrap();
        let empty = HeaderMap::new();
        assert!(all.begin_request(&empty, Partner).unwrap().is_recorded());
        assert!(!none.begin_request(&empty, Partner).unwrap().is_recorded());
        assert!(none.begin_request(&headers(PARENT), Partner).unwrap().is_recorded());
        let unsampled = PARENT.replace("-01", "-00");
        assert!(!all.begin_request(&headers(&unsampled), Partner).unwrap().is_recorded());
        let half = telemetry(COLLECTOR, "0.5").unwrap();
        let sampled = (0..1_000).filter(|_| half.begin_work("a").unwrap().is_recorded()).count();
        assert!((350..650).contains(&sampled), "{sampled}");
    }

    #[tokio::test]
    async fn callers_without_a_credential_have_few_traces_recorded_beyond_the_ratio() {
        let none = telemetry(COLLECTOR, "0.0").unwrap();
        let limited = |telemetry: &Telemetry, parent: &str| {
            let mut span = telemetry.begin_request(&headers(parent), Partner).unwrap();
            telemetry.limit_unauthenticated(&mut span);
            span
        };
        let spans: Vec<_> = (0..2_000).map(|_| limited(&none, PARENT)).collect();
        let recorded = spans.iter().filter(|span| span.is_recorded()).count();
        assert!((100..1_000).contains(&recorded), "{recorded}");
        let discarded = spans.iter().find(|span| !span.is_recorded()).unwrap();
        assert_eq!(Some(&*discarded.context().trace_id()), PARENT.split('-').nth(1), "it goes on");
        assert!(discarded.context().traceparent().ends_with("-00"));
        assert!(none.begin_request(&headers(PARENT), Partner).unwrap().is_recorded(), "proven");
        let all = telemetry(COLLECTOR, "1.0").unwrap();
        assert!((0..2_000).all(|_| limited(&all, PARENT).is_recorded()), "as without a parent");
    }

    #[tokio::test]
    async fn without_a_collector_a_callers_trace_goes_on_and_no_other_one_begins() {
        let off = telemetry(None, "1.0").unwrap();
        assert!(off.begin_request(&HeaderMap::new(), Partner).is_none());
        assert!(off.begin_request(&headers("00-what"), Partner).is_none());
        let span = off.begin_request(&headers(PARENT), Partner).unwrap();
        assert!(!span.is_recorded());
        let (sent, went_on) = (PARENT.split('-'), span.context().traceparent());
        let same: Vec<_> = sent.zip(went_on.split('-')).map(|(a, b)| a == b).collect();
        assert_eq!(same, [true, true, false, true], "{went_on}");
        let spans = span.scope().run(async {
            let context = TraceScope::current().context().cloned();
            assert_eq!(context.as_ref(), Some(span.context()));
            Spans::begin(SpanKind::Internal, || unreachable!("nothing is recorded"))
        });
        spans.await.describe(|_| unreachable!("nothing is recorded"));
    }

    #[tokio::test]
    async fn an_operators_trace_is_linked_to_and_a_connectors_goes_on_without_its_state() {
        let none = telemetry(COLLECTOR, "0.0").unwrap();
        let mut sent = headers(PARENT);
        sent.insert("tracestate", "house=till-3".parse().unwrap());
        let theirs = none.begin_request(&sent, Partner).unwrap();
        assert_eq!(theirs.context().tracestate(), Some("house=till-3"));
        let own = none.begin_request(&sent, Operator).unwrap();
        assert!(own.is_recorded(), "as the operator says");
        assert_ne!(own.context().trace_id(), theirs.context().trace_id());
        let carried = none.begin_request(&sent, Connector).unwrap();
        assert_eq!(carried.context().trace_id(), theirs.context().trace_id());
        for span in [own, carried] {
            assert_eq!(span.context().tracestate(), None);
        }
        assert!(!none.begin_request(&HeaderMap::new(), Operator).unwrap().is_recorded());
        let off = telemetry(None, "1.0").unwrap();
        assert!(off.begin_request(&sent, Operator).is_none());
    }

    #[tokio::test]
    async fn work_that_several_requests_share_is_a_span_of_each() {
        let all = telemetry(COLLECTOR, "1.0").unwrap();
        let recorder = all.recorder.clone().unwrap();
        let requests = [(); 3].map(|()| all.begin_work("request").unwrap());
        let scopes = requests.each_ref().map(Span::scope);
        TraceScope::joined(&scopes)
            .run(async { drop(Spans::begin(SpanKind::Client, || "both".into())) })
            .await;
        assert_eq!(recorder.waiting(), 3);
        drop(requests);
        assert_eq!(recorder.waiting(), 6);
    }

    #[tokio::test]
    async fn a_full_queue_drops_and_counts() {
        let metrics = Metrics::new(1).unwrap();
        let settings = settings::Telemetry {
            otlp_endpoint: COLLECTOR.map(str::to_owned),
            ..settings::Telemetry::default()
        };
        let all = Telemetry::new(&settings, &Clock::system(), &metrics).unwrap();
        for _ in 0..5_000 {
            all.begin_work("a");
        }
        let dropped = metrics.telemetry_dropped.with_label_values(&["queue_full"]).get();
        assert_eq!((all.waiting() as u64 + dropped, dropped > 0), (5_000, true));
    }

    #[test]
    fn a_setting_that_says_nothing_is_refused() {
        for (endpoint, ratio) in [(None, "1.1"), (None, "-0.1"), (Some("a:b"), "1")] {
            assert!(telemetry(endpoint, ratio).is_err(), "{endpoint:?} {ratio}");
        }
    }
}
