//! The life of a request on the public listener, phase by phase. Read this first.
//!
//! ```text
//! connection.rs   a sound head has arrived
//! early_request_filter   deadlines for reading and writing
//! request_filter         size → address → path → route and client → body → a place → the core
//!                        └ every refusal is an error envelope; the answer is written here
//! upstream_peer …        only for the route with an upstream of its own, if one is configured
//! fail_to_proxy          nobody takes the answer, or the upstream failed
//! logging                metrics and the access log; always, once
//! ```
//!
//! Where no upstream is configured, [`direct`] goes through the same steps without Pingora's proxy,
//! and without a session of Pingora's for a request that has arrived whole or on a stream of HTTP/2.

mod account;
mod direct;
mod intake;
mod upstream;
mod work;

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::{Either, pending};
use http::{Method, StatusCode};
use pingora_core::modules::http::HttpModules;
use pingora_core::protocols::http::ServerSession;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{Error, ErrorSource, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};
use rampart_core::Core;
use rampart_core::endpoint::admission::Admission;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::Head;
use rampart_core::platform::error::Code;
use rampart_core::platform::rate_limit::{KeyedGcra, Quota};
use rampart_core::trading::limits::upstream::Upstream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::account::Seen;
use self::intake::Asked;
pub(crate) use self::upstream::Passage;
use self::work::unless_reset;
use crate::access_log::AccessLog;
use crate::config;
use crate::context::{Context, request_id};
use crate::exchange::{self, Budget, NoBody};
use crate::framing::Refused;
use crate::lifecycle::{Lifecycle, Phase};
use crate::stream::WRITE_MAX;

/// Most addresses whose rate is remembered; the least used is forgotten first.
const ADDRESSES_MAX: u64 = 100_000;
/// After this time without a request an address has its whole burst again.
const ADDRESS_IDLE: Duration = Duration::from_secs(600);
/// Time for reading and throwing away a small body that was not wanted.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// The public side: what stands between the wire and the core. Clones share everything.
#[derive(Clone)]
pub(crate) struct Gateway {
    core: Arc<Core>,
    addresses: Arc<KeyedGcra<IpAddr>>,
    address_quota: Quota,
    places: Arc<Semaphore>,
    budget: Budget,
    uploads: Budget,
    answer_max: Duration,
    lifecycle: Arc<Lifecycle>,
    log: Arc<AccessLog>,
}

impl Gateway {
    /// In front of `core`, within the bounds of `edge`.
    pub(crate) fn new(
        core: Arc<Core>,
        edge: &config::Edge,
        lifecycle: Arc<Lifecycle>,
        log: Arc<AccessLog>,
    ) -> Self {
        Self {
            addresses: Arc::new(KeyedGcra::new(ADDRESSES_MAX, ADDRESS_IDLE)),
            address_quota: core.settings.ratelimit.address,
            places: Arc::new(Semaphore::new(edge.in_flight_max)),
            budget: Budget::new(edge.body_memory_bytes / 2),
            uploads: Budget::new(edge.body_memory_bytes / 2),
            answer_max: edge.request_timeout(),
            core,
            lifecycle,
            log,
        }
    }

    /// The answer to a head that was refused before it became a request.
    pub(crate) fn refuse_head(&self, refused: Refused, peer: IpAddr) -> Reply {
        let mut context = self.begin();
        context.request_id = request_id(None, &self.core.clock);
        context.peer = Some(peer);
        let reply = self.refused(&context, refused);
        context.answered(&reply);
        let (status, bytes_out) = (reply.status.as_u16(), reply.body.len());
        self.account(&context, &Seen { status, bytes_out, ..Seen::default() });
        reply
    }

    fn begin(&self) -> Context {
        Context::new(self.core.clock.monotonic_ns(), self.lifecycle.begin())
    }

    fn refused(&self, context: &Context, refused: Refused) -> Reply {
        self.core.refuse(
            &context.request_id,
            refused.status(),
            Code::RequestMalformed,
            refused.detail(),
        )
    }

