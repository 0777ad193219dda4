//! Pingora bounds neither the time nor the ambiguity of a head, so it sees one only when it is whole
//! and sound, and nothing behind its request before that is answered.
//!
//! In the place of a head that is refused it reads [`PLACEHOLDER`]; the handler finds the reason in
//! [`ConnectionInfo`] and answers that.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use http::header;
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::authority::validate_request_authority;
use pingora_http::RequestHeader;
use tokio::io::{AsyncRead as _, ReadBuf};

use super::connection_info::ConnectionInfo;
use super::deadline::Deadline;
use super::framing::{self, Body, HeadError, Scan};

/// The request that Pingora reads where a head was refused.
const PLACEHOLDER: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
/// The header that is kept of a head that is refused.
const REQUEST_ID: &[u8] = b"x-request-id:";
/// Most bytes that are read at once, and ahead while a request is answered.
const AHEAD_BYTES_MAX: usize = 4 * 1024;

/// Bounds of a connection's waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// From the first byte of a head to its last, and from the connection to the first byte.
    pub(super) head: Duration,
    /// From the end of an answer to the first byte of the next request.
    pub(super) idle: Duration,
}

/// Reads the requests of one connection of HTTP/1.
#[derive(Debug)]
pub(super) struct RequestReader {
    info: Arc<ConnectionInfo>,
    timeouts: Timeouts,
    deadline: Deadline,
    /// Arrived and not given to Pingora.
    held: BytesMut,
    /// Bytes at the beginning of `held` that belong to the current request.
    released: usize,
    scan: Scan,
    /// The part of the current request's body that has not arrived.
    rest: Body,
    /// The current request is not answered: only after it the next one is given.
    is_answering: bool,
    first: bool,
}

impl RequestReader {
    pub(super) fn new(info: Arc<ConnectionInfo>, timeouts: Timeouts) -> Self {
        Self {
            info,
            timeouts,
            deadline: Deadline::default(),
            held: BytesMut::new(),
            released: 0,
            scan: Scan::default(),
            rest: Body::None,
            is_answering: false,
            first: true,
        }
    }

