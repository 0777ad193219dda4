//! Pingora writes head and body of an answer apart, a record and a system call each, and waits
//! without end for a peer that takes neither; here they leave together, and such a peer is given up.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf as _, BytesMut};
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream,
    TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

use super::deadline::Deadline;
use super::http2::FrameScan;
use super::request_reader::RequestReader;
use super::send_rate::{SendBounds, SendRate};

/// Most bytes held back until a flush; the largest TLS record.
const HELD_BYTES_MAX: usize = 16 * 1024;
/// Bytes that are made room for when something is held; most answers fit.
const HELD_BYTES: usize = 4 * 1024;
/// Time for the end of a connection.
const SHUTDOWN_MAX: Duration = Duration::from_secs(1);
/// Most bytes that are thrown away after the last answer.
const LINGER_BYTES_MAX: usize = 1024 * 1024;
/// Time in which they are thrown away.
const LINGER_MAX: Duration = Duration::from_secs(1);
/// Bytes of them that are read at once.
const LINGER_BYTES: usize = 4 * 1024;

/// The reading side of a connection.
#[derive(Debug)]
pub(super) enum Reading {
    /// Requests of HTTP/1, one by one.
    Requests(RequestReader),
    /// Frames of HTTP/2 as they come.
    Frames(FrameScan),
}

/// A stream that gathers what is written until it is flushed.
#[derive(Debug)]
pub(super) struct BufferedIo {
    stream: Stream,
    reading: Reading,
    digest: Arc<ProxyDigest>,
    held: BytesMut,
    /// Something was held since the last flush.
    is_fresh: bool,
    /// Flushes wait for the answers of other streams: in HTTP/2, once its preface has left.
    defers: bool,
    rate: SendRate,
    /// Bytes thrown away after the last answer, and the time for it.
    lingered: usize,
    linger: Deadline,
}

impl BufferedIo {
    /// In front of `stream`, whose sessions find `digest`. A peer slower than `bounds` is an error.
    pub(super) fn new(
        stream: Stream,
        reading: Reading,
        digest: Arc<ProxyDigest>,
        bounds: SendBounds,
    ) -> Self {
        let (held, rate) = (BytesMut::new(), SendRate::new(bounds));
        let (is_fresh, defers, linger) = (false, false, Deadline::default());
        Self { stream, reading, digest, held, is_fresh, defers, rate, lingered: 0, linger }
    }

    /// Waits until the head of the next request is there; `false`, and the peer has been told, when
    /// the connection has ended. In HTTP/2 it waits for nothing.
    pub(super) async fn next_request(&mut self) -> bool {
        let Reading::Requests(requests) = &mut self.reading else { return true };
        requests.expect_next();
        let stream = &mut self.stream;
        match poll_fn(|cx| requests.poll_request(cx, stream)).await {
            Ok(true) => {
                self.rate.done();
                true
            }
            Ok(false) => {
                Shutdown::shutdown(self).await;
                false
            }
            Err(_) => false,
        }
    }

    /// True while the first head is on its way, or one of which a part has come; not in HTTP/2.
    pub(super) fn awaits_head(&self) -> bool {
        matches!(&self.reading, Reading::Requests(requests) if requests.awaits_head())
    }

    /// Gives the held bytes to the stream.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let written = Pin::new(&mut self.stream).poll_write(cx, &self.held);
            let written = ready!(self.paced_bytes(cx, written))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.held.advance(written);
        }
        // Nothing is kept: most connections wait for a request most of the time.
        self.held = BytesMut::new();
        Poll::Ready(Ok(()))
    }

    /// Turns a write for which the peer is too slow into an error.
    fn paced<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            return write;
        }
        self.rate.poll_given_up(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// The same for a write that says how many bytes the peer took.
    fn paced_bytes(
        &mut self,
        cx: &mut Context<'_>,
        write: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.paced(cx, write))?;
        self.rate.took(written);
        Poll::Ready(Ok(written))
    }

    /// Throws away what the client still sends after a last answer, for [`LINGER_MAX`] at most, so
    /// that the answer is not lost to the reset that unread bytes cause.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut room = [0; LINGER_BYTES];
        while self.lingered < LINGER_BYTES_MAX {
            let mut bytes = ReadBuf::new(&mut room);
            match Pin::new(&mut self.stream).poll_read(cx, &mut bytes) {
                Poll::Ready(Ok(())) if !bytes.filled().is_empty() => {
                    self.lingered += bytes.filled().len();
                }
                Poll::Ready(_) => break,
                Poll::Pending => return self.linger.poll(cx, LINGER_MAX),
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for BufferedIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, reading, .. } = &mut *self;
        let before = buf.filled().len();
        let requests = match reading {
            Reading::Requests(requests) => requests,
            Reading::Frames(frames) => {
                let read = Pin::new(stream).poll_read(cx, buf);
                if read.is_pending() {
                    frames.poll_deadline(cx);
                }
                ready!(read)?;
                frames.advance(&buf.filled()[before..]);
                return Poll::Ready(Ok(()));
            }
        };
        ready!(requests.poll_read(cx, stream, buf))?;
        if buf.filled().len() == before {
            // Pingora drops a connection that has ended, without a word to the peer.
            return self.poll_shutdown(cx);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for BufferedIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.held.len() + bytes.len() > HELD_BYTES_MAX {
            ready!(self.poll_drain(cx))?;
        }
        if bytes.len() >= HELD_BYTES_MAX {
            let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
            return self.paced_bytes(cx, written);
        }
        if self.held.is_empty() {
            self.held.reserve(HELD_BYTES);
        }
        self.held.extend_from_slice(bytes);
        self.is_fresh = true;
        Poll::Ready(Ok(bytes.len()))
    }

    /// In HTTP/2, of many streams, what was just written leaves when the connection is polled next:
    /// behind the tasks that are ready now, whose answers then leave with it, in one record. The
    /// connection flushes each time that it is polled, and this has it polled again.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.is_fresh) && self.defers {
            cx.waker().wake_by_ref();
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_drain(cx))?;
        self.defers = matches!(self.reading, Reading::Frames(_));
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        ready!(self.paced(cx, flushed))?;
        if self.defers {
            // Each of the streams has a pace of its own.
            self.rate.done();
        } else {
            // It may be a part of an answer, which is over when the next request is there.
            self.rate.pause();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        let closed = Pin::new(&mut self.stream).poll_shutdown(cx);
        ready!(self.paced(cx, closed))?;
        // In HTTP/2 the last answer is the frame that says why the connection ends.
        if matches!(self.reading, Reading::Frames(_)) {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}

#[async_trait]
impl Shutdown for BufferedIo {
    async fn shutdown(&mut self) {
        // The connection ends either way; a peer that is gone already is not worth a line.
        let _ = timeout(SHUTDOWN_MAX, AsyncWriteExt::shutdown(self)).await;
        if matches!(self.reading, Reading::Requests(_)) {
            poll_fn(|cx| self.poll_linger(cx)).await;
        }
    }
}

impl UniqueID for BufferedIo {
    fn id(&self) -> UniqueIDType {
        self.stream.id()
    }
}

/// The one digest that sessions read: all that is to be known of their connection.
impl GetProxyDigest for BufferedIo {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        Some(Arc::clone(&self.digest))
    }
}

