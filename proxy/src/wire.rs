//! The byte stream of one connection: what a reply is made of leaves in one write, and a peer
//! that does not read is given up.
//!
//! Pingora writes head and body of a reply one after the other. Over TLS each would be a record
//! and a system call of its own; here they share both.

use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf as _, BytesMut};
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::tls::{SslDigest, TlsRef};
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    Stream, TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Sleep;

use crate::framing::Chunks;

/// Most bytes held back until a flush; the largest TLS record.
const HELD_BYTES_MAX: usize = 16 * 1024;
/// Bytes that are made room for when something is held; most replies fit. Behind a cork several
/// are about to come, so there it is all that may be held.
const HELD_BYTES: usize = 4 * 1024;
/// How long the peer may take no byte while we have some to write.
const STALL_MAX: Duration = Duration::from_secs(10);
/// How long the end of a connection may take.
const SHUTDOWN_MAX: Duration = Duration::from_secs(1);

/// A stream that gathers what is written until it is flushed.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: Stream,
    held: BytesMut,
    stalled: Option<Pin<Box<Sleep>>>,
    tap: Arc<Tap>,
    cork: Cork,
}

/// Keeps what is flushed from leaving, while more is about to be written. What waits is still
/// bounded: more than [`HELD_BYTES_MAX`] leaves all the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cork(Arc<AtomicBool>);

impl Cork {
    /// From now on nothing leaves.
    pub(crate) fn hold(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// The next flush counts again.
    pub(crate) fn release(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    fn holds(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Looks at what is read, while a chunked body is.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    on: AtomicBool,
    chunks: Mutex<Option<Chunks>>,
}

impl Tap {
    /// From now on, what is read belongs to this body; or to none that needs watching.
    pub(crate) fn follow(&self, chunks: Option<Chunks>) {
        self.on.store(chunks.is_some(), Ordering::Release);
        *self.chunks.lock().unwrap_or_else(PoisonError::into_inner) = chunks;
    }

    fn see(&self, bytes: &[u8]) -> io::Result<()> {
        if !self.on.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        match chunks.as_mut().map_or(Ok(None), |chunks| chunks.feed(bytes)) {
            Ok(None) => Ok(()),
            Ok(Some(_)) => {
                // What comes behind it is not the body's; Pingora sees that and closes.
                self.on.store(false, Ordering::Release);
                Ok(())
            }
            Err(refused) => Err(io::Error::new(io::ErrorKind::InvalidData, refused.detail())),
        }
    }
}

impl Wire {
    /// Gathers writes in front of `stream`.
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            held: BytesMut::new(),
            stalled: None,
            tap: Arc::default(),
            cork: Cork::default(),
        }
    }

    /// For answering what came together in one write.
    pub(crate) fn cork(&self) -> Cork {
        self.cork.clone()
    }

    /// For saying what is read.
    pub(crate) fn tap(&self) -> Arc<Tap> {
        Arc::clone(&self.tap)
    }

    /// Gives the held bytes to the stream.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let written = Pin::new(&mut self.stream).poll_write(cx, &self.held);
            let written = ready!(self.timed(cx, written))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.held.advance(written);
        }
        // Nothing is kept: most connections wait for a request most of the time.
        self.held = BytesMut::new();
        Poll::Ready(Ok(()))
    }

    /// Turns a write that stays pending for [`STALL_MAX`] into an error.
    #[expect(clippy::disallowed_methods, reason = "the named bound of a write that stalls")]
    fn timed<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.stalled = None;
            return write;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL_MAX)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        Poll::Ready(self.tap.see(&buf.filled()[before..]))
    }
}

impl AsyncWrite for Wire {
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
            return self.timed(cx, written);
        }
        if self.held.is_empty() {
            let room = if self.cork.holds() { HELD_BYTES_MAX } else { HELD_BYTES };
            self.held.reserve(room);
        }
        self.held.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    /// Past what is held. Where something is held already, or is to be, the first part is held too.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.held.is_empty() || self.cork.holds() {
            let first = parts.iter().find(|part| !part.is_empty());
            return self.poll_write(cx, first.map_or(&[], |part| part));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.timed(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.cork.holds() {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_drain(cx))?;
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.timed(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        let closed = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.timed(cx, closed)
    }
}

#[async_trait]
impl Shutdown for Wire {
    async fn shutdown(&mut self) {
        // The connection ends either way; a peer that is gone already is not worth a line.
        let _ = tokio::time::timeout(SHUTDOWN_MAX, AsyncWriteExt::shutdown(self)).await;
    }
}

impl UniqueID for Wire {
    fn id(&self) -> UniqueIDType {
        self.stream.id()
    }
}

impl Ssl for Wire {
    fn get_ssl(&self) -> Option<&TlsRef> {
        self.stream.get_ssl()
    }

    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.stream.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.stream.selected_alpn_proto()
    }
}

impl GetTimingDigest for Wire {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_timing_digest()
    }
}

impl GetProxyDigest for Wire {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_proxy_digest()
    }
}

impl GetSocketDigest for Wire {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_socket_digest()
    }
}

impl Peek for Wire {}

#[cfg(test)]
mod tests {
    use pingora_core::protocols::l4::stream::Stream as Socket;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixStream;

    use super::*;

    fn pair() -> (Wire, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        (Wire::new(Box::new(Socket::from(near))), far)
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
    async fn parts_leave_together_and_behind_what_is_held() {
        let (mut wire, mut far) = pair();
        let parts = ["", "head ", "body "].map(|part| IoSlice::new(part.as_bytes()));
        assert_eq!(wire.write_vectored(&parts).await.unwrap(), 10);
        let mut bytes = [0; 64];
        let read = far.read(&mut bytes).await.unwrap();
        assert_eq!(&bytes[..read], b"head body ");
        wire.write_all(b"held ").await.unwrap();
        assert_eq!(wire.write_vectored(&parts).await.unwrap(), 5);
        assert!(far.try_read(&mut bytes).is_err());
        wire.flush().await.unwrap();
        let read = far.read(&mut bytes).await.unwrap();
        assert_eq!(&bytes[..read], b"held head ");
    }

    #[tokio::test]
    async fn what_is_flushed_behind_a_cork_leaves_when_it_is_out() {
        let (mut wire, mut far) = pair();
        let cork = wire.cork();
        cork.hold();
        for part in [b"one ", b"two "] {
            wire.write_all(part).await.unwrap();
            wire.flush().await.unwrap();
        }
        let mut bytes = [0; 64];
        assert!(far.try_read(&mut bytes).is_err());
        cork.release();
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
