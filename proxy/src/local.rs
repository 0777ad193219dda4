//! What the two private listeners share: plain HTTP/1, JSON errors, the same strict heads as on
//! the public one, and no proxy behind it.

use std::net::{IpAddr, Ipv4Addr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use http::{Method, StatusCode};
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::ServerSession;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::Head;
use rampart_core::platform::clock::Clock;

use crate::connection::App;
use crate::context::request_id;
use crate::exchange::{self, Budget, NoBody};
use crate::framing::Refused;
use crate::lifecycle::{Lifecycle, Phase};
use crate::normal_form;

/// Time for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// What a private listener answers.
pub(crate) trait Answer: Send + Sync + 'static {
    /// Largest body of a request, in bytes.
    const BODY_BYTES_MAX: usize;

    /// The answer to a request whose path is in normal form.
    fn answer(&self, head: Head, body: Bytes) -> impl Future<Output = Reply> + Send;
}

/// A private listener's application.
pub(crate) struct Local<A> {
    answers: A,
    budget: Budget,
    clock: Clock,
    lifecycle: Arc<Lifecycle>,
}

impl<A: Answer> Local<A> {
    /// Serves `answers`; bodies share `body_memory` bytes.
    pub(crate) fn new(
        answers: A,
        body_memory: usize,
        clock: Clock,
        lifecycle: Arc<Lifecycle>,
    ) -> Self {
        Self { answers, budget: Budget::new(body_memory), clock, lifecycle }
    }

    async fn reply(&self, session: &mut ServerSession, request_id: &str) -> Option<Reply> {
        if !normal_form::is_normal(session.req_header().uri.path()) {
            return Some(error(StatusCode::NOT_FOUND, "the path is not in normal form"));
        }
        let body = match exchange::read_body(session, A::BODY_BYTES_MAX, &self.budget).await {
            Ok(body) => body,
            Err(why) => {
                session.set_keepalive(None);
                return no_body(why);
            }
        };
        let head = head(session, request_id);
        let answer = AssertUnwindSafe(self.answers.answer(head, body.body.clone()));
        Some(match tokio::time::timeout(ANSWER_MAX, answer.catch_unwind()).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => error(StatusCode::INTERNAL_SERVER_ERROR, "the call failed; see the log"),
            Err(_) => error(StatusCode::SERVICE_UNAVAILABLE, "the call took too long"),
        })
    }
}

impl<A: Answer> App for Local<A> {
    async fn serve(&self, mut session: ServerSession) -> Option<Stream> {
        let _busy = self.lifecycle.begin();
        // The head is complete and sound; what Pingora still refuses gets no answer.
        if !session.read_request().await.ok()? {
            return None;
        }
        session.set_read_timeout(None);
        if self.lifecycle.phase() >= Phase::Stopping {
            session.set_keepalive(None);
        }
        let sent = session.req_header().headers.get("x-request-id");
        let id = request_id(sent.map(|value| value.as_bytes()), &self.clock);
        let method = session.req_header().method.clone();
        let mut reply = self.reply(&mut session, &id).await?;
        reply.set("x-request-id", &id);
        reply.set("cache-control", "no-store");
        exchange::write(&mut session, &method, reply).await.ok()?;
        if session.get_keepalive().is_none() {
            exchange::discard(&mut session).await;
        }
        Some(session.finish().await.ok()??.into_parts().0)
    }

    fn refuse(&self, refused: Refused, _: IpAddr) -> Reply {
        let mut reply = error(refused.status(), refused.detail());
        reply.set("x-request-id", &request_id(None, &self.clock));
        reply
    }
}

fn head(session: &ServerSession, request_id: &str) -> Head {
    let request = session.req_header();
    let peer = session.client_addr().and_then(|address| address.as_inet());
    Head {
        method: if request.method == Method::HEAD { Method::GET } else { request.method.clone() },
        path: request.uri.path().to_owned(),
        query: request.uri.query().map(str::to_owned),
        headers: request.headers.clone(),
        peer: peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |address| address.ip().to_canonical()),
        request_id: request_id.to_owned(),
    }
}

fn no_body(why: NoBody) -> Option<Reply> {
    Some(match why {
        NoBody::TooLarge => error(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
        NoBody::TooSlow => error(StatusCode::REQUEST_TIMEOUT, "the body comes too slowly"),
        NoBody::NoMemory | NoBody::Upload(_) => {
            error(StatusCode::SERVICE_UNAVAILABLE, "too many bodies at once")
        }
        NoBody::Malformed => error(StatusCode::BAD_REQUEST, "the body is not delimited properly"),
        NoBody::Gone => return None,
    })
}

/// `{"error":"…"}`, as section 11 of the contract has it.
pub(crate) fn error(status: StatusCode, message: &str) -> Reply {
    let body = serde_json::json!({ "error": message }).to_string();
    Reply::with_body(status, "application/json", body.into())
}
