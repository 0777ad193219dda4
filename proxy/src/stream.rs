//! A stream of HTTP/2 as the h2 crate has it: the request, and the answer.
//!
//! A session of Pingora's around it copies every header of the request and of the answer, and is
//! needed only where Pingora's proxy passes the request on.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, header};
use pingora_core::protocols::http::date::get_cached_date;
use rampart_core::http::reply::Reply;
use tokio::time::timeout;

use crate::exchange::{NoBody, Source, declared_length, has_body};

/// Time for one step of an answer whose client may close its window.
pub(crate) const WRITE_MAX: Duration = Duration::from_secs(10);

/// Headers whose value is another one in every answer: in the connection's table (RFC 7541, section
/// 2.3.2) they would only push out what repeats. The h2 crate leaves out what is sensitive.
const FRESH_FIELDS: [&str; 2] = ["x-request-id", "ratelimit"];

/// A request, and where its answer goes.
pub(crate) struct Stream {
    pub(crate) head: Parts,
    pub(crate) body: Body,
    pub(crate) answer: Answer,
}

impl Stream {
    /// What a connection has accepted.
    pub(crate) fn new(request: Request<RecvStream>, answer: SendResponse<Bytes>) -> Self {
        let (head, body) = request.into_parts();
        let body = Body { stream: body, declared: declared_length(&head.headers), read: 0 };
        Self { head, body, answer: Answer(answer) }
    }
}

/// The body of a request, as it arrives.
pub(crate) struct Body {
    stream: RecvStream,
    declared: Option<u64>,
    /// Bytes that have been read.
    pub(crate) read: usize,
}

impl Source for Body {
    fn declared(&self) -> Option<u64> {
        self.declared
    }

    fn is_empty(&mut self) -> bool {
        self.read == 0 && self.is_done()
    }

    fn is_done(&mut self) -> bool {
        self.stream.is_end_stream()
    }

    /// Nobody keeps a body back: the window of the stream is open from its beginning.
    async fn invite(&mut self) -> Result<(), NoBody> {
        Ok(())
    }

    /// What is wrong with a body ends its stream or the connection: nobody waits for an answer then.
    async fn next(&mut self) -> Result<Option<Bytes>, NoBody> {
        let Some(part) = self.stream.data().await else { return Ok(None) };
        let part = part.map_err(|_| NoBody::Gone)?;
        self.read += part.len();
        let released = self.stream.flow_control().release_capacity(part.len());
        released.map_err(|_| NoBody::Gone)?;
        Ok(Some(part))
    }
}

/// Where the answer to a request goes.
pub(crate) struct Answer(SendResponse<Bytes>);

/// What was sent of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Status of its head; 0 when not even that was.
    pub(crate) status: u16,
    /// Bytes of its body.
    pub(crate) body: usize,
}

impl Answer {
    /// Ends when the client has reset the stream or the connection has ended.
    pub(crate) async fn given_up(&mut self) {
        // However it ended, nobody waits any more.
        let _ = poll_fn(|cx| self.0.poll_reset(cx)).await;
    }

    /// Sends `reply` as the answer to a request with `method`, to `HEAD` without its body.
    pub(crate) async fn send(&mut self, method: &Method, reply: Reply) -> Sent {
        let Reply { status, headers, mut body, .. } = reply;
        let mut head = Response::new(());
        *head.status_mut() = status;
        *head.headers_mut() = with_framing(headers, has_body(status).then_some(body.len()));
        if !has_body(status) || method == Method::HEAD {
            body.clear();
        }
        match self.0.send_response(head, body.is_empty()) {
            Ok(stream) => Sent { status: status.as_u16(), body: send_body(stream, body).await },
            Err(_) => Sent::default(),
        }
    }
}

/// The headers of an answer with those that HTTP itself adds.
fn with_framing(mut headers: HeaderMap, length: Option<usize>) -> HeaderMap {
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    headers.insert(header::DATE, get_cached_date());
    for name in FRESH_FIELDS {
        if let Some(value) = headers.get_mut(name) {
            value.set_sensitive(true);
        }
    }
    headers
}

