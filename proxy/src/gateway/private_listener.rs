//! The listeners for operators, connectors and operations: errors in JSON, or as pages of the console,
//! and no credential of a partner.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use pingora_core::protocols::http::ServerSession;
use rampart_api::operate::listener;
use rampart_core::http::plain_error;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::{BODY_BYTES_MAX, Head, UnreadBody};
use rampart_core::platform::error::{Denial, Result};

use super::body::{BodyError, Sender, Share, read_body};
use super::concurrency::{WorkFailure, contain};
use super::context::Context;
use super::{Gateway, admit, path};

/// Time for one answer, and for the body of its request.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(60);

/// A listener that is not for the public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrivateListener {
    /// For operators, who carry a token that the core checks.
    Operators,
    /// For connectors, who carry a token that the core checks.
    Connectors,
    /// For metrics and health.
    Operations,
}

impl PrivateListener {
    /// Largest body of a request, in bytes; a policy's component may have 4 MiB.
    const fn body_bytes_max(self) -> usize {
        match self {
            Self::Operators => 4 * 1024 * 1024,
            Self::Connectors => rampart_core::money::connectors::BODY_BYTES_MAX,
            Self::Operations => 0,
        }
    }
}

impl Gateway {
    /// Decides what a private listener answers.
    pub(super) async fn decide_private(
        &self,
        listener: PrivateListener,
        session: &mut ServerSession,
        context: &Context,
    ) -> Reply {
        if !path::is_normal(session.req_header().uri.path()) {
            return error(StatusCode::NOT_FOUND, "the path is not in normal form");
        }
        let mut head = admit::head(session.req_header(), context);
        if listener == PrivateListener::Operators && !self.names_operators(session, &mut head) {
            return error(StatusCode::MISDIRECTED_REQUEST, "the Host is not one of this listener");
        }
        if head.method == Method::HEAD {
            head.method = Method::GET;
        }
        let max = listener.body_bytes_max();
        let mut share = None;
        let body = ArrivingBody { gateway: self, session, max, peer: head.peer, share: &mut share };
        let work = context.scope().run(async {
            match listener {
                PrivateListener::Operators => listener::answer(&self.core, head, body).await,
                PrivateListener::Connectors => self.core.connectors(head, body).await,
                PrivateListener::Operations => match body.read(false).await {
                    Ok(_) => self.answer_operations(&head).await,
                    Err(error) => plain_error::reply(&self.core, &error, &head.request_id),
                },
            }
        });
        let answered = contain(work, ANSWER_MAX).await;
        let reply = answered.unwrap_or_else(|failure| {
            let (request_id, trace_id) = (&*context.request_id, context.trace_id());
            tracing::error!(request_id, trace_id, ?failure, "a private call came to no end");
            let request = session.req_header();
            unanswered(failure, listener, request.uri.path(), &request.headers, request_id)
        });
        // The memory of the body was in use until now.
        drop(share);
        reply
    }

    /// True if the request names this listener: a page whose own name was made to lead here names
    /// something else. HTTP/2 names the host in its target, and from there it is put into `head`.
    fn names_operators(&self, session: &ServerSession, head: &mut Head) -> bool {
        let authority = session.req_header().uri.authority().map(Authority::as_str);
        if let Some(value) = authority.and_then(|text| HeaderValue::from_str(text).ok()) {
            head.headers.entry(HOST).or_insert(value);
        }
        let host = head.header(HOST.as_str()).and_then(|host| host.parse::<Authority>().ok());
        let configured = self.core.settings.admin_host.as_deref();
        host.is_some_and(|host| is_own_host(host.host(), configured))
    }
}

/// A body that its sender may still be sending.
struct ArrivingBody<'a> {
    gateway: &'a Gateway,
    session: &'a mut ServerSession,
    max: usize,
    peer: IpAddr,
    /// The memory that it takes, once it is read.
    share: &'a mut Option<Share>,
}

