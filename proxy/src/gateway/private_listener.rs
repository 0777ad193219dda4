//! The listeners for operators and for operations: JSON errors, and no credential of a partner.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use pingora_core::protocols::http::ServerSession;
use pingora_error::Result;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::Head;

use super::body::{BodyError, read_body};
use super::concurrency::{WorkFailure, contain};
use super::context::Context;
use super::respond::client_gone;
use super::{Gateway, admit, path};

/// Time for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// A listener that is not for the public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrivateListener {
    /// For operators, who carry a token that the core checks.
    Operators,
    /// For metrics and health.
    Operations,
}

impl PrivateListener {
    /// Largest body of a request, in bytes; a policy's component may have 4 MiB.
    const fn body_bytes_max(self) -> usize {
        match self {
            Self::Operators => 4 * 1024 * 1024,
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
        let received = match read_body(session, listener.body_bytes_max(), &self.budget).await {
            Ok(received) => received,
            Err(why) => {
                session.set_keepalive(None);
                return refuse_body(why).ok_or_else(client_gone);
            }
        };
        let mut head = admit::head(session.req_header(), context);
        if head.method == Method::HEAD {
            head.method = Method::GET;
        }
        let work = self.answer_private(listener, head, received.body);
        Ok(contain(work, ANSWER_MAX).await.unwrap_or_else(|failure| match failure {
            WorkFailure::Panicked => {
                error(StatusCode::INTERNAL_SERVER_ERROR, "the call failed; see the log")
            }
            WorkFailure::TimedOut => {
                error(StatusCode::SERVICE_UNAVAILABLE, "the call took too long")
            }
        }))
    }

    async fn answer_private(&self, listener: PrivateListener, head: Head, body: Bytes) -> Reply {
        match listener {
            PrivateListener::Operators => self.core.admin(head, body).await,
            PrivateListener::Operations => self.answer_operations(&head).await,
        }
    }
}

fn refuse_body(why: BodyError) -> Option<Reply> {
    Some(match why {
        BodyError::TooLarge => error(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
        BodyError::TooSlow => error(StatusCode::REQUEST_TIMEOUT, "the body comes too slowly"),
        BodyError::NoMemory | BodyError::Upload(_) => {
            error(StatusCode::SERVICE_UNAVAILABLE, "too many bodies at once")
        }
        BodyError::Malformed => {
            error(StatusCode::BAD_REQUEST, "the body is not delimited properly")
        }
        BodyError::Gone => return None,
    })
}

/// `{"error":"…"}`, as section 11 of the contract has it.
pub(super) fn error(status: StatusCode, message: &str) -> Reply {
    let body = serde_json::json!({ "error": message }).to_string();
    Reply::with_body(status, "application/json", body.into())
}
