//! A request that has arrived whole, and its answer as the bytes of HTTP/1.1.
//!
//! Nearly every request of the API comes in one piece. A session of Pingora's, which can wait for
//! the rest of a body, change protocols and measure, costs a fifth of what a small request takes;
//! so it is made only where it is needed, and [`Whole::read`] says where that is. Refusals of what is
//! no request are written here too.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::header::{CONNECTION, EXPECT, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Response};
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::date::get_cached_date;
use pingora_http::ResponseHeader;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::BODY_BYTES_MAX;
use tokio::io::AsyncWriteExt as _;

use crate::exchange::{declared_length, has_body};
use crate::framing::HEADERS_MAX;

/// Bytes that most heads of answers take.
const HEAD_BYTES: usize = 1024;
/// With one of these a request may be in several parts, or change the protocol.
const SESSION_FIELDS: [HeaderName; 3] = [EXPECT, TRANSFER_ENCODING, UPGRADE];

/// A request, body included, on a connection that can go on after it.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) method: Method,
    pub(crate) target: PathAndQuery,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Whole {
    /// The request that `bytes` is, whose head is sound.
    ///
    /// # Errors
    /// With `bytes`, when it takes a session: it is not all there or not small, another version than
    /// 1.1, not about a path, or it has something to say about the connection.
    pub(crate) fn read(bytes: BytesMut) -> Result<Self, BytesMut> {
        let bytes = bytes.freeze();
        Self::parsed(&bytes).ok_or_else(|| BytesMut::from(bytes))
    }

    fn parsed(bytes: &Bytes) -> Option<Self> {
        let mut fields = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut head = httparse::Request::new(&mut []);
        let parsed = head.parse_with_uninit_headers(bytes, &mut fields).ok()?;
        let httparse::Status::Complete(length) = parsed else { return None };
        let (method, target) = (head.method?, head.path.filter(|path| path.starts_with('/'))?);
        if head.version != Some(1) || method == Method::CONNECT.as_str() {
            return None;
        }
        let mut headers = HeaderMap::with_capacity(head.headers.len());
        for field in head.headers.iter() {
            let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
            let ends = name == CONNECTION && !field.value.eq_ignore_ascii_case(b"keep-alive");
            if ends || SESSION_FIELDS.contains(&name) {
                return None;
            }
            let value = HeaderValue::from_maybe_shared(bytes.slice_ref(field.value)).ok()?;
            headers.try_append(name, value).ok()?;
        }
        let body = bytes.slice(length..);
        let declared = declared_length(&headers).unwrap_or(0);
        if body.len() as u64 != declared || body.len() > BODY_BYTES_MAX {
            return None;
        }
        Some(Self {
            method: Method::from_bytes(method.as_bytes()).ok()?,
            target: PathAndQuery::from_maybe_shared(bytes.slice_ref(target.as_bytes())).ok()?,
            headers,
            body,
        })
    }
}

/// Writes `reply` as the answer to a request with `method`, to `HEAD` without its body. Says that
/// the connection ends with it unless it is to be `kept`. Gives the length of the body in bytes.
///
/// # Errors
/// When the client does not take it.
pub(crate) async fn answer(
    stream: &mut Stream,
    method: &Method,
    reply: Reply,
    kept: bool,
) -> io::Result<usize> {
    let (mut head, mut body) = written(reply, kept);
    if method == Method::HEAD {
        body.clear();
    }
    let length = body.len();
    while head.has_remaining() && body.has_remaining() {
        match stream.write_vectored(&[IoSlice::new(&head), IoSlice::new(&body)]).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            sent => {
                let of_head = sent.min(head.len());
                head.advance(of_head);
                body.advance(sent - of_head);
            }
        }
    }
    stream.write_all(&head).await?;
    stream.write_all(&body).await?;
    stream.flush().await?;
    Ok(length)
}