    /// Answers; `false` when an upstream is to. An `Err` is a client that does not wait for it.
    async fn respond(&self, session: &mut ServerSession, context: &mut Context) -> Result<bool> {
        let decided = self.decide(session, context).await?;
        let leaving = self.lifecycle.phase() > Phase::Serving;
        // What follows is not HTTP, or it should go to the next process.
        let closing = context.method == Method::CONNECT || leaving && !session.is_http2();
        if closing {
            session.set_keepalive(None);
        }
        let Some(reply) = decided else { return Ok(false) };
        context.answered(&reply);
        if !closing && intake::can_skip_body(session) {
            session.set_close_on_response_before_downstream_finish(false);
        }
        exchange::write(session, &context.method, reply).await.map_err(|e| e.into_down())?;
        context.ended_ns = Some(self.core.clock.monotonic_ns());
        context.place = None;
        if session.get_keepalive().is_none() {
            exchange::discard(session).await;
        }
        Ok(true)
    }

    /// Everything up to the answer; `None` when an upstream is to answer. An `Err` is a client that
    /// does not wait for it.
    async fn decide(
        &self,
        session: &mut ServerSession,
        context: &mut Context,
    ) -> Result<Option<Reply>> {
        let (head, admission) = match self.enter(Asked::of(session), context) {
            Ok(entered) => entered,
            Err(reply) => return Ok(Some(*reply)),
        };
        let upstream = self.core.upstream_of(&admission).cloned();
        if upstream.is_some() {
            // Pingora waits for a body that it has not seen itself.
            session.enable_retry_buffering();
        }
        let budgets = (&self.budget, &self.uploads);
        let (route, code) = (admission.route, admission.route.body.bound().1);
        let body = match exchange::read_entity(session, route, budgets, &self.core).await {
            Ok(body) => body,
            Err(NoBody::Gone) => return Err(gone()),
            Err(why) => {
                // Where the next request would begin is not known any more.
                session.set_keepalive(None);
                return Ok(Some(self.no_body(context, why, code)));
            }
        };
        if let Err(reply) = self.take_place(context) {
            return Ok(Some(*reply));
        }
        match upstream {
            Some(_) if session.retry_buffer_truncated() => {
                Ok(Some(self.no_body(context, NoBody::TooLarge, code)))
            }
            // Boxed: what no upstream answers does not carry its room around.
            Some(upstream) => {
                Ok(Box::pin(self.pass_on(context, upstream, (&admission, head))).await)
            }
            None => {
                let safe = admission.route.is_safe();
                let work = pin!(self.run(context, admission, head, body));
                // However it closed, nobody waits any more.
                let reset = match session.watch_h2_stream_close() {
                    Some(closed) => Either::Left(closed),
                    None => Either::Right(pending()),
                };
                unless_reset(reset, safe, work).await.map(Some).ok_or_else(gone)
            }
        }
    }

    /// Proves who calls, before `upstream` may answer; a reply when it may not.
    async fn pass_on(
        &self,
        context: &mut Context,
        upstream: Upstream,
        (admission, head): (&Admission, Head),
    ) -> Option<Reply> {
        let proving = self.core.pass_on(&upstream, admission, head);
        match timeout(self.answer_max, proving).await {
            Ok(Ok(request)) => {
                let now = self.core.clock.monotonic_ns();
                context.passage = Some(Passage::new(request, upstream, now));
                None
            }
            Ok(Err(reply)) => Some(*reply),
            Err(_) => Some(self.unavailable(context, "prove the user in time")),
        }
    }

    fn unavailable(&self, context: &Context, doing: &'static str) -> Reply {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        self.core.refuse(&context.request_id, status, Code::GeneralError, doing)
    }

