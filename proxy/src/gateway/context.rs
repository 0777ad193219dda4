//! The context of a request: it goes through Pingora's phases, to the access log and the metrics.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rampart_core::endpoint::admission::Labels;
use rampart_core::platform::error::Code;
use rampart_core::platform::metrics::RequestInFlight;
use rampart_core::platform::telemetry::{Span, TraceScope};

use super::body::Share;
use super::concurrency::Permit;
use super::upstream::UpstreamExchange;
use crate::server::Busy;

/// Label of requests that reached no route of the table.
const NO_ROUTE: &str = "none";

/// One request.
#[derive(Debug)]
pub(crate) struct Context {
    /// The caller's or a new one; empty until the head has been looked at.
    pub(super) request_id: String,
    /// The client's address, which is not the connection's behind a balancer that tells it.
    pub(super) client_address: IpAddr,
    /// Subject of the client's TLS certificate, if it has one.
    pub(super) client_certificate: Option<Arc<str>>,
    /// Route and partner for metrics, log and trace; without a partner as long as nobody has proven to
    /// be one.
    pub(super) labels: Labels,
    /// Codes of the error envelope.
    pub(super) codes: Vec<Code>,
    /// True for an error of the server that the sender has caused.
    pub(super) by_sender: bool,
    /// Nanoseconds of the monotonic clock when the head was complete.
    pub(super) began_ns: u64,
    /// Nanoseconds in which the body was received: the client's time, not the edge's.
    pub(super) body_ns: u64,
    /// Nanoseconds of the monotonic clock when the answer was made, before its client takes it.
    pub(super) answered_ns: Option<u64>,
    /// The same when the answer was written, before what is left of the body is thrown away.
    pub(super) ended_ns: Option<u64>,
    /// One of those that may be in the core, given back as soon as the answer is made.
    pub(super) permit: Option<Permit>,
    /// One of those that may have a connection to a backend. Pingora gives one of HTTP/1 back only when
    /// the client has taken the answer.
    pub(super) upstream_permit: Option<Permit>,
    /// The memory that the answer takes until the client has it.
    pub(super) answer_share: Option<Share>,
    /// The request in a trace, if it is in one.
    pub(super) span: Option<Span>,
    /// The request on its way to a backend, if it goes to one.
    pub(super) upstream: Option<UpstreamExchange>,
    /// Counts the request, and its connection as busy.
    pub(super) in_flight: Option<RequestInFlight>,
    /// Keeps the process from going before the answer is written.
    _busy: Busy,
}

impl Context {
    /// A request whose head is complete.
    pub(super) fn new(began_ns: u64, busy: Busy) -> Self {
        Self {
            request_id: String::new(),
            client_address: Ipv4Addr::UNSPECIFIED.into(),
            client_certificate: None,
            labels: Labels { route: NO_ROUTE, partner: Arc::default(), partner_class: "none" },
            codes: Vec::new(),
            by_sender: false,
            began_ns,
            body_ns: 0,
            answered_ns: None,
            ended_ns: None,
            permit: None,
            upstream_permit: None,
            answer_share: None,
            span: None,
            upstream: None,
            in_flight: None,
            _busy: busy,
        }
    }

    /// Gives the permit back: the answer is made, however long the client takes to read it.
    pub(super) fn set_answered(&mut self, now_ns: u64) {
        self.permit = None;
        self.answered_ns = Some(now_ns);
    }

    /// The span that the request's work belongs to.
    pub(super) fn scope(&self) -> TraceScope {
        self.span.as_ref().map(Span::scope).unwrap_or_default()
    }

    /// Id of its trace, if it is in one, for a log line.
    pub(super) fn trace_id(&self) -> Option<String> {
        self.span.as_ref().map(|span| span.context().trace_id())
    }
}
