//! What a connection may cost before it has asked for anything: how many there are, how long a
//! head may take, how large it may be.
//!
//! The head is read here, not by Pingora, because a bound on the *whole* head needs to know when
//! it began, and because a refused head deserves an answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use pingora_core::protocols::Stream;
use tokio::io::AsyncReadExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::framing::{self, Body, Chunks, Refused, Scan};

/// Bytes that are made room for when a head begins; most heads fit.
const HEAD_BYTES: usize = 4 * 1024;
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
        first: bool,
    ) -> Incoming {
        if held.is_empty() {
            held.reserve(HEAD_BYTES);
            let wait = if first { self.head } else { self.idle };
            match timeout(wait, stream.read_buf(held)).await {
                Ok(Ok(1..)) => {}
                _ => return Incoming::Nothing,
            }
        }
        timeout(self.head, rest(stream, held)).await.unwrap_or(Incoming::Nothing)
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

async fn rest(stream: &mut Stream, held: &mut BytesMut) -> Incoming {
    let mut scan = Scan::default();
    loop {
        match scan.advance(held) {
            Ok(Some(head)) => {
                return match framing::check(&held[..head]) {
                    Ok(body) => cut(held, head, body),
                    Err(refused) => Incoming::Refused(refused),
                };
            }
            Ok(None) => {}
            Err(refused) => return Incoming::Refused(refused),
        }
        held.reserve(HEAD_BYTES);
        match stream.read_buf(held).await {
            Ok(1..) => {}
            _ => return Incoming::Nothing,
        }
    }
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
    let mut bytes = BytesMut::with_capacity(HEAD_BYTES);
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
            match guard().next(&mut near, &mut held, true).await {
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
        let (guard, mut held) = (guard(), BytesMut::new());
        let incoming = guard.next(&mut near, &mut held, true);
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
