//! The queue of ended spans. Nothing waits for it: when it is full, spans are dropped and counted.

use opentelemetry_proto::tonic::trace::v1::Span;
use prometheus::IntCounter;
use tokio::sync::mpsc;

use crate::platform::clock::Clock;

/// Most spans that wait to be sent.
const SPANS_MAX: usize = 4_096;

/// The end of the queue that spans are put in.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) clock: Clock,
    queue: mpsc::Sender<Span>,
    dropped: IntCounter,
}

impl Recorder {
    /// A queue and its other end.
    pub(super) fn new(clock: Clock, dropped: IntCounter) -> (Self, mpsc::Receiver<Span>) {
        let (queue, spans) = mpsc::channel(SPANS_MAX);
        (Self { clock, queue, dropped }, spans)
    }

    /// Queues a span, or counts it as dropped.
    pub(super) fn record(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.dropped.inc();
        }
    }

    /// Spans that wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Nanoseconds since 1970.
    pub(super) fn unix_ns(&self) -> u64 {
        let now = self.clock.now().timestamp_nanos_opt();
        now.and_then(|now| now.try_into().ok()).unwrap_or_default()
    }
}