    fn no_body(&self, context: &Context, why: NoBody, too_large: Code) -> Reply {
        let (status, code, detail) = match why {
            NoBody::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, too_large, "the body is too large"),
            NoBody::TooSlow => {
                let detail = "the body comes slower than 1 kB/s";
                (StatusCode::REQUEST_TIMEOUT, Code::RequestMalformed, detail)
            }
            NoBody::Upload(error) => {
                return self.core.refuse_upload(&context.request_id, error, too_large);
            }
            NoBody::NoMemory => return self.unavailable(context, "hold one more body"),
            NoBody::Malformed | NoBody::Gone => {
                let detail = "the body is not delimited as announced";
                (StatusCode::BAD_REQUEST, Code::RequestMalformed, detail)
            }
        };
        self.core.refuse(&context.request_id, status, code, detail)
    }
}

/// `exchange` times the body as a whole, and `wire` the writes of HTTP/1.
fn set_bounds(session: &mut ServerSession) {
    session.set_read_timeout(None);
    session.set_total_drain_timeout(Some(DRAIN_MAX));
    if session.is_http2() {
        session.set_write_timeout(Some(WRITE_MAX));
    }
}

fn passage(context: &mut Context) -> Result<&mut Passage> {
    let lost = || Error::explain(ErrorType::InternalError, "the route has no upstream");
    context.passage.as_mut().ok_or_else(lost)
}

fn gone() -> Box<Error> {
    Error::explain(ErrorType::ConnectionClosed, "the client left").into_down()
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = Context;

    fn new_ctx(&self) -> Context {
        self.begin()
    }

    /// None: the default one would compress, a box per request.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn early_request_filter(&self, session: &mut Session, _: &mut Context) -> Result<()> {
        set_bounds(session.as_downstream_mut());
        Ok(())
    }

    async fn request_filter(&self, session: &mut Session, context: &mut Context) -> Result<bool> {
        self.respond(session.as_downstream_mut(), context).await
    }

    async fn upstream_peer(&self, _: &mut Session, context: &mut Context) -> Result<Box<HttpPeer>> {
        passage(context)?.peer().await
    }

    /// Drops the body, if there is one: it has no meaning (RFC 9110, section 9.3.1).
    async fn request_body_filter(
        &self,
        _: &mut Session,
        body: &mut Option<Bytes>,
        _: bool,
        _: &mut Context,
    ) -> Result<()> {
        *body = None;
        Ok(())
    }

    async fn upstream_request_filter(
        &self,
        _: &mut Session,
        request: &mut RequestHeader,
        context: &mut Context,
    ) -> Result<()> {
        passage(context)?.request(request)
    }

    async fn response_filter(
        &self,
        _: &mut Session,
        answer: &mut ResponseHeader,
        context: &mut Context,
    ) -> Result<()> {
        passage(context)?.answer(answer)
    }

    fn response_body_filter(
        &self,
        _: &mut Session,
        body: &mut Option<Bytes>,
        _: bool,
        context: &mut Context,
    ) -> Result<Option<Duration>> {
        passage(context)?.body(body.as_ref(), self.core.clock.monotonic_ns()).map(|()| None)
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        context: &mut Context,
    ) -> FailToProxy {
        let lost = FailToProxy { error_code: 0, can_reuse_downstream: false };
        if *error.esource() == ErrorSource::Downstream || session.response_written().is_some() {
            return lost;
        }
        tracing::error!(request_id = context.request_id, %error, "a request could not be passed on");
        let mut reply = self.unavailable(context, "reach the upstream");
        if let Some(passage) = &context.passage {
            reply.headers.extend(passage.answer_headers().clone());
        }
        context.answered(&reply);
        let (session, error_code) = (session.as_downstream_mut(), reply.status.as_u16());
        session.set_keepalive(None);
        match exchange::write(session, &context.method, reply).await {
            Ok(()) => FailToProxy { error_code, ..lost },
            Err(_) => lost,
        }
    }

    /// [`Self::fail_to_proxy`] has logged what is worth a line.
    fn suppress_error_log(&self, _: &Session, _: &Context, _: &Error) -> bool {
        true
    }

    async fn logging(&self, session: &mut Session, _: Option<&Error>, context: &mut Context) {
        self.close(session.as_downstream(), context);
    }
}