impl GetSocketDigest for BufferedIo {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        None
    }
}

impl GetTimingDigest for BufferedIo {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl Ssl for BufferedIo {}

impl Peek for BufferedIo {}

#[cfg(test)]
mod tests {
    use pingora_core::protocols::l4::stream::Stream as Socket;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixStream;

    use super::super::connection_info::ConnectionInfo;
    use super::super::deadline::now;
    use super::super::http2::header_memory;
    use super::*;

    /// Time for a head.
    const HEAD_MAX: Duration = Duration::from_secs(10);

    fn pair() -> (BufferedIo, UnixStream) {
        let (wire, _, far) = connection();
        (wire, far)
    }

    fn connection() -> (BufferedIo, Arc<ConnectionInfo>, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let bounds = SendBounds { rate_min_bytes: 1_024, total: None };
        let stream: Stream = Box::new(Socket::from(near));
        let info = ConnectionInfo::new(&stream, [127, 0, 0, 1].into(), None);
        let frames = FrameScan::new(Arc::clone(&info), HEAD_MAX, header_memory());
        let frames = Reading::Frames(frames);
        (BufferedIo::new(stream, frames, info.digest(), bounds), info, far)
    }

    #[tokio::test(start_paused = true)]
    async fn a_header_block_of_http2_that_does_not_end_in_time_ends_its_connection() {
        let (mut wire, info, mut far) = connection();
        let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // HEADERS on stream 1, of one byte, without END_HEADERS.
        sent.extend([0, 0, 1, 0x1, 0, 0, 0, 0, 1, 0x82]);
        far.write_all(&sent).await.unwrap();
        let (began, mut room) = (now(), [0; 64]);
        tokio::select! {
            biased;
            () = info.hostile() => {}
            () = async { while wire.read(&mut room).await.is_ok() {} } => {}
        }
        assert!(now() - began >= HEAD_MAX);
    }

    #[tokio::test]
    async fn nothing_leaves_before_the_flush_and_then_all_at_once() {
        let (mut wire, mut far) = pair();
        wire.write_all(b"head ").await.unwrap();
        wire.write_all(b"body").await.unwrap();
        let mut bytes = [0; 64];
        assert!(far.try_read(&mut bytes).is_err());
        wire.flush().await.unwrap();
        let read = far.read(&mut bytes).await.unwrap();
        assert_eq!(&bytes[..read], b"head body");
    }

    #[tokio::test]
    async fn answers_of_streams_leave_together_when_none_is_new() {
        let (mut wire, mut far) = pair();
        let mut bytes = [0; 64];
        for part in ["preface", "one ", "two "] {
            wire.write_all(part.as_bytes()).await.unwrap();
            wire.flush().await.unwrap();
        }
        let read = far.read(&mut bytes).await.unwrap();
        assert_eq!(&bytes[..read], b"preface", "the first flush waits for nothing");
        assert!(far.try_read(&mut bytes).is_err());
        wire.flush().await.unwrap();
        let read = far.read(&mut bytes).await.unwrap();
        assert_eq!(&bytes[..read], b"one two ");
    }

    #[tokio::test]
    async fn large_writes_keep_their_order() {
        let (mut wire, mut far) = pair();
        let large = vec![7; 3 * HELD_BYTES_MAX];
        let sent = large.clone();
        let writing = tokio::spawn(async move {
            wire.write_all(b"first").await.unwrap();
            wire.write_all(&sent).await.unwrap();
            wire.write_all(b"last").await.unwrap();
            Shutdown::shutdown(&mut wire).await;
        });
        let mut all = Vec::new();
        far.read_to_end(&mut all).await.unwrap();
        writing.await.unwrap();
        assert_eq!(all, [b"first".as_slice(), &large, b"last"].concat());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_given_up() {
        let (mut wire, _far) = pair();
        let flood = vec![0; 8 * 1024 * 1024];
        let stalled = wire.write_all(&flood).await.unwrap_err();
        assert_eq!(stalled.kind(), io::ErrorKind::TimedOut);
    }
}
