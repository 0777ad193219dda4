//! Answers that go on after their head: events as they happen, and files as they are made.

use std::pin::pin;

use http::{Method, Response, Version, header};
use pingora_core::protocols::http::ServerSession;
use pingora_error::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use rampart_core::http::event_stream::{EventStream, STREAM_MAX};
use rampart_core::http::file_stream::{FILE_STREAM_MAX, FileStream};
use rampart_core::http::reply::Reply;
use tokio::time::timeout;

use super::Gateway;
use super::context::Context;
use super::respond::client_gone;
use crate::server::Phase;

impl Gateway {
    /// Writes events as they come, until [`STREAM_MAX`] is over, the process drains or there are no
    /// more. The request is over, in metrics and logs, when they begin.
    ///
    /// # Errors
    /// When the client does not take them, or has left.
    pub(super) async fn write_events(
        &self,
        session: &mut ServerSession,
        context: &mut Context,
        reply: Reply,
        mut events: EventStream,
    ) -> Result<()> {
        self.begin_stream(session, context, reply).await?;
        if context.method == Method::HEAD {
            return session.finish_body().await;
        }
        let mut phases = self.lifecycle.watch();
        let mut end = pin!(timeout(STREAM_MAX, phases.at_least(Phase::Draining)));
        loop {
            let part = tokio::select! {
                biased;
                drained = &mut end => {
                    if drained.is_ok() {
                        session.set_keepalive(None);
                    }
                    None
                }
                part = events.next() => part,
                _ = session.read_body_or_idle(true) => return Err(client_gone()),
            };
            match part {
                Some(part) => session.write_response_body(part, false).await?,
                None => return session.finish_body().await,
            }
        }
    }

    /// Writes a file as it is made. The request is over, in metrics and logs, when it begins. What is
    /// cut short ends with the connection, so that nobody takes it for the whole.
    ///
    /// # Errors
    /// When the client does not take it, or has left; after [`FILE_STREAM_MAX`]; when the process stops
    /// or the rest of the file cannot be made.
    pub(super) async fn write_file(
        &self,
        session: &mut ServerSession,
        context: &mut Context,
        reply: Reply,
        mut file: FileStream,
    ) -> Result<()> {
        self.begin_stream(session, context, reply).await?;
        if context.method == Method::HEAD {
            return session.finish_body().await;
        }
        let mut phases = self.lifecycle.watch();
        let mut end = pin!(timeout(FILE_STREAM_MAX, phases.at_least(Phase::Stopping)));
        loop {
            let part = tokio::select! {
                biased;
                _ = &mut end => return Err(cut_short()),
                part = file.next() => part,
                _ = session.read_body_or_idle(true) => return Err(client_gone()),
            };
            match part {
                Some(Ok(part)) => session.write_response_body(part, false).await?,
                Some(Err(_)) => return Err(cut_short()),
                None => return session.finish_body().await,
            }
        }
    }

    /// Writes the head of an answer whose length nobody knows yet.
    async fn begin_stream(
        &self,
        session: &mut ServerSession,
        context: &mut Context,
        reply: Reply,
    ) -> Result<()> {
        let (mut head, ()) = Response::new(()).into_parts();
        (head.status, head.headers) = (reply.status, reply.headers);
        let mut head = ResponseHeader::from(head);
        if session.req_header().version == Version::HTTP_11 {
            head.insert_header(header::TRANSFER_ENCODING, "chunked")?;
        }
        session.write_response_header(Box::new(head)).await?;
        context.ended_ns = Some(self.core.clock.monotonic_ns());
        Ok(())
    }
}

fn cut_short() -> Box<Error> {
    Error::explain(ErrorType::InternalError, "a file was cut short").into_down()
}