    /// Fills `buf` with bytes of the current request, or of the next one when that is expected; with
    /// none at the end of the connection, be it that the client takes too long.
    ///
    /// # Errors
    /// When the connection is broken, or the body is not delimited as chunks are.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.released > 0 || matches!(self.rest, Body::None) {
            if ready!(self.poll_request(cx, stream))? {
                self.give(buf);
            }
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(stream).poll_read(cx, buf))?;
        let own = self.rest.follow(&buf.filled()[before..]);
        let own = own.map_err(|_| io::ErrorKind::InvalidData)?;
        self.held.extend_from_slice(&buf.filled()[before + own..]);
        buf.set_filled(before + own);
        Poll::Ready(Ok(()))
    }

    /// Notes that the current request is answered, and the next one expected.
    pub(super) fn expect_next(&mut self) {
        self.is_answering = false;
    }

    /// True while the first head is on its way, or the next one, of which a part has come.
    pub(super) fn awaits_head(&self) -> bool {
        self.first || !self.held.is_empty()
    }

    /// Waits for a whole head when the next request is expected; `false` at the end of the
    /// connection, be it that the client takes too long.
    ///
    /// # Errors
    /// When the connection is broken.
    pub(super) fn poll_request(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
    ) -> Poll<io::Result<bool>> {
        loop {
            if self.released > 0 {
                return Poll::Ready(Ok(true));
            }
            if !self.is_answering && !self.held.is_empty() && self.examine() {
                continue;
            }
            if self.is_answering && self.held.len() >= AHEAD_BYTES_MAX {
                return Poll::Pending;
            }
            let mut room = [MaybeUninit::uninit(); AHEAD_BYTES_MAX];
            let mut arrived = ReadBuf::uninit(&mut room);
            let read = Pin::new(&mut *stream).poll_read(cx, &mut arrived);
            if read.is_pending() && !self.is_answering {
                ready!(self.deadline.poll(cx, self.wait()));
                return Poll::Ready(Ok(false));
            }
            ready!(read)?;
            if arrived.filled().is_empty() {
                return Poll::Ready(Ok(false));
            }
            if self.held.is_empty() {
                self.deadline.clear();
            }
            self.held.extend_from_slice(arrived.filled());
        }
    }

    /// The first head must be complete soon after the connection; later ones may first idle.
    fn wait(&self) -> Duration {
        if self.held.is_empty() && !self.first { self.timeouts.idle } else { self.timeouts.head }
    }

    fn give(&mut self, buf: &mut ReadBuf<'_>) {
        let given = self.released.min(buf.remaining());
        buf.put_slice(&self.held[..given]);
        self.held.advance(given);
        self.released -= given;
        if self.held.is_empty() {
            // Nothing is kept: most connections wait for a request most of the time.
            self.held = BytesMut::new();
        }
    }

    /// Looks for a head at the beginning of what is held, and releases its request if there is one.
    fn examine(&mut self) -> bool {
        let released = match self.scan.advance(&self.held) {
            Ok(None) => return false,
            Ok(Some(head)) => self.begin(head),
            Err(error) => Err(error),
        };
        self.released = released.unwrap_or_else(|error| {
            // The cells are empty: a connection does not go on after a refusal.
            let _ = self.info.head_error.set(error);
            let _ = self.info.refused_method.set(framing::method(&self.held).into());
            if let Some(id) = first_value(&self.held, REQUEST_ID) {
                let _ = self.info.refused_request_id.set(id.into());
            }
            self.held = BytesMut::from(PLACEHOLDER);
            PLACEHOLDER.len()
        });
        self.scan = Scan::default();
        self.deadline.clear();
        self.first = false;
        self.is_answering = true;
        true
    }

    /// Checks the head of this length and says how many of the held bytes its request has.
    fn begin(&mut self, head: usize) -> Result<usize, HeadError> {
        let (head, behind) = self.held.split_at(head);
        let body = framing::check(head)?;
        if !is_understood(head) {
            return Err(HeadError::Malformed("not an HTTP request"));
        }
        self.rest = body;
        Ok(head.len() + self.rest.follow(behind)?)
    }
}

/// The first value of a header, whose name ends with its colon, among the whole fields of a head, which
/// may be incomplete. A body that follows the head is not looked at.
fn first_value<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let lines = head.split_inclusive(|&byte| byte == b'\n');
    let whole = lines.map_while(|line| line.strip_suffix(b"\n"));
    let stripped = whole.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    // The request line comes first, perhaps after an empty one.
    let fields = stripped.skip_while(|line| line.is_empty()).skip(1);
    fields.take_while(|line| !line.is_empty()).find_map(|line| {
        let (own, value) = line.split_at_checked(name.len())?;
        own.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
    })
}