/// Sends as much of `body` as the client takes, each step within [`WRITE_MAX`]; says how many bytes
/// those were. A stream that is dropped before its end is reset.
async fn send_body(mut stream: SendStream<Bytes>, mut body: Bytes) -> usize {
    let length = body.len();
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        if stream.capacity() == 0 {
            match timeout(WRITE_MAX, poll_fn(|cx| stream.poll_capacity(cx))).await {
                Ok(Some(Ok(_))) => continue,
                _ => break,
            }
        }
        let part = body.split_to(stream.capacity().min(body.len()));
        let (bytes, last) = (part.len(), body.is_empty());
        if stream.send_data(part, last).is_err() {
            return length - body.len() - bytes;
        }
    }
    length - body.len()
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use tokio::task::JoinHandle;

    use super::*;

    /// Bytes that the client takes before it gives more room.
    const WINDOW: u32 = 10;

    /// A client's answer, not read yet, and what the server sent of `body` in the end.
    async fn answered(
        method: Method,
        status: StatusCode,
        body: &'static str,
    ) -> (Response<RecvStream>, JoinHandle<Sent>) {
        let (near, far) = tokio::io::duplex(4096);
        let serving = tokio::spawn(async move {
            let mut connection = h2::server::handshake(near).await.unwrap();
            let (request, answer) = connection.accept().await.unwrap().unwrap();
            tokio::spawn(async move { while connection.accept().await.is_some() {} });
            let Stream { head, body: mut asked, mut answer } = Stream::new(request, answer);
            assert!(asked.is_empty() && asked.next().await.unwrap().is_none());
            let reply = Reply::with_body(status, "text/plain", Bytes::from_static(body.as_bytes()));
            answer.send(&head.method, reply).await
        });
        let mut client = h2::client::Builder::new();
        let handshake = client.initial_window_size(WINDOW).handshake::<_, Bytes>(far);
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let uri = "https://a/";
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let answer = sender.send_request(request, true).unwrap().0.await.unwrap();
        (answer, serving)
    }

    #[tokio::test]
    async fn an_answer_larger_than_the_window_arrives_whole() {
        let text = "three times as long as the window";
        let (answer, serving) = answered(Method::GET, StatusCode::OK, text).await;
        assert_eq!(answer.headers()[header::CONTENT_LENGTH], text.len().to_string());
        assert!(answer.headers().contains_key(header::DATE));
        let (mut body, mut seen) = (answer.into_body(), Vec::new());
        while let Some(part) = body.data().await {
            let part = part.unwrap();
            body.flow_control().release_capacity(part.len()).unwrap();
            seen.extend_from_slice(&part);
        }
        assert_eq!(seen, text.as_bytes());
        assert_eq!(serving.await.unwrap(), Sent { status: 200, body: text.len() });
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
        let text = "longer than the window";
        let (answer, serving) = answered(Method::GET, StatusCode::OK, text).await;
        let sent = Sent { status: 200, body: usize::try_from(WINDOW).unwrap() };
        assert_eq!(serving.await.unwrap(), sent);
        let mut body = answer.into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), text.as_bytes()[..10]);
        assert!(body.data().await.unwrap().unwrap_err().is_reset());
    }

    #[tokio::test]
    async fn an_answer_without_a_body_says_so_at_once() {
        for (method, status, length) in [
            (Method::HEAD, StatusCode::OK, Some("4")),
            (Method::GET, StatusCode::NO_CONTENT, None),
            (Method::GET, StatusCode::NOT_MODIFIED, None),
        ] {
            let (answer, serving) = answered(method, status, "text").await;
            let said = answer.headers().get(header::CONTENT_LENGTH);
            assert_eq!(said.map(|value| value.to_str().unwrap()), length, "{status}");
            assert!(answer.body().is_end_stream(), "{status}");
            assert_eq!(serving.await.unwrap(), Sent { status: status.as_u16(), body: 0 });
        }
    }
}