impl UnreadBody for ArrivingBody<'_> {
    async fn read(self, proven: bool) -> Result<Bytes> {
        let Self { gateway, session, max, peer, share } = self;
        let (memory, max) = match proven {
            true => (&gateway.bodies, max),
            false => (&gateway.strangers, max.min(BODY_BYTES_MAX)),
        };
        let sender = Sender::of(peer, &Arc::default());
        match read_body(session, max, memory.of(&sender)).await {
            Ok((body, taken)) => {
                *share = taken;
                Ok(body)
            }
            Err(why) => {
                session.set_keepalive(None);
                Err(refuse_body(why).into())
            }
        }
    }
}

/// True for an address, which no foreign name can lead to, for `localhost` and the configured name.
fn is_own_host(host: &str, configured: Option<&str>) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let mut names = ["localhost"].into_iter().chain(configured);
    address.parse::<IpAddr>().is_ok() || names.any(|name| name.eq_ignore_ascii_case(host))
}

fn refuse_body(why: BodyError) -> Denial {
    let (status, message) = match why {
        BodyError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
        BodyError::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body comes too slowly"),
        BodyError::NoMemory | BodyError::ShareUsedUp | BodyError::Upload(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, "too many bodies at once")
        }
        BodyError::Malformed | BodyError::Gone => {
            (StatusCode::BAD_REQUEST, "the body is not delimited properly")
        }
    };
    Denial::new(status, message)
}

/// The answer to a call that came to no end, as its caller reads it.
fn unanswered(
    failure: WorkFailure,
    listener: PrivateListener,
    path: &str,
    headers: &HeaderMap,
    request_id: &str,
) -> Reply {
    let plain = match failure {
        WorkFailure::Panicked => {
            error(StatusCode::INTERNAL_SERVER_ERROR, "the call failed; see the log")
        }
        WorkFailure::TimedOut => error(StatusCode::SERVICE_UNAVAILABLE, "the call took too long"),
    };
    match listener {
        PrivateListener::Operators => listener::failure(path, headers, request_id, plain),
        PrivateListener::Connectors | PrivateListener::Operations => plain,
    }
}

/// `{"error":"…"}`, as section 11 of the contract has it.
pub(super) fn error(status: StatusCode, message: &'static str) -> Reply {
    plain_error::denied(&Denial::new(status, message))
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};

    use super::PrivateListener::{Connectors, Operators};
    use super::WorkFailure::{Panicked, TimedOut};
    use super::*;

    #[test]
    fn a_browser_at_the_console_is_shown_a_page_of_a_call_without_end() {
        let browser = "text/html,application/xhtml+xml,*/*;q=0.8";
        let orders = "/console/orders";
        for (failure, listener, path, accept, wanted) in [
            (TimedOut, Operators, orders, browser, (503, "try again in 2 s. Request: id-7")),
            (Panicked, Operators, orders, browser, (500, "on our side. Request: id-7")),
            (TimedOut, Operators, orders, "*/*", (503, "{\"error\":\"the call took too long\"}")),
            (Panicked, Operators, "/admin/v1/orders", browser, (500, "{\"error\":\"the call")),
            (TimedOut, Connectors, orders, browser, (503, "{\"error\":\"the call took")),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            let reply = unanswered(failure, listener, path, &headers, "id-7");
            let text = std::str::from_utf8(&reply.body).unwrap();
            let (status, words) = wanted;
            assert_eq!(reply.status.as_u16(), status, "{text}");
            assert!(text.contains(words), "{words}: {text}");
            let is_page = reply.headers[CONTENT_TYPE].as_bytes().starts_with(b"text/html");
            assert_eq!(is_page, !words.contains("error"), "{text}");
            assert_eq!(reply.headers.contains_key(RETRY_AFTER), failure == TimedOut, "{text}");
        }
    }

    #[test]
    fn only_names_of_this_listener_are_its_own() {
        for own in ["127.0.0.1", "[::1]", "localhost", "LocalHost", "ops.example.com"] {
            assert!(is_own_host(own, Some("ops.example.com")), "{own}");
        }
        for foreign in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert!(!is_own_host(foreign, Some("ops.example.com")), "{foreign}");
        }
        assert!(!is_own_host("ops.example.com", None));
    }
}
