//! Answers that go on after their head: events as they happen, and files as they are made.

use std::pin::pin;

use bytes::Bytes;
use http::{Method, Response, Version, header};
use pingora_core::protocols::http::ServerSession;
use pingora_error::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use rampart_core::http::event_stream::{EventStream, STREAM_MAX};
use rampart_core::http::file_stream::{Broken, FILE_STREAM_MAX, FileStream};
use rampart_core::http::reply::Reply;
use tokio::time::timeout;

use super::Gateway;
use super::context::Context;
use super::respond::client_gone;
use crate::server::Phase;

/// The body of an answer that goes on.
pub(super) enum StreamedBody {
    Events(EventStream),
    File(FileStream),
}

impl StreamedBody {
    /// The next one, once it is there; `None` at the end. It loses nothing when it is dropped.
    async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        match self {
            Self::Events(events) => events.next().await.map(Ok),
            Self::File(file) => file.next().await,
        }
    }
}

impl Gateway {
    /// Writes the parts as they come. The request is over, in metrics and logs, when they begin.
    /// Events end after [`STREAM_MAX`], and when the process drains. A file that is cut short ends
    /// with the connection, so that nobody takes it for the whole.
    ///
    /// # Errors
    /// When the client does not take them, or has left; of a file also after [`FILE_STREAM_MAX`],
    /// when the process stops or the rest cannot be made.
    pub(super) async fn write_parts(
        &self,
        session: &mut ServerSession,
        context: &mut Context,
        reply: Reply,
        mut parts: StreamedBody,
    ) -> Result<()> {
        let (mut head, ()) = Response::new(()).into_parts();
        (head.status, head.headers) = (reply.status, reply.headers);
        let mut head = ResponseHeader::from(head);
        // Nobody knows the length yet.
        if session.req_header().version == Version::HTTP_11 {
            head.insert_header(header::TRANSFER_ENCODING, "chunked")?;
        }
        session.write_response_header(Box::new(head)).await?;
        context.ended_ns = Some(self.core.clock.monotonic_ns());
        if session.req_header().method == Method::HEAD {
            return session.finish_body().await;
        }
        let (bound, last) = match parts {
            StreamedBody::Events(_) => (STREAM_MAX, Phase::Draining),
            StreamedBody::File(_) => (FILE_STREAM_MAX, Phase::Stopping),
        };
        let mut end = pin!(timeout(bound, self.lifecycle.reach(last)));
        loop {
            let part = tokio::select! {
                biased;
                reached = &mut end => match parts {
                    StreamedBody::Events(_) => {
                        if reached.is_ok() {
                            session.set_keepalive(None);
                        }
                        None
                    }
                    StreamedBody::File(_) => return Err(cut_short()),
                },
                part = parts.next() => part,
                _ = session.read_body_or_idle(true) => return Err(client_gone()),
            };
            match part {
                Some(Ok(part)) => session.write_response_body(part, false).await?,
                Some(Err(Broken)) => return Err(cut_short()),
                None => return session.finish_body().await,
            }
        }
    }
}

fn cut_short() -> Box<Error> {
    Error::explain(ErrorType::InternalError, "a file was cut short").into_down()
}
