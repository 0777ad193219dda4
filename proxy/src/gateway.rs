//! The life of a request on any listener, phase by phase. Read this first.
//!
//! ```text
//! server/           a head has arrived, and is sound: request_reader.rs, http2/session.rs
//! request_filter    size → address → path → route and client → body → a permit → the core
//!                   └ every refusal is an error envelope, to a browser a page; it is written here
//! upstream_peer …   only for the route with an upstream of its own, if one is configured
//! fail_to_proxy     nobody takes the answer, or the upstream failed
//! logging           metrics and the access log; always, once
//! ```

mod access_log;
mod admit;
mod body;
mod concurrency;
mod context;
mod observe;
mod operations;
mod path;
mod private_listener;
mod respond;
mod streams;
mod upstream;

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use pingora_core::modules::http::HttpModules;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{Error, ErrorSource, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};
use rampart_core::Core;
use rampart_core::http::request::BODY_BYTES_MAX;
use rampart_core::platform::lookups::Lookups;
use rampart_core::platform::rate_limit::KeyedGcra;
use rampart_core::platform::shared_rates::SharedGcra;

pub(crate) use self::access_log::AccessLog;
use self::body::{BodyMemory, Sender};
use self::concurrency::InFlight;
use self::context::Context;
pub(crate) use self::private_listener::{ANSWER_MAX as PRIVATE_ANSWER_MAX, PrivateListener};
pub(crate) use self::upstream::ADDRESSES_MAX as UPSTREAM_ADDRESSES_MAX;
use self::upstream::{PreferredAddress, UpstreamExchange};
use crate::config;
use crate::server::{Certificates, ClientAddresses, ConnectionInfo, Lifecycle};

/// Most addresses whose rate is remembered; the least used is forgotten first.
const ADDRESSES_MAX: u64 = 100_000;
/// Least time for which an address without a request is remembered.
const ADDRESS_IDLE_MIN: Duration = Duration::from_secs(600);
/// Time for reading and throwing away a small body that was not wanted.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// Most bytes of bodies on each private listener at once.
const PRIVATE_BODY_MEMORY: usize = 64 * 1024 * 1024;
/// The same of callers who are not proven, whose sign-in forms are small.
const PRIVATE_STRANGERS_MEMORY: usize = 8 * 1024 * 1024;

/// A listener's side of the core: what stands between the wire and the endpoints.
pub(crate) struct Gateway {
    core: Arc<Core>,
    listener: ListenerKind,
    bodies: BodyMemory,
    /// For bodies of callers who are not proven, so that they take no memory from others.
    strangers: BodyMemory,
    lifecycle: Arc<Lifecycle>,
    preferred_address: PreferredAddress,
    /// Those of the upstream's name.
    lookups: Lookups,
    /// `Strict-Transport-Security` of pages, and of everything for operators.
    hsts: Option<HeaderValue>,
    /// Certificates of all listeners, the public one's first; on the operations listener alone.
    certificates: Vec<Arc<Certificates>>,
    /// Held while metrics are shown: some gauges are emptied and set anew, and another scrape would
    /// miss them.
    scrape: Mutex<()>,
}

/// The kind of a listener, with what it alone needs.
enum ListenerKind {
    Public(Box<PublicListener>),
    Private(PrivateListener),
}

/// The listener for partners and their users.
struct PublicListener {
    clients: ClientAddresses,
    addresses: KeyedGcra<IpAddr, SharedGcra>,
    in_flight: InFlight,
    /// Requests at the upstream, as many as in flight.
    at_upstream: InFlight,
    uploads: BodyMemory,
    /// For large answers that were not taken.
    answers: BodyMemory,
    answer_max: Duration,
    connection_age_max: Duration,
    log: Option<Arc<AccessLog>>,
}

