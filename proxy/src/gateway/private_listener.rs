//! The listeners for operators, connectors and operations: JSON errors, and no credential of a partner.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::Authority;
use http::{HeaderValue, Method, StatusCode};
use pingora_core::protocols::http::ServerSession;
use pingora_error::Result;
use rampart_core::http::plain_error;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::Head;
use rampart_core::platform::error::Denial;

use super::body::{BodyError, Sender, read_body};
use super::concurrency::{WorkFailure, contain};
use super::context::Context;
use super::respond::client_gone;
use super::{Gateway, admit, path};

/// Time for one answer.
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
    ///
    /// # Errors
    /// When the client does not wait for it.
    pub(super) async fn decide_private(
        &self,
        listener: PrivateListener,
        session: &mut ServerSession,
        context: &Context,
    ) -> Result<Reply> {
        if !path::is_normal(session.req_header().uri.path()) {
            return Ok(error(StatusCode::NOT_FOUND, "the path is not in normal form"));
        }
        let sender = Sender::of(context.client_address, &context.labels.partner);
        let (max, budget) = (listener.body_bytes_max(), self.bodies.of(&sender));
        let (body, _share) = match read_body(session, max, budget).await {
            Ok(received) => received,
            Err(why) => {
                session.set_keepalive(None);
                return refuse_body(why).ok_or_else(client_gone);
            }
        };
        let mut head = admit::head(session.req_header(), context);
        if listener == PrivateListener::Operators && !self.names_operators(session, &mut head) {
            return Ok(error(
                StatusCode::MISDIRECTED_REQUEST,
                "the Host is not one of this listener",
            ));
        }
        if head.method == Method::HEAD {
            head.method = Method::GET;
        }
        let work = context.scope().run(self.answer_private(listener, head, body));
        Ok(contain(work, ANSWER_MAX).await.unwrap_or_else(|failure| match failure {
            WorkFailure::Panicked => {
                error(StatusCode::INTERNAL_SERVER_ERROR, "the call failed; see the log")
            }
            WorkFailure::TimedOut => {
                error(StatusCode::SERVICE_UNAVAILABLE, "the call took too long")
            }
        }))
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

    async fn answer_private(&self, listener: PrivateListener, head: Head, body: Bytes) -> Reply {
        match listener {
            PrivateListener::Operators => self.core.admin(head, body).await,
            PrivateListener::Connectors => self.core.connectors(head, body).await,
            PrivateListener::Operations => self.answer_operations(&head).await,
        }
    }
}

/// True for an address, which no foreign name can lead to, for `localhost` and the configured name.
fn is_own_host(host: &str, configured: Option<&str>) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let mut names = ["localhost"].into_iter().chain(configured);
    address.parse::<IpAddr>().is_ok() || names.any(|name| name.eq_ignore_ascii_case(host))
}

fn refuse_body(why: BodyError) -> Option<Reply> {
    Some(match why {
        BodyError::TooLarge => error(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
        BodyError::TooSlow => error(StatusCode::REQUEST_TIMEOUT, "the body comes too slowly"),
        BodyError::NoMemory | BodyError::ShareUsedUp | BodyError::Upload(_) => {
            error(StatusCode::SERVICE_UNAVAILABLE, "too many bodies at once")
        }
        BodyError::Malformed => {
            error(StatusCode::BAD_REQUEST, "the body is not delimited properly")
        }
        BodyError::Gone => return None,
    })
}

/// `{"error":"…"}`, as section 11 of the contract has it.
pub(super) fn error(status: StatusCode, message: &'static str) -> Reply {
    plain_error::reply(&Denial::new(status, message).into())
}

#[cfg(test)]
mod tests {
    use super::*;

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
