//! The answer to a request: decided here, written here, on every listener.

use std::pin::pin;

use http::header::STRICT_TRANSPORT_SECURITY;
use http::{HeaderValue, Method, Response, StatusCode, header};
use pingora_core::protocols::http::ServerSession;
use pingora_error::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use rampart_core::endpoint::admission::Admission;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::{Head, request_id};
use rampart_core::platform::error::Code;
use rampart_core::platform::telemetry::TraceCaller;
use rampart_core::trading::limits::upstream::Upstream;
use tokio::time::timeout;

use super::body::{BodyError, Sender, content_length, discard, read_entity};
use super::concurrency::{WorkFailure, contain};
use super::context::Context;
use super::private_listener::{PrivateListener, error};
use super::streams::StreamedBody;
use super::upstream::UpstreamExchange;
use super::{Gateway, ListenerKind, PublicListener};
use crate::server::{ConnectionInfo, HeadError, Phase};

/// Largest body that is read and thrown away to keep the connection after a refusal.
const SKIPPED_BYTES_MAX: u64 = 64 * 1024;

impl Gateway {
    /// Answers; `false` when an upstream is to.
    ///
    /// # Errors
    /// When the client does not wait for the answer.
    pub(super) async fn respond(
        &self,
        session: &mut ServerSession,
        context: &mut Context,
    ) -> Result<bool> {
        let decided = self.decide(session, context).await?;
        // What follows CONNECT is not HTTP; what follows a stop should go to the next process.
        let closing = session.req_header().method == Method::CONNECT
            || self.lifecycle.phase() >= self.closes_from()
            || self.is_old(session, context);
        if closing {
            session.set_keepalive(None);
        }
        let Some(mut reply) = decided else { return Ok(false) };
        context.set_answered(self.core.clock.monotonic_ns());
        if self.is_public() {
            let request = session.req_header();
            let (path, headers) = (request.uri.path(), &request.headers);
            reply = self.core.for_reader(path, headers, &context.request_id, reply);
        } else {
            reply.set("x-request-id", &context.request_id);
            reply.set("cache-control", "no-store");
        }
        if !self.is_public() || is_page(&reply) {
            let hsts = self.hsts.clone().map(|value| (STRICT_TRANSPORT_SECURITY, value));
            reply.headers.extend(hsts);
        }
        if !closing && can_skip_body(session) {
            session.set_close_on_response_before_downstream_finish(false);
        }
        let file = reply.file.take().map(StreamedBody::File);
        let written = match reply.events.take().map(StreamedBody::Events).or(file) {
            Some(parts) => Box::pin(self.write_parts(session, context, reply, parts)).await,
            None => write(session, context, reply).await,
        };
        written.map_err(|e| e.into_down())?;
        context.ended_ns.get_or_insert_with(|| self.core.clock.monotonic_ns());
        if session.get_keepalive().is_none() && !session.is_body_done() {
            discard(session).await;
        }
        Ok(true)
    }

    /// The connection is to be replaced by a new one; in HTTP/2 it is told so on its own.
    fn is_old(&self, session: &ServerSession, context: &Context) -> bool {
        let Some(public) = self.public_listener() else { return false };
        let (age, at) = (public.connection_age_max, context.began_ns);
        ConnectionInfo::for_session(session).is_some_and(|connection| connection.is_older(age, at))
    }

    /// The phase from which on each answer closes its connection. Who watches a process that stops
    /// may do so to the end.
    fn closes_from(&self) -> Phase {
        if self.is_public() { Phase::Draining } else { Phase::Stopping }
    }

    /// The callers of this listener; `None` where no request is traced.
    fn trace_caller(&self) -> Option<TraceCaller> {
        match &self.listener {
            ListenerKind::Public(_) => Some(TraceCaller::Partner),
            ListenerKind::Private(PrivateListener::Connectors) => Some(TraceCaller::Connector),
            ListenerKind::Private(PrivateListener::Operators) => Some(TraceCaller::Operator),
            ListenerKind::Private(PrivateListener::Operations) => None,
        }
    }

    /// Everything up to the answer; `None` when an upstream is to answer.
    async fn decide(
        &self,
        session: &mut ServerSession,
        context: &mut Context,
    ) -> Result<Option<Reply>> {
        let connection = ConnectionInfo::for_session(session).cloned().ok_or_else(client_gone)?;
        context.client_address = connection.peer;
        context.client_certificate.clone_from(&connection.client_certificate);
        context.in_flight = connection.begin_request();
        let request = session.req_header();
        let sent = request.headers.get("x-request-id").map(|value| value.as_bytes());
        let sent = sent.or_else(|| connection.refused_request_id.get().map(|id| &**id));
        context.request_id = request_id(sent, &self.core.clock);
        if let Some(caller) = self.trace_caller() {
            context.span = self.core.telemetry.begin_request(&request.headers, caller);
        }
        // In HTTP/2 a head stands for itself, and not for its connection.
        let refused = request.extensions.get().or_else(|| connection.head_error.get());
        if let Some(refused) = refused {
            self.limit_trace(context);
            return Ok(Some(self.refuse_head(context, *refused)));
        }
        match &self.listener {
            ListenerKind::Public(public) => {
                self.decide_public(public, session, &connection, context).await
            }
            ListenerKind::Private(listener) => {
                // Boxed: partners' requests do not carry the room of operators' calls around.
                Ok(Some(Box::pin(self.decide_private(*listener, session, context)).await))
            }
        }
    }

