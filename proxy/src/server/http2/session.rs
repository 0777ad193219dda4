//! Pingora makes its own session of a stream only after it has answered what it does not like, so
//! this one gives it a stream of HTTP/2 as the h2 crate has it.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::response::Parts;
use http::{HeaderMap, Request, Response, header};
use pingora_core::protocols::Digest;
use pingora_core::protocols::http::HttpTask;
use pingora_core::protocols::http::custom::CustomMessageWrite;
use pingora_core::protocols::http::custom::server::Session;
use pingora_core::protocols::http::date::get_cached_date;
use pingora_core::protocols::l4::socket::SocketAddr;
use pingora_error::{Error, ErrorType, OrErr as _, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use super::SEND_BUFFER;
use crate::server::framing::check_parsed;
use crate::server::send_rate::{SendBounds, SendRate};

/// Largest body of a request that goes on to an upstream.
const RETRY_BYTES_MAX: usize = 64 * 1024;
/// Largest part of an answer that may wait in its connection when the answer is over; most answers are
/// no larger.
const UNWATCHED_BYTES_MAX: usize = 4 * 1024;
/// Headers whose value is another one in every answer: in the connection's table (RFC 7541, section
/// 2.3.2) they would only push out what repeats. The h2 crate leaves out what is sensitive.
const FRESH_FIELDS: [&str; 2] = ["x-request-id", "ratelimit"];

type Messages = Box<dyn Stream<Item = Result<Bytes>> + Unpin + Send + Sync + 'static>;

/// A request, and where its answer goes.
pub(super) struct Http2Session {
    head: RequestHeader,
    body: RecvStream,
    answer: SendResponse<Bytes>,
    /// The head of the answer, until its body begins or is known to be empty.
    unsent: Option<Response<()>>,
    answer_body: Option<SendStream<Bytes>>,
    /// The answer's status once its head is written, which is all that is asked for; `None` again where
    /// it could not be sent.
    written: Option<ResponseHeader>,
    ended: bool,
    /// Ends when the connection has sent the last large part of the answer, or will not.
    sending: Option<oneshot::Receiver<()>>,
    bytes_read: usize,
    bytes_sent: usize,
    rate: SendRate,
    digest: Arc<Digest>,
}

impl Http2Session {
    /// Takes what a connection has accepted, and notes in the head that it is refused if it is.
    pub(super) fn new(
        request: Request<RecvStream>,
        answer: SendResponse<Bytes>,
        digest: Arc<Digest>,
        bounds: SendBounds,
    ) -> Self {
        let (mut head, body) = request.into_parts();
        if let Err(refused) = check_parsed(&head.method, &head.uri, &head.headers) {
            // The scan of frames may have refused it before.
            head.extensions.get_or_insert(refused);
        }
        Self {
            head: head.into(),
            body,
            answer,
            unsent: None,
            answer_body: None,
            written: None,
            ended: false,
            sending: None,
            bytes_read: 0,
            bytes_sent: 0,
            rate: SendRate::new(bounds),
            digest,
        }
    }

    /// Sends the head. Where the stream is reset already, by the client or because of it, there is no
    /// answer.
    fn send_head(&mut self, end: bool) -> Result<()> {
        if let Some(head) = self.unsent.take() {
            let sent = self.answer.send_response(head, end);
            let sent = sent.or_err(ErrorType::WriteError, "send a head").map_err(|error| {
                self.written = None;
                error.into_down()
            });
            self.answer_body = Some(sent?);
            self.ended = end;
        }
        Ok(())
    }

    /// Sends as much as the client gives room for, unless it is too slow. Its pace is that of the whole
    /// answer, the total that of this part: while the next one is made, the client is not waited for.
    async fn send_body(&mut self, mut data: Bytes, end: bool) -> Result<()> {
        let lost = || Error::explain(ErrorType::WriteError, "a body without a head");
        let stream = self.answer_body.as_mut().ok_or_else(lost)?;
        let is_large = data.len() > UNWATCHED_BYTES_MAX;
        while !data.is_empty() {
            stream.reserve_capacity(data.len());
            if stream.capacity() == 0 {
                match timeout_at(self.rate.until(), poll_fn(|cx| stream.poll_capacity(cx))).await {
                    Ok(Some(Ok(_))) => continue,
                    _ => return Error::e_explain(ErrorType::WriteTimedout, "send a body"),
                }
            }
            let mut part = data.split_to(stream.capacity().min(data.len()));
            let (bytes, last) = (part.len(), end && data.is_empty());
            if is_large && data.is_empty() {
                let (sender, sending) = oneshot::channel();
                part = Bytes::from_owner(LastBytes { bytes: part, _sender: sender });
                self.sending = Some(sending);
            }
            stream.send_data(part, last).or_err(ErrorType::WriteError, "send a body")?;
            self.bytes_sent += bytes;
            self.rate.took(bytes);
            self.ended = last;
        }
        if !end {
            self.rate.pause();
        }
        Ok(())
    }

    /// Waits until the connection has sent what it holds of a large answer, for as long as the slowest
    /// client takes. The memory of the whole is in use until then, and a client that makes the window
    /// smaller would keep it for the life of its connection.
    async fn send_rest(&mut self) -> Result<()> {
        let Some(sending) = self.sending.take() else { return Ok(()) };
        let end = self.rate.end_of(self.bytes_sent.min(SEND_BUFFER));
        // An error says that the bytes are gone: sent, or dropped with their stream.
        if timeout_at(end, sending).await.is_ok() {
            return Ok(());
        }
        // The h2 crate resets no stream by itself whose end waits already. What its connection is writing
        // stays: that has the bounds of the connection.
        self.answer.send_reset(h2::Reason::CANCEL);
        Error::e_explain(ErrorType::WriteTimedout, "send the rest of a body")
    }
}

/// The last bytes of a part, which the connection drops once it has sent them.
struct LastBytes {
    bytes: Bytes,
    _sender: oneshot::Sender<()>,
}

impl AsRef<[u8]> for LastBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[async_trait]
impl Session for Http2Session {
    fn req_header(&self) -> &RequestHeader {
        &self.head
    }

    fn req_header_mut(&mut self) -> &mut RequestHeader {
        &mut self.head
    }

    /// A broken body ends its stream or the connection: nobody waits for an answer then.
    async fn read_body_bytes(&mut self) -> Result<Option<Bytes>> {
        let Some(part) = self.body.data().await else { return Ok(None) };
        let part = part.or_err(ErrorType::H2Error, "read a body")?;
        self.bytes_read += part.len();
        let released = self.body.flow_control().release_capacity(part.len());
        released.or_err(ErrorType::H2Error, "read a body")?;
        Ok(Some(part))
    }

    async fn drain_request_body(&mut self) -> Result<()> {
        while self.read_body_bytes().await?.is_some() {}
        Ok(())
    }

    async fn write_response_header(&mut self, head: Box<ResponseHeader>, end: bool) -> Result<()> {
        if self.written.is_some() || head.status.is_informational() {
            return Ok(());
        }
        self.written = Some(ResponseHeader::build_no_case(head.status, Some(0))?);
        let mut parts = Parts::from(*head);
        // Pingora adds it where no length is known; HTTP/2 has no use for it (RFC 9113, section 8.2.2).
        parts.headers.remove(header::TRANSFER_ENCODING);
        parts.headers.insert(header::DATE, get_cached_date());
        for name in FRESH_FIELDS {
            if let Some(value) = parts.headers.get_mut(name) {
                value.set_sensitive(true);
            }
        }
        self.unsent = Some(Response::from_parts(parts, ()));
        if end { self.send_head(true) } else { Ok(()) }
    }

    async fn write_response_header_ref(&mut self, head: &ResponseHeader, end: bool) -> Result<()> {
        self.write_response_header(Box::new(head.clone()), end).await
    }

    async fn write_body(&mut self, data: Bytes, end: bool) -> Result<()> {
        if !data.is_empty() {
            self.send_head(false)?;
            self.send_body(data, end).await?;
        }
        if end { self.finish().await } else { Ok(()) }
    }

    /// No answer has trailers: the gateway leaves those of an upstream out.
    async fn write_trailers(&mut self, _: HeaderMap) -> Result<()> {
        Ok(())
    }

    async fn response_duplex_vec(&mut self, tasks: Vec<HttpTask>) -> Result<bool> {
        let mut ended = false;
        for task in tasks {
            ended |= match task {
                HttpTask::Header(head, end) => {
                    self.write_response_header(head, false).await?;
                    end
                }
                HttpTask::Body(data, end) => {
                    self.write_body(data.unwrap_or_default(), false).await?;
                    end
                }
                HttpTask::Trailer(_) | HttpTask::Done => true,
                HttpTask::Failed(error) => return Err(error),
                HttpTask::UpgradedBody(..) => {
                    return Error::e_explain(ErrorType::InternalError, "an upgrade in HTTP/2");
                }
            };
        }
        if ended {
            self.finish().await?;
        }
        Ok(ended)
    }

    /// Both directions have bounds of their own.
    fn set_read_timeout(&mut self, _: Option<Duration>) {}

    fn get_read_timeout(&self) -> Option<Duration> {
        None
    }

    fn set_write_timeout(&mut self, _: Option<Duration>) {}

    fn get_write_timeout(&self) -> Option<Duration> {
        None
    }

    fn set_total_drain_timeout(&mut self, _: Option<Duration>) {}

    fn get_total_drain_timeout(&self) -> Option<Duration> {
        None
    }

    fn request_summary(&self) -> String {
        format!("{} {}", self.head.method, self.head.uri.path())
    }

    fn response_written(&self) -> Option<&ResponseHeader> {
        self.written.as_ref()
    }

    async fn shutdown(&mut self, _: u32, _: &str) {
        if !self.ended {
            self.answer.send_reset(h2::Reason::INTERNAL_ERROR);
        }
    }

    fn is_body_done(&mut self) -> bool {
        self.body.is_end_stream()
    }

    async fn finish(&mut self) -> Result<()> {
        self.send_head(true)?;
        if let Some(stream) = self.answer_body.as_mut().filter(|_| !self.ended) {
            let sent = stream.send_data(Bytes::new(), true);
            sent.or_err(ErrorType::WriteError, "end a body")?;
            self.ended = true;
        }
        self.send_rest().await
    }

    fn is_body_empty(&mut self) -> bool {
        self.bytes_read == 0 && self.body.is_end_stream()
    }

    /// Without a body, ends when the client has reset the stream or the connection has ended.
    async fn read_body_or_idle(&mut self, no_body_expected: bool) -> Result<Option<Bytes>> {
        if !no_body_expected && !self.body.is_end_stream() {
            return self.read_body_bytes().await;
        }
        // However it ended, nobody waits any more.
        let _ = match &mut self.answer_body {
            Some(stream) => poll_fn(|cx| stream.poll_reset(cx)).await,
            None => poll_fn(|cx| self.answer.poll_reset(cx)).await,
        };
        Error::e_explain(ErrorType::H2Error, "the client left")
    }

    fn body_bytes_sent(&self) -> usize {
        self.bytes_sent
    }

    fn body_bytes_read(&self) -> usize {
        self.bytes_read
    }

    fn digest(&self) -> Option<&Digest> {
        Some(&self.digest)
    }

    fn digest_mut(&mut self) -> Option<&mut Digest> {
        None
    }

    fn client_addr(&self) -> Option<&SocketAddr> {
        None
    }

    fn server_addr(&self) -> Option<&SocketAddr> {
        None
    }

    fn pseudo_raw_h1_request_header(&self) -> Bytes {
        Bytes::new()
    }

    /// A body never goes on to an upstream; only its size counts.
    fn enable_retry_buffering(&mut self) {}

    fn retry_buffer_truncated(&self) -> bool {
        self.bytes_read > RETRY_BYTES_MAX
    }

    fn get_retry_buffer(&self) -> Option<Bytes> {
        (self.bytes_read > 0).then(Bytes::new)
    }

    async fn finish_custom(&mut self) -> Result<()> {
        Ok(())
    }

    fn take_custom_message_reader(&mut self) -> Option<Messages> {
        None
    }

    fn restore_custom_message_reader(&mut self, _: Messages) -> Result<()> {
        Ok(())
    }

    fn take_custom_message_writer(&mut self) -> Option<Box<dyn CustomMessageWrite>> {
        None
    }

    fn restore_custom_message_writer(&mut self, _: Box<dyn CustomMessageWrite>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
