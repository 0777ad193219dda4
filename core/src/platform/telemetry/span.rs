//! Spans: the parts of a trace, and the ones that a task works for.

use std::borrow::Cow;
use std::sync::Arc;

use opentelemetry_proto::tonic::common::v1::any_value::Value as OtlpValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::{self as otlp, Status, status::StatusCode};

use super::recorder::Recorder;
use super::trace_context::{StoredTrace, TraceContext};
use crate::platform::clock::Clock;

/// Longest text of an attribute, in bytes; the rest is cut off.
const TEXT_BYTES_MAX: usize = 256;

tokio::task_local! {
    static CURRENT: TraceScope;
}

/// The side of a call that a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work of this edge.
    Internal,
    /// A request to this edge.
    Server,
    /// A request of this edge.
    Client,
}

impl SpanKind {
    const fn number(self) -> i32 {
        (match self {
            Self::Internal => otlp::span::SpanKind::Internal,
            Self::Server => otlp::span::SpanKind::Server,
            Self::Client => otlp::span::SpanKind::Client,
        }) as i32
    }
}

/// A span, which ends when it is dropped. One that is not recorded still has its context, which is
/// passed on.
#[derive(Debug)]
pub struct Span {
    context: TraceContext,
    recording: Option<Recording>,
}

/// The record of a span.
#[derive(Debug)]
struct Recording {
    recorder: Arc<Recorder>,
    span: Box<otlp::Span>,
    began_ns: u64,
}

impl Span {
    /// The span of `context`, under the one with the id `parent`, that begins now.
    pub(super) fn begin(
        context: TraceContext,
        parent: Option<[u8; 8]>,
        recorder: Option<&Arc<Recorder>>,
        kind: SpanKind,
        name: Cow<'static, str>,
    ) -> Self {
        let recording = recorder.filter(|_| context.is_sampled).map(|recorder| Recording {
            recorder: Arc::clone(recorder),
            began_ns: recorder.clock.monotonic_ns(),
            span: Box::new(otlp::Span {
                trace_id: context.trace_id.to_vec(),
                span_id: context.span_id.to_vec(),
                trace_state: context.tracestate().unwrap_or_default().to_owned(),
                parent_span_id: parent.map(|id| id.to_vec()).unwrap_or_default(),
                flags: 1,
                name: name.into_owned(),
                kind: kind.number(),
                start_time_unix_nano: recorder.unix_ns(),
                ..otlp::Span::default()
            }),
        });
        Self { context, recording }
    }

    /// Its ids.
    pub fn context(&self) -> &TraceContext {
        &self.context
    }

    /// True if it is recorded: only then attributes are worth their making.
    pub fn is_recorded(&self) -> bool {
        self.recording.is_some()
    }

    /// True if it is recorded because of the caller whose trace goes on.
    pub(super) fn is_recorded_for_caller(&self) -> bool {
        self.recording.as_ref().is_some_and(|recording| !recording.span.parent_span_id.is_empty())
    }

    /// Records neither it nor what will be below it.
    pub(super) fn discard(&mut self) {
        self.recording = None;
        self.context.is_sampled = false;
    }

    /// Names it anew.
    pub fn rename(&mut self, name: impl FnOnce() -> String) {
        if let Some(recording) = &mut self.recording {
            recording.span.name = name();
        }
    }

    /// Adds a text, cut off after [`TEXT_BYTES_MAX`] bytes. Never a secret or personal data.
    pub fn set(&mut self, key: &'static str, value: &str) {
        let end = value.floor_char_boundary(TEXT_BYTES_MAX);
        let value = value.get(..end).unwrap_or_default();
        self.attribute(key, || OtlpValue::StringValue(value.to_owned()));
    }

    /// Adds a number.
    pub fn set_number(&mut self, key: &'static str, value: impl TryInto<i64>) {
        self.attribute(key, || OtlpValue::IntValue(value.try_into().unwrap_or(i64::MAX)));
    }

    /// Names the span of another trace that it follows from.
    pub(super) fn link(&mut self, cause: &TraceContext) {
        if let Some(recording) = &mut self.recording {
            recording.span.links.push(otlp::span::Link {
                trace_id: cause.trace_id.to_vec(),
                span_id: cause.span_id.to_vec(),
                trace_state: cause.tracestate().unwrap_or_default().to_owned(),
                ..otlp::span::Link::default()
            });
        }
    }