    /// Limits the rate at which callers without a partner's credential have their traces recorded.
    fn limit_trace(&self, context: &mut Context) {
        if let Some(span) = &mut context.span
            && context.labels.partner.is_empty()
        {
            self.core.telemetry.limit_unauthenticated(span);
        }
    }

    async fn decide_public(
        &self,
        public: &PublicListener,
        session: &mut ServerSession,
        connection: &ConnectionInfo,
        context: &mut Context,
    ) -> Result<Option<Reply>> {
        let request = session.req_header();
        let admitted = self.admit(public, request, connection, context);
        self.limit_trace(context);
        let (head, mut admission) = match admitted {
            Ok(admitted) => admitted,
            Err(reply) => return Ok(Some(*reply)),
        };
        let upstream = self.core.upstream_of(&admission).cloned();
        if upstream.is_some() {
            // Pingora waits for a body that it has not seen itself.
            session.enable_retry_buffering();
        }
        let sender = Sender::of(context.client_address, &context.labels.partner);
        let is_stranger = context.labels.partner.is_empty();
        let bodies = if is_stranger { &self.strangers } else { &self.bodies };
        let (budget, uploads) = (bodies.of(&sender), public.uploads.of(&sender));
        let (route, code) = (admission.route, admission.route.body.bound().1);
        let refused = |mut reply: Reply| {
            admission.write_rates(&mut reply);
            Ok(Some(reply))
        };
        let body_began = self.core.clock.monotonic_ns();
        let received = read_entity(session, route, budget, uploads, &self.core).await;
        context.body_ns = self.core.clock.monotonic_ns().saturating_sub(body_began);
        let received = match received {
            Ok(received) => received,
            Err(BodyError::Gone) => return Err(client_gone()),
            Err(why) => {
                // Where the next request would begin is not known any more.
                session.set_keepalive(None);
                return refused(self.refuse_body(context, why, code));
            }
        };
        match self.acquire_permit(&public.in_flight, context) {
            Ok(permit) => context.permit = Some(permit),
            Err(reply) => return refused(*reply),
        }
        match upstream {
            Some(_) if session.retry_buffer_truncated() => {
                refused(self.refuse_body(context, BodyError::TooLarge, code))
            }
            // Boxed: what no upstream answers does not carry its room around.
            Some(upstream) => {
                let passing_on = self.pass_on(public, context, upstream, &admission, head);
                Box::pin(passing_on).await.map_or(Ok(None), refused)
            }
            None => {
                let (body, _share) = received;
                // A client that resets its stream stops what only reads; what writes goes on. HTTP/1
                // has no reset; there the client is not looked at before the answer.
                let watched = route.is_safe() && session.is_custom();
                let done = {
                    // Pinned here: what wraps it takes a reference, and is not copied with it.
                    let answering = pin!(self.core.answer(&mut admission, head, body));
                    let work = pin!(contain(context.scope().run(answering), public.answer_max));
                    tokio::select! {
                        biased;
                        done = work => done,
                        _ = session.read_body_or_idle(true), if watched => {
                            return Err(client_gone());
                        }
                    }
                };
                let mut reply = done.unwrap_or_else(|failure| self.failed(context, failure));
                let answers = public.answers.of(&sender);
                let covered = answers.cover_answer(&mut context.answer_share, &reply.body);
                // The answer to what has written is never lost; a refusal has changed nothing.
                let can_be_lost = route.is_safe() || reply.status.is_client_error();
                if can_be_lost && let Err(why) = covered {
                    reply = self.refuse_body(context, why, code);
                }
                admission.write_rates(&mut reply);
                Ok(Some(reply))
            }
        }
    }