impl Gateway {
    /// The public side of `core`, within the bounds of `edge`.
    pub(crate) fn public(
        core: Arc<Core>,
        edge: &config::Edge,
        lifecycle: Arc<Lifecycle>,
        log: Option<Arc<AccessLog>>,
    ) -> Self {
        // Half of the memory is for large uploads.
        let memory = edge.body_memory_bytes / 2;
        let idle = core.settings.ratelimit.address.bucket_idle(ADDRESS_IDLE_MIN);
        let listener = ListenerKind::Public(Box::new(PublicListener {
            clients: ClientAddresses::new(edge),
            addresses: KeyedGcra::new(ADDRESSES_MAX, idle),
            in_flight: InFlight::new(edge),
            at_upstream: InFlight::new(edge),
            uploads: BodyMemory::of_uploads(memory),
            answers: BodyMemory::of_answers(memory),
            answer_max: Duration::from_secs(edge.request_timeout_seconds),
            connection_age_max: Duration::from_secs(edge.connection_max_age_seconds),
            log,
        }));
        // One body always fits.
        let ordinary = |bytes: usize, bytes_per_sender: usize| {
            BodyMemory::new(bytes.max(BODY_BYTES_MAX), bytes_per_sender.max(BODY_BYTES_MAX))
        };
        let bodies = ordinary(memory - memory / 4, memory / 4);
        let strangers = ordinary(memory / 4, memory / 16);
        Self::new(core, listener, lifecycle, bodies, strangers).with_hsts(edge.hsts_seconds)
    }

    /// The side of `core` behind a private `listener`.
    pub(crate) fn private(
        listener: PrivateListener,
        core: Arc<Core>,
        lifecycle: Arc<Lifecycle>,
    ) -> Self {
        let listener = ListenerKind::Private(listener);
        let bodies = BodyMemory::new(PRIVATE_BODY_MEMORY, PRIVATE_BODY_MEMORY / 4);
        let strangers = BodyMemory::new(PRIVATE_STRANGERS_MEMORY, PRIVATE_STRANGERS_MEMORY / 8);
        Self::new(core, listener, lifecycle, bodies, strangers)
    }

    fn new(
        core: Arc<Core>,
        listener: ListenerKind,
        lifecycle: Arc<Lifecycle>,
        bodies: BodyMemory,
        strangers: BodyMemory,
    ) -> Self {
        Self {
            core,
            listener,
            bodies,
            strangers,
            lifecycle,
            preferred_address: PreferredAddress::default(),
            lookups: Lookups::default(),
            hsts: None,
            certificates: Vec::new(),
            scrape: Mutex::default(),
        }
    }

    /// Tells browsers to use HTTPS alone for this time.
    pub(crate) fn with_hsts(self, seconds: u64) -> Self {
        Self { hsts: respond::hsts(seconds), ..self }
    }

    /// Shows these certificates, of all listeners and the public one's first.
    pub(crate) fn with_certificates(self, certificates: Vec<Arc<Certificates>>) -> Self {
        Self { certificates, ..self }
    }

    /// True for a connection of a balancer, which many clients share.
    fn is_shared(&self, connection: &ConnectionInfo) -> bool {
        self.public_listener().is_some_and(|public| public.clients.is_shared(connection.peer))
    }

    /// Its listener is for partners and their users.
    pub(crate) fn is_public(&self) -> bool {
        self.public_listener().is_some()
    }

    fn public_listener(&self) -> Option<&PublicListener> {
        match &self.listener {
            ListenerKind::Public(public) => Some(public),
            ListenerKind::Private(_) => None,
        }
    }
}

fn upstream(context: &mut Context) -> Result<&mut UpstreamExchange> {
    let lost = || Error::explain(ErrorType::InternalError, "the route has no upstream");
    context.upstream.as_mut().ok_or_else(lost)
}

#[async_trait]
impl ProxyHttp for Gateway {
    /// On the heap: the future of a request in Pingora has room for it five times.
    type CTX = Box<Context>;

    fn new_ctx(&self) -> Box<Context> {
        Box::new(Context::new(self.core.clock.monotonic_ns(), self.lifecycle.begin()))
    }

