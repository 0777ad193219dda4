//! What a connection may cost before it has asked for anything: how many there are, how long a
//! head may take, how large it may be.
//!
//! The head is read here, not by Pingora, because a bound on the *whole* head needs to know when
//! it began, and because a refused head deserves an answer.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use pingora_core::protocols::Stream;
use tokio::io::{AsyncRead as _, AsyncReadExt as _, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, timeout};

use crate::framing::{self, Body, Chunks, Refused, Scan};

/// Bytes that are read at once; most heads fit.
const READ_BYTES: usize = 4 * 1024;
/// Most bytes that are thrown away after an answer to what we would not read.
const LINGER_BYTES_MAX: usize = 1024 * 1024;
/// Time in which they are thrown away.
const LINGER_MAX: Duration = Duration::from_secs(1);

/// Caps and deadlines of one listener.
#[derive(Debug)]
pub(crate) struct Guard {
    slots: Arc<Semaphore>,
    /// From the first byte of a head to its last.
    pub(crate) head: Duration,
    /// From the end of an answer to the first byte of the next request.
    pub(crate) idle: Duration,
}

impl Guard {
    /// At most `connections` at once.
    pub(crate) fn new(connections: usize, head: Duration, idle: Duration) -> Self {
        Self { slots: Arc::new(Semaphore::new(connections)), head, idle }
    }

    /// A place for one more connection, if there is one.
    pub(crate) fn enter(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    /// Reads one head from `stream`. `held` keeps what arrives behind the request.
    ///
    /// The first head of a connection must be complete within the head's time; later ones may
    /// first idle. A head that takes longer closes the connection without a word: whoever sends
    /// a byte now and then waits for exactly that.
    pub(crate) async fn next(
        &self,
        stream: &mut Stream,
        held: &mut BytesMut,
        patience: &mut Patience,
        first: bool,
    ) -> Incoming {
        if held.is_empty() {
            let wait = if first { self.head } else { self.idle };
            match patience.within(wait, more(stream, held)).await {
                Some(Ok(1..)) => {}
                _ => return Incoming::Nothing,
            }
        }
        let mut scan = Scan::default();
        // Most heads arrive in one piece.
        if let Some(incoming) = taken(&mut scan, held) {
            return incoming;
        }
        let rest = rest(stream, held, scan);
        patience.within(self.head, rest).await.unwrap_or(Incoming::Nothing)
    }
}

/// The timer of a connection. It is set for each wait, and made once: most of what is waited for
/// comes long before its time.
#[derive(Debug)]
pub(crate) struct Patience(Pin<Box<Sleep>>);

impl Patience {
    /// A timer that is not set yet.
    #[expect(clippy::disallowed_methods, reason = "each wait sets its named bound")]
    pub(crate) fn new() -> Self {
        Self(Box::pin(tokio::time::sleep(Duration::ZERO)))
    }

    /// What `work` gives, if it does so within this time.
    #[expect(clippy::disallowed_methods, reason = "the runtime's timers count from its own now")]
    async fn within<T>(&mut self, time: Duration, work: impl Future<Output = T>) -> Option<T> {
        self.0.as_mut().reset(Instant::now() + time);
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.0.as_mut() => None,
        }
    }
}

/// What arrived.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A sound head, followed by as much of its body as arrived with it; and where a chunked
    /// body is that has not ended yet.
    Request(BytesMut, Option<Chunks>),
    /// Something else.
    Refused(Refused),
    /// The client left or took too long.
    Nothing,
}

/// The request that `held` begins with, once its head is complete.
fn taken(scan: &mut Scan, held: &mut BytesMut) -> Option<Incoming> {
    match scan.advance(held) {
        Ok(Some(head)) => Some(match framing::check(&held[..head]) {
            Ok(body) => cut(held, head, body),
            Err(refused) => Incoming::Refused(refused),
        }),
        Ok(None) => None,
        Err(refused) => Some(Incoming::Refused(refused)),
    }
}