    /// Proves who calls, before `upstream` may answer; a reply when it may not.
    async fn pass_on(
        &self,
        public: &PublicListener,
        context: &mut Context,
        upstream: Upstream,
        admission: &Admission,
        head: Head,
    ) -> Option<Reply> {
        let proving = context.scope().run(self.core.pass_on(&upstream, admission, head));
        match timeout(public.answer_max, proving).await {
            Ok(Ok(request)) => {
                match self.acquire_permit(&public.at_upstream, context) {
                    Ok(permit) => context.upstream_permit = Some(permit),
                    Err(reply) => return Some(*reply),
                }
                let span = context.scope().outgoing(&self.core.clock, admission.route.path);
                let now = self.core.clock.monotonic_ns();
                context.upstream = Some(UpstreamExchange::new(request, upstream, span, now));
                None
            }
            Ok(Err(reply)) => Some(*reply),
            Err(_) => Some(self.unavailable(context, "prove the user in time")),
        }
    }

    fn failed(&self, context: &Context, failure: WorkFailure) -> Reply {
        if failure == WorkFailure::TimedOut {
            return self.unavailable(context, "answer in time");
        }
        let (request_id, trace_id) = (&*context.request_id, context.trace_id());
        tracing::error!(request_id, trace_id, "an endpoint panicked");
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        self.core.refuse(&context.request_id, status, Code::GeneralError, "")
    }

    /// The answer to a head that is refused.
    fn refuse_head(&self, context: &Context, refused: HeadError) -> Reply {
        let (status, detail) = refused.answer();
        if !self.is_public() {
            return error(status, detail);
        }
        self.core.refuse(&context.request_id, status, Code::RequestMalformed, detail)
    }

    pub(super) fn unavailable(&self, context: &Context, doing: &'static str) -> Reply {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        self.core.refuse(&context.request_id, status, Code::GeneralError, doing)
    }

    pub(super) fn refuse_body(&self, context: &Context, why: BodyError, too_large: Code) -> Reply {
        let (status, code, detail) = match why {
            BodyError::TooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, too_large, "the body is too large")
            }
            BodyError::TooSlow => {
                let detail = "the body comes slower than 1 kB/s";
                (StatusCode::REQUEST_TIMEOUT, Code::RequestMalformed, detail)
            }
            BodyError::Upload(ended) => {
                return self.core.refuse_upload(&context.request_id, ended, too_large);
            }
            BodyError::NoMemory => {
                self.core.metrics.request_shed("memory");
                return self.unavailable(context, "hold one more body");
            }
            BodyError::ShareUsedUp => {
                self.core.metrics.request_shed("sender_memory");
                let doing = "hold one more body of this sender";
                return self.core.refuse_share(&context.request_id, doing);
            }
            BodyError::Malformed | BodyError::Gone => {
                let detail = "the body is not delimited as announced";
                (StatusCode::BAD_REQUEST, Code::RequestMalformed, detail)
            }
        };
        self.core.refuse(&context.request_id, status, code, detail)
    }
}

/// `Strict-Transport-Security` for this time; `None` for none.
pub(super) fn hsts(seconds: u64) -> Option<HeaderValue> {
    let value = format!("max-age={seconds}");
    HeaderValue::try_from(value).ok().filter(|_| seconds > 0)
}

/// The answer is a page for people.
fn is_page(reply: &Reply) -> bool {
    let media_type = reply.headers.get(header::CONTENT_TYPE);
    media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"text/html"))
}

/// The rest of the body may be read and thrown away after the answer, so that the connection can go
/// on. Not when the client waits for `100 Continue`: nobody knows whether the body still comes
/// (RFC 9110, section 10.1.1).
fn can_skip_body(session: &ServerSession) -> bool {
    let headers = &session.req_header().headers;
    !headers.contains_key(header::EXPECT)
        && content_length(headers).is_some_and(|length| length <= SKIPPED_BYTES_MAX)
}

/// Writes `reply`; to `HEAD` without its body.
///
/// # Errors
/// When the client does not take it.
pub(super) async fn write(
    session: &mut ServerSession,
    context: &mut Context,
    reply: Reply,
) -> Result<()> {
    context.codes = reply.codes;
    context.by_sender = reply.by_sender;
    let (mut head, ()) = Response::new(()).into_parts();
    (head.status, head.headers) = (reply.status, reply.headers);
    let mut head = ResponseHeader::from(head);
    let has_body = !matches!(reply.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if has_body {
        head.insert_header(header::CONTENT_LENGTH, reply.body.len())?;
    }
    session.write_response_header(Box::new(head)).await?;
    if !has_body || reply.body.is_empty() || session.req_header().method == Method::HEAD {
        session.finish_body().await
    } else {
        session.write_response_body(reply.body, true).await
    }
}

/// Status of the answer whose head is written; an interim one, such as 100, is none.
pub(super) fn answered(session: &ServerSession) -> Option<StatusCode> {
    let status = session.response_written().map(|head| head.status);
    status.filter(|status| !status.is_informational())
}

pub(super) fn client_gone() -> Box<Error> {
    Error::explain(ErrorType::ConnectionClosed, "the client left").into_down()
}