    /// None: the default one would compress, a box per request.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn request_filter(
        &self,
        session: &mut Session,
        context: &mut Box<Context>,
    ) -> Result<bool> {
        // `body` times the body as a whole, and `server` the writes.
        session.set_read_timeout(None);
        session.set_total_drain_timeout(Some(DRAIN_MAX));
        // An upstream's interim answers, which HTTP/1.0 does not know (RFC 9110, section 15.2).
        session.set_ignore_info_resp(true);
        self.respond(session.as_downstream_mut(), context).await
    }

    async fn upstream_peer(
        &self,
        _: &mut Session,
        context: &mut Box<Context>,
    ) -> Result<Box<HttpPeer>> {
        let now = self.core.clock.monotonic_ns();
        upstream(context)?.peer(&self.lookups, &self.preferred_address, now).await
    }

    /// Has the backend's next address tried, if there is one: nothing has been sent yet.
    fn fail_to_connect(
        &self,
        _: &mut Session,
        _: &HttpPeer,
        context: &mut Box<Context>,
        mut error: Box<Error>,
    ) -> Box<Error> {
        let (preferred, now) = (&self.preferred_address, self.core.clock.monotonic_ns());
        if upstream(context).is_ok_and(|upstream| upstream.next_address(preferred, now)) {
            tracing::warn!(
                request_id = context.request_id,
                trace_id = context.trace_id(),
                %error,
                "an address of the upstream takes no connection: trying the next one"
            );
            error.set_retry(true);
        }
        error
    }

    /// Drops the body, if there is one: it has no meaning (RFC 9110, section 9.3.1).
    async fn request_body_filter(
        &self,
        _: &mut Session,
        body: &mut Option<Bytes>,
        _: bool,
        _: &mut Box<Context>,
    ) -> Result<()> {
        *body = None;
        Ok(())
    }

    async fn upstream_request_filter(
        &self,
        _: &mut Session,
        request: &mut RequestHeader,
        context: &mut Box<Context>,
    ) -> Result<()> {
        upstream(context)?.request(request)
    }

    async fn response_filter(
        &self,
        _: &mut Session,
        answer: &mut ResponseHeader,
        context: &mut Box<Context>,
    ) -> Result<()> {
        upstream(context)?.answer(answer, self.core.clock.monotonic_ns())
    }

    /// Holds the body back until it has come whole: however slowly the client takes it, the backend's
    /// part is over then. Where there is no memory for it, it goes on as it comes.
    fn response_body_filter(
        &self,
        _: &mut Session,
        body: &mut Option<Bytes>,
        end: bool,
        context: &mut Box<Context>,
    ) -> Result<Option<Duration>> {
        let now = self.core.clock.monotonic_ns();
        let sender = Sender::of(context.client_address, &context.labels.partner);
        // That of uploads, so that ordinary bodies lose none to answers of the upstream.
        let memory = self.public_listener().map_or(&self.bodies, |public| &public.uploads);
        let part = body.take().unwrap_or_default();
        let is_held = upstream(context)?.hold(&part, memory.of(&sender), now)?;
        if end {
            context.set_answered(now);
        }
        if end || !is_held {
            // The core has done its part, however slowly the client takes this one.
            context.permit = None;
            *body = Some(upstream(context)?.kept_body());
        }
        Ok(None)
    }

    /// Ends the body where trailers do, and leaves them out (RFC 9110, section 6.5.1).
    async fn response_trailer_filter(
        &self,
        _: &mut Session,
        _: &mut HeaderMap,
        context: &mut Box<Context>,
    ) -> Result<Option<Bytes>> {
        context.set_answered(self.core.clock.monotonic_ns());
        upstream(context).map(|upstream| Some(upstream.kept_body()))
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        context: &mut Box<Context>,
    ) -> FailToProxy {
        let lost = FailToProxy { error_code: 0, can_reuse_downstream: false };
        let answered = respond::answered(session.as_downstream()).is_some();
        if *error.esource() == ErrorSource::Downstream || answered {
            return lost;
        }
        let (request_id, trace_id) = (&*context.request_id, context.trace_id());
        tracing::error!(request_id, trace_id, %error, "a request could not be passed on");
        let mut reply = self.unavailable(context, "reach the upstream");
        if let Some(upstream) = &context.upstream {
            reply.headers.extend(upstream.answer_headers().clone());
        }
        let (session, error_code) = (session.as_downstream_mut(), reply.status.as_u16());
        session.set_keepalive(None);
        context.set_answered(self.core.clock.monotonic_ns());
        match respond::write(session, context, reply).await {
            Ok(()) => FailToProxy { error_code, ..lost },
            Err(_) => lost,
        }
    }

    /// [`Self::fail_to_proxy`] has logged what is worth a line.
    fn suppress_error_log(&self, _: &Session, _: &Self::CTX, _: &Error) -> bool {
        true
    }

    async fn logging(&self, session: &mut Session, _: Option<&Error>, context: &mut Box<Context>) {
        context.permit = None;
        let session = session.as_downstream();
        let is_abandoned = session.is_custom() && session.response_written().is_none();
        if is_abandoned
            && let Some(connection) = ConnectionInfo::for_session(session)
            && !self.is_shared(connection)
        {
            connection.abandoned(self.core.clock.monotonic_ns());
        }
        self.observe(session, context);
        self.end_span(session, context);
        // However many requests lie ready, other connections have their turn.
        tokio::task::consume_budget().await;
    }
}