async fn rest(stream: &mut Stream, held: &mut BytesMut, mut scan: Scan) -> Incoming {
    loop {
        match more(stream, held).await {
            Ok(1..) => {}
            _ => return Incoming::Nothing,
        }
        if let Some(incoming) = taken(&mut scan, held) {
            return incoming;
        }
    }
}

/// Reads what has arrived into `held`, and says how much it is. A connection on which nothing
/// arrives takes no memory for it: that is most of them most of the time.
async fn more(stream: &mut Stream, held: &mut BytesMut) -> io::Result<usize> {
    poll_fn(|cx| {
        let mut room = [const { MaybeUninit::uninit() }; READ_BYTES];
        let mut arrived = ReadBuf::uninit(&mut room);
        ready!(Pin::new(&mut *stream).poll_read(cx, &mut arrived))?;
        held.extend_from_slice(arrived.filled());
        Poll::Ready(Ok(arrived.filled().len()))
    })
    .await
}

/// Takes the request off `held`; what belongs to the next one stays.
fn cut(held: &mut BytesMut, head: usize, body: Body) -> Incoming {
    let (whole, chunks) = match body {
        Body::None => (head, None),
        Body::Length(length) => {
            (usize::try_from(length).map_or(usize::MAX, |n| head.saturating_add(n)), None)
        }
        Body::Chunked => {
            let mut chunks = Chunks::new();
            match chunks.feed(&held[head..]) {
                Ok(Some(length)) => (head + length, None),
                Ok(None) => (usize::MAX, Some(chunks)),
                Err(refused) => return Incoming::Refused(refused),
            }
        }
    };
    let request = if whole >= held.len() { std::mem::take(held) } else { held.split_to(whole) };
    Incoming::Request(request, chunks)
}

/// Throws away what the client still sends after a last answer, so that the answer is not lost
/// to the reset that unread bytes cause.
pub(crate) async fn linger(stream: &mut Stream) {
    let mut seen = 0;
    let mut bytes = BytesMut::with_capacity(READ_BYTES);
    let drain = async {
        while seen < LINGER_BYTES_MAX {
            bytes.clear();
            match stream.read_buf(&mut bytes).await {
                Ok(read @ 1..) => seen += read,
                _ => return,
            }
        }
    };
    // At the deadline the connection is closed all the same.
    let _ = timeout(LINGER_MAX, drain).await;
}

#[cfg(test)]
mod tests {
    use pingora_core::protocols::l4::stream::Stream as Socket;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::UnixStream;

    use super::*;

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    fn guard() -> Guard {
        Guard::new(1, Duration::from_secs(10), Duration::from_secs(60))
    }

    fn pair() -> (Stream, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        (Box::new(Socket::from(near)), far)
    }

    #[tokio::test]
    async fn requests_sent_together_are_taken_one_by_one() {
        let (mut near, mut far) = pair();
        let post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab";
        let chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let all: [&[u8]; 4] = [GET, post, chunked, GET];
        far.write_all(&all.concat()).await.unwrap();
        let mut held = BytesMut::new();
        for expected in all {
            match guard().next(&mut near, &mut held, &mut Patience::new(), true).await {
                Incoming::Request(bytes, None) => assert_eq!(&bytes[..], expected),
                other => panic!("{other:?}"),
            }
        }
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
        let (guard, mut held, mut patience) = (guard(), BytesMut::new(), Patience::new());
        let incoming = guard.next(&mut near, &mut held, &mut patience, true);
        let incoming = timeout(Duration::from_secs(11), incoming).await.unwrap();
        assert!(matches!(incoming, Incoming::Nothing), "{incoming:?}");
        drop(near);
        trickle.await.unwrap();
    }

    #[test]
    fn there_are_no_more_places_than_configured() {
        let guard = guard();
        let place = guard.enter();
        assert!(place.is_some() && guard.enter().is_none());
        drop(place);
        assert!(guard.enter().is_some());
    }
}
