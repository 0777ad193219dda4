//! A request that no upstream answers, from its head to its end: in a session, or without one if it
//! has arrived whole or on a stream of HTTP/2. Pingora's proxy does the same for one that goes on, at
//! the price of several boxes and of states that only an upstream needs.

use std::borrow::Cow;
use std::pin::pin;

use http::request::Parts;
use http::{Method, Version};
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::{Shutdown, Stream};
use pingora_error::ErrorType;
use rampart_core::http::reply::Reply;

use super::account::Seen;
use super::intake::{Asked, UNKNOWN, peer};
use super::work::unless_reset;
use super::{Gateway, set_bounds};
use crate::connection::{self, Origin};
use crate::context::Context;
use crate::exchange::{self, NoBody, Received};
use crate::framing::Refused;
use crate::lifecycle::Phase;
use crate::stream::{Answer, Body, Sent, Stream as Http2Stream};
use crate::whole::{self, Whole};

impl Gateway {
    /// Whether some requests go on to an upstream.
    pub(crate) fn has_upstream(&self) -> bool {
        self.core.upstream.is_some()
    }

    /// Serves a request; gives the connection back if it can go on.
    pub(crate) async fn serve(&self, mut session: ServerSession) -> Option<Stream> {
        match session.read_request().await {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => {
                if *error.etype() == ErrorType::InvalidHTTPHeader {
                    let refused = Refused::Malformed("not an HTTP request");
                    let reply = self.refuse_head(refused, peer(&session).unwrap_or(UNKNOWN));
                    // Whoever does not take it is gone.
                    let _ = exchange::write(&mut session, &Method::GET, reply).await;
                }
                session.shutdown().await;
                return None;
            }
        }
        let mut context = self.begin();
        set_bounds(&mut session);
        let responded = self.respond(&mut session, &mut context).await;
        self.close(&session, &mut context);
        if !responded.ok()? {
            return None;
        }
        Some(session.finish().await.ok()??.into_parts().0)
    }

    /// Serves a request that has arrived whole; says whether the connection can go on. It can not
    /// after the `last` one.
    pub(crate) async fn serve_whole(
        &self,
        request: Whole,
        origin: &Origin,
        stream: &mut Stream,
        last: bool,
    ) -> bool {
        let mut context = self.begin();
        let bytes_in = request.body.len();
        let reply = self.answer(request, origin, &mut context).await;
        let kept = !last && self.lifecycle.phase() == Phase::Serving;
        context.answered(&reply);
        let status = reply.status.as_u16();
        let written = whole::answer(stream, &context.method, reply, kept).await;
        context.ended_ns = Some(self.core.clock.monotonic_ns());
        context.place = None;
        let bytes_out = written.as_ref().map_or(0, |bytes| *bytes);
        let (version, tls) = (Version::HTTP_11, origin.tls());
        self.account(&context, &Seen { status, bytes_in, bytes_out, version, tls });
        if !kept && written.is_ok() {
            // Within the request, so that a process that stops waits for it.
            Shutdown::shutdown(stream.as_mut()).await;
        }
        written.is_ok() && kept
    }

    /// The answer to a request that has arrived whole.
    async fn answer(&self, request: Whole, origin: &Origin, context: &mut Context) -> Reply {
        let Whole { method, target, headers, body } = request;
        let asked = Asked {
            method: &method,
            path: target.path(),
            query: target.query(),
            target_bytes: target.as_str().len(),
            headers: Cow::Owned(headers),
            peer: Some(origin.peer),
            connection: origin.connection(),
            http2: None,
        };
        let (head, admission) = match self.enter(asked, context) {
            Ok(entered) => entered,
            Err(reply) => return *reply,
        };
        let mut share = None;
        if !self.budget.cover(&mut share, body.len()) {
            return self.no_body(context, NoBody::NoMemory, admission.route.body.bound().1);
        }
        if let Err(reply) = self.take_place(context) {
            return *reply;
        }
        self.run(context, admission, head, Received { body: body.into(), share }).await
    }

    /// Serves a stream of HTTP/2 without a session.
    pub(crate) async fn serve_stream(&self, stream: Http2Stream, origin: &Origin) {
        let Http2Stream { head, mut body, mut answer } = stream;
        let mut context = self.begin();
        let reply = self.answer_stream(head, &mut body, &mut answer, origin, &mut context).await;
        let mut sent = Sent::default();
        if let Some(reply) = reply {
            context.answered(&reply);
            sent = answer.send(&context.method, reply).await;
        }
        context.ended_ns = Some(self.core.clock.monotonic_ns());
        context.place = None;
        if sent.status != 0 {
            exchange::discard(&mut body).await;
        } else if let Some(connection) = origin.connection() {
            connection.abandoned();
        }
        let (bytes_in, bytes_out) = (body.read, sent.body);
        let (status, version, tls) = (sent.status, Version::HTTP_2, origin.tls());
        self.account(&context, &Seen { status, bytes_in, bytes_out, version, tls });
    }

    /// The answer to a request on a stream; `None` when the client does not wait for it.
    async fn answer_stream(
        &self,
        head: Parts,
        body: &mut Body,
        answer: &mut Answer,
        origin: &Origin,
        context: &mut Context,
    ) -> Option<Reply> {
        let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
        let asked = Asked {
            method: &head.method,
            path: head.uri.path(),
            query: head.uri.query(),
            target_bytes: target,
            headers: Cow::Owned(head.headers),
            peer: Some(origin.peer),
            connection: origin.connection(),
            http2: Some(&head.uri),
        };
        let (head, admission) = match self.enter(asked, context) {
            Ok(entered) => entered,
            Err(reply) => return Some(*reply),
        };
        let budgets = (&self.budget, &self.uploads);
        let route = admission.route;
        let received = match exchange::read_entity(body, route, budgets, &self.core).await {
            Ok(received) => received,
            Err(NoBody::Gone) => return None,
            Err(why) => return Some(self.no_body(context, why, route.body.bound().1)),
        };
        if let Err(reply) = self.take_place(context) {
            return Some(*reply);
        }
        let work = pin!(self.run(context, admission, head, received));
        unless_reset(answer.given_up(), route.is_safe(), work).await
    }

    /// Counts and logs a request that is over, however it ended.
    pub(super) fn close(&self, session: &ServerSession, context: &mut Context) {
        context.place = None;
        if session.is_http2()
            && session.response_written().is_none()
            && let Some(connection) = connection::of(session)
        {
            connection.abandoned();
        }
        self.account(context, &Seen::of(session));
    }
}