/// The head of an answer, and its body.
fn written(reply: Reply, kept: bool) -> (BytesMut, Bytes) {
    let Reply { status, headers, body, .. } = reply;
    let mut head = BytesMut::with_capacity(HEAD_BYTES);
    for part in ["HTTP/1.1 ", status.as_str(), " ", status.canonical_reason().unwrap_or_default()] {
        head.put_slice(part.as_bytes());
    }
    head.put_slice(b"\r\n");
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.headers = headers;
    // Spells the names as it does in every other answer.
    ResponseHeader::from(parts).header_to_h1_wire(&mut head);
    if has_body(status) {
        head.put_slice(b"Content-Length: ");
        head.put_slice(body.len().to_string().as_bytes());
        head.put_slice(b"\r\n");
    }
    head.put_slice(b"Date: ");
    head.put_slice(get_cached_date().as_bytes());
    head.put_slice(match kept {
        true => b"\r\nConnection: keep-alive\r\n\r\n",
        false => b"\r\nConnection: close\r\n\r\n",
    });
    (head, if has_body(status) { body } else { Bytes::new() })
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use pingora_core::protocols::http::ServerSession;
    use pingora_core::protocols::l4::stream::Stream as Socket;
    use proptest::prelude::*;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixStream;

    use super::*;
    use crate::framing;

    fn read(text: &str) -> Result<Whole, BytesMut> {
        Whole::read(BytesMut::from(text))
    }

    #[test]
    fn a_request_in_one_piece_is_read() {
        let whole =
            read("POST /a%20b?c=d HTTP/1.1\r\nHost: a\r\ncontent-length: 2\r\n\r\n{}").unwrap();
        assert_eq!((whole.method, &whole.body[..]), (Method::POST, b"{}".as_slice()));
        assert_eq!((whole.target.path(), whole.target.query()), ("/a%20b", Some("c=d")));
        assert_eq!(whole.headers["host"], "a");
        for head in ["Connection: Keep-Alive\r\n", "X: \u{e4}\r\nX: 2\r\n", ""] {
            assert!(
                read(&format!("\r\nGET / HTTP/1.1\r\nHost: a\r\n{head}\r\n")).is_ok(),
                "{head}"
            );
        }
    }

    #[test]
    fn what_takes_a_session_is_given_back() {
        for text in [
            "GET / HTTP/1.0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n{}",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n{}",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ] {
            assert_eq!(read(text).unwrap_err(), text.as_bytes(), "{text}");
        }
        let body = " ".repeat(BODY_BYTES_MAX + 1);
        let large = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        assert_eq!(read(&large).unwrap_err(), large.as_bytes());
    }

    /// The other way in, for comparison.
    async fn session_of(bytes: BytesMut) -> ServerSession {
        let (near, _far) = UnixStream::pair().unwrap();
        let mut session = ServerSession::new_http1(Box::new(Socket::from(near)));
        session.set_pipelined_prefix(bytes);
        assert!(session.read_request().await.unwrap());
        session
    }

    proptest! {
        #[test]
        fn a_request_says_the_same_to_both_ways_in(
            method in "GET|HEAD|POST|DELETE|X-Y",
            target in "/[!-~&&[^\"<>\\\\^`{}|]]{0,40}",
            fields in prop::collection::vec(
                ("X-[A-Za-z0-9_-]{1,8}|Accept|Cookie|AUTHORIZATION", "[ \t]*[ -~\u{e4}]{0,20}[ \t]*"),
                0..8,
            ),
            body in prop::option::of("[ -~]{0,40}"),
        ) {
            let mut text = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n");
            for (name, value) in &fields {
                text += &format!("{name}:{value}\r\n");
            }
            if let Some(body) = &body {
                text += &format!("Content-Length: {}\r\n", body.len());
            }
            text += "\r\n";
            prop_assume!(framing::check(text.as_bytes()).is_ok());
            let body = body.unwrap_or_default();
            let bytes = BytesMut::from(&*(text + &body));
            let Ok(whole) = Whole::read(bytes.clone()) else { return Ok(()) };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let session = runtime.block_on(session_of(bytes));
            let request = session.req_header();
            prop_assert_eq!(&whole.method, &request.method);
            prop_assert_eq!(whole.target.as_str().as_bytes(), request.raw_path());
            prop_assert_eq!(&whole.headers, &request.headers);
            prop_assert_eq!(&whole.body, body.as_bytes());
        }
    }

    async fn answered(method: Method, reply: Reply, kept: bool) -> (usize, String) {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut stream: Stream = Box::new(Socket::from(near));
        let length = answer(&mut stream, &method, reply, kept).await.unwrap();
        drop(stream);
        let mut text = String::new();
        far.read_to_string(&mut text).await.unwrap();
        (length, text)
    }

    #[tokio::test]
    async fn an_answer_is_complete_and_says_whether_the_connection_goes_on() {
        let mut reply = Reply::with_body(StatusCode::BAD_REQUEST, "application/json", "{}".into());
        reply.set("x-request-id", "abc");
        let (length, text) = answered(Method::GET, reply.clone(), false).await;
        assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{text}");
        assert!(
            text.contains("\r\nx-request-id: abc\r\n") && text.contains("\r\nDate: "),
            "{text}"
        );
        assert!(text.contains("\r\nContent-Length: 2\r\n"), "{text}");
        assert!(text.ends_with("\r\nConnection: close\r\n\r\n{}") && length == 2, "{text}");
        let (length, text) = answered(Method::HEAD, reply, true).await;
        assert!(text.contains("\r\nContent-Length: 2\r\n"), "{text}");
        assert!(text.ends_with("\r\nConnection: keep-alive\r\n\r\n") && length == 0, "{text}");
        for status in [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED] {
            let (_, text) = answered(Method::GET, Reply::empty(status), true).await;
            assert!(!text.to_lowercase().contains("content-length"), "{text}");
        }
    }
}