/// Pingora takes the target of this sound head. What it refuses, it would answer itself.
fn is_understood(head: &[u8]) -> bool {
    let mut words = head.trim_ascii_start().split(|&byte| byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if target.starts_with(b"/") || target == b"*" {
        return true;
    }
    let request = RequestHeader::build(method, target, Some(1)).and_then(|mut request| {
        if let Some(host) = first_value(head, b"host:") {
            request.insert_header(header::HOST, host)?;
        }
        validate_request_authority(&request)
    });
    request.is_ok()
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use pingora_core::protocols::l4::stream::Stream as Socket;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::UnixStream;
    use tokio::time::timeout;

    use super::*;

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const TIMEOUTS: Timeouts =
        Timeouts { head: Duration::from_secs(10), idle: Duration::from_secs(60) };

    struct Near(Stream, RequestReader);

    fn pair() -> (Near, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let stream: Stream = Box::new(Socket::from(near));
        let info = ConnectionInfo::new(&stream, [127, 0, 0, 1].into(), None);
        let reader = RequestReader::new(info, TIMEOUTS);
        (Near(stream, reader), far)
    }

    impl Near {
        async fn read(&mut self) -> io::Result<Vec<u8>> {
            let mut room = [0; 4096];
            let mut buf = ReadBuf::new(&mut room);
            let Self(stream, reader) = self;
            poll_fn(|cx| reader.poll_read(cx, stream, &mut buf)).await?;
            Ok(buf.filled().to_vec())
        }
    }

    #[tokio::test]
    async fn requests_sent_together_are_given_one_by_one() {
        let (mut near, mut far) = pair();
        let post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab";
        let chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let all: [&[u8]; 4] = [GET, post, chunked, GET];
        far.write_all(&all.concat()).await.unwrap();
        for expected in all {
            assert_eq!(near.read().await.unwrap(), expected);
            let early = timeout(Duration::from_millis(1), near.read()).await;
            assert!(early.is_err(), "before it is answered");
            near.1.expect_next();
        }
    }

    #[tokio::test]
    async fn a_body_goes_on_to_its_end_and_no_further() {
        let (mut near, mut far) = pair();
        far.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na").await.unwrap();
        assert!(near.read().await.unwrap().ends_with(b"\r\n\r\na"));
        far.write_all(&[b"bc", GET].concat()).await.unwrap();
        assert_eq!(near.read().await.unwrap(), b"bc");
        near.1.expect_next();
        assert_eq!(near.read().await.unwrap(), GET);
    }

    #[tokio::test]
    async fn a_placeholder_stands_for_what_is_refused() {
        for (head, method) in [
            ("GET / HTTP/1.1\r\n\r\n", "GET"),
            ("GET https://A/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET"),
            ("POST / HTTP/1.1\r\nHost: a\r\nA\r\n\r\n", "POST"),
            ("P(ST / HTTP/1.1\r\nHost: a\r\n\r\n", ""),
            ("garbage\r\n\r\n", ""),
        ] {
            let (mut near, mut far) = pair();
            far.write_all(head.as_bytes()).await.unwrap();
            assert_eq!(near.read().await.unwrap(), PLACEHOLDER);
            let info = &near.1.info;
            assert!(info.head_error.get().is_some(), "{head}");
            assert_eq!(info.refused_method.get().map(|known| &**known), Some(method), "{head}");
        }
    }

    #[test]
    fn a_refused_head_has_the_request_id_of_its_whole_fields() {
        for (held, id) in [
            ("GET / HTTP/1.1\r\nX-Request-Id: a-1\r\n\r\n", Some("a-1")),
            ("\r\nGET / HTTP/1.1\r\nA: b\r\nx-request-ID:a\t\r\nX-Request-Id: b\r\n", Some("a")),
            ("GET /\nX-Request-Id: a\n", Some("a")),
            ("GET / HTTP/1.1\r\nX-Request-Id: a", None),
            ("GET / HTTP/1.1\r\nA: X-Request-Id: a\r\nX-Request-Id : a\r\n\r\n", None),
            ("X-Request-Id: a\r\n\r\n", None),
            ("POST / HTTP/1.1\r\n\r\nX-Request-Id: a\r\n", None),
            ("", None),
        ] {
            let found = first_value(held.as_bytes(), REQUEST_ID);
            assert_eq!(found, id.map(str::as_bytes), "{held:?}");
        }
    }

    #[tokio::test]
    async fn chunks_that_are_broken_later_are_an_error() {
        let (mut near, mut far) = pair();
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        far.write_all(head).await.unwrap();
        assert_eq!(near.read().await.unwrap(), head);
        far.write_all(b"x\r\n").await.unwrap();
        assert_eq!(near.read().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_trickles_in_is_given_up() {
        let (mut near, mut far) = pair();
        let trickle = tokio::spawn(async move {
            for byte in GET {
                if far.write_all(&[*byte]).await.is_err() {
                    return;
                }
                let second = timeout(Duration::from_secs(1), std::future::pending::<()>());
                assert!(second.await.is_err());
            }
        });
        let read = timeout(Duration::from_secs(12), near.read()).await.unwrap();
        assert!(read.unwrap().is_empty());
        drop(near);
        trickle.await.unwrap();
    }
}