    /// Marks it as failed, for a reason without internals.
    pub fn fail(&mut self, reason: &'static str) {
        if let Some(recording) = &mut self.recording {
            let code = StatusCode::Error as i32;
            recording.span.status = Some(Status { message: reason.to_owned(), code });
        }
    }

    /// The spans of the work that it stands for are below it.
    pub fn scope(&self) -> TraceScope {
        let recorder = self.recording.as_ref().map(|recording| Arc::clone(&recording.recorder));
        TraceScope(Some([Parent { context: self.context.clone(), recorder }].into()))
    }

    fn attribute(&mut self, key: &'static str, value: impl FnOnce() -> OtlpValue) {
        let Some(recording) = &mut self.recording else { return };
        recording.span.attributes.push(KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(value()) }),
            ..KeyValue::default()
        });
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(Recording { recorder, mut span, began_ns }) = self.recording.take() {
            let took = recorder.clock.monotonic_ns().saturating_sub(began_ns);
            span.end_time_unix_nano = span.start_time_unix_nano.saturating_add(took);
            recorder.record(*span);
        }
    }
}

/// The spans that a task works for: none, that of its request, or those of all requests that share
/// a batch. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct TraceScope(Option<Arc<[Parent]>>);

#[derive(Clone, Debug)]
struct Parent {
    context: TraceContext,
    recorder: Option<Arc<Recorder>>,
}

impl TraceScope {
    /// That of this task.
    pub fn current() -> Self {
        CURRENT.try_with(Self::clone).unwrap_or_default()
    }

    /// All recorded spans of several, for work that they share.
    pub(crate) fn joined<'a>(scopes: impl IntoIterator<Item = &'a Self>) -> Self {
        let parents = scopes.into_iter().filter_map(|scope| scope.0.as_deref()).flatten();
        let recorded: Vec<_> = parents.filter(|one| one.recorder.is_some()).cloned().collect();
        Self((!recorded.is_empty()).then(|| recorded.into()))
    }

    /// Runs `work` for these spans.
    pub fn run<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, work)
    }

    /// The context of the first span.
    pub(super) fn context(&self) -> Option<&TraceContext> {
        self.0.as_deref()?.first().map(|parent| &parent.context)
    }

    /// The id of the first span's trace, for a log line.
    pub fn trace_id(&self) -> Option<String> {
        self.context().map(TraceContext::trace_id)
    }

    /// The first span, for a row.
    pub(crate) fn stored(&self) -> StoredTrace {
        self.context().map(StoredTrace::from).unwrap_or_default()
    }

    /// A span below the first one, whose context goes along with a request of ours.
    pub fn outgoing(&self, clock: &Clock, name: &'static str) -> Option<Span> {
        let parent = self.0.as_deref()?.first()?;
        parent.child(clock, SpanKind::Client, name.into())
    }
}

impl Parent {
    fn child(&self, clock: &Clock, kind: SpanKind, name: Cow<'static, str>) -> Option<Span> {
        let context = TraceContext { span_id: span_id(clock)?, ..self.context.clone() };
        let recorder = self.recorder.as_ref();
        Some(Span::begin(context, Some(self.context.span_id), recorder, kind, name))
    }
}

/// A new id. Without entropy there is no span.
pub(super) fn span_id(clock: &Clock) -> Option<[u8; 8]> {
    clock.nonce().ok()
}

/// One piece of work, as a span below each of those that this task works for; nothing when they are
/// not recorded.
#[derive(Debug)]
pub(crate) struct Spans(Vec<Span>);

impl Spans {
    /// Begins them.
    pub(crate) fn begin(kind: SpanKind, name: impl FnOnce() -> Cow<'static, str>) -> Self {
        let begun = CURRENT.try_with(|scope| {
            let parents = scope.0.as_deref()?;
            let recorded = |parent: &&Parent| parent.recorder.is_some();
            parents.iter().find(recorded)?;
            let name = name();
            let spans = parents.iter().filter(recorded).filter_map(|parent| {
                let recorder = parent.recorder.as_ref()?;
                parent.child(&recorder.clock, kind, name.clone())
            });
            Some(spans.collect())
        });
        Self(begun.ok().flatten().unwrap_or_default())
    }

    /// Lets `describe` add to each of them; it is not called when there is none.
    pub(crate) fn describe(&mut self, describe: impl FnMut(&mut Span)) {
        self.0.iter_mut().for_each(describe);
    }
}
