//! Pingora's loop for HTTP/1 keeps room for everything that a request needs while it waits for one;
//! here a request has that room from its head to its answer. An idle connection takes as much
//! memory as one of nginx (row g of `make bench`).

use std::time::Duration;

use pingora_core::apps::HttpServerApp as _;
use pingora_core::protocols::http::ServerSession;
use tokio::sync::watch;
use tokio::time::timeout;

use super::buffered_io::BufferedIo;
use super::connection_limits::ConnectionLimits;

/// Time for a head that was awaited when idle connections are closed.
const HEAD_MAX: Duration = Duration::from_secs(2);

/// Serves the requests of a connection one by one, within `limits`, until it ends or is idle when
/// such are closed.
pub(super) async fn serve(mut io: Box<BufferedIo>, limits: &ConnectionLimits) {
    let mut closing = limits.closing.subscribe();
    // The first request is no reuse.
    let mut reuses = limits.connection_requests_max.saturating_sub(1);
    while next_request(&mut io, &mut closing).await {
        // Its own block: the connection's task has no room for a session, which moves on from here.
        let answering = {
            let mut session = ServerSession::new_http1(io);
            // No bound for Pingora's wait for a head, which is there already.
            session.set_keepalive(Some(0));
            session.set_keepalive_reuses_remaining(Some(reuses));
            limits.proxy.process_new_http(session, &closing)
        };
        let Some(reused) = answering.await else { return };
        let (stream, _) = reused.consume();
        let Ok(same) = stream.into_any().downcast() else { return };
        (io, reuses) = (same, reuses.saturating_sub(1));
    }
}

/// Waits for the head of the next request; `false` when the connection has ended, or is idle when
/// such are closed. One whose first head is awaited, or of whose next head a part has come, has
/// [`HEAD_MAX`] for it: its client cannot know that it has to ask again.
async fn next_request(io: &mut BufferedIo, closing: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        biased;
        is_there = io.next_request() => return is_there,
        // An error means that the listener is gone, and with it whoever waits.
        _ = closing.wait_for(|closing| *closing) => {}
    }
    io.awaits_head() && timeout(HEAD_MAX, io.next_request()).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use pingora_core::protocols::Stream;
    use pingora_core::protocols::l4::stream::Stream as Socket;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;

    use super::super::buffered_io::Reading;
    use super::super::connection_info::ConnectionInfo;
    use super::super::request_reader::{RequestReader, Timeouts};
    use super::super::send_rate::SendBounds;
    use super::*;

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    fn pair() -> (BufferedIo, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let stream: Stream = Box::new(Socket::from(near));
        let info = ConnectionInfo::new(&stream, Ipv4Addr::LOCALHOST.into(), None);
        let long = Duration::from_secs(60);
        let timeouts = Timeouts { head: long, idle: long };
        let reading = Reading::Requests(RequestReader::new(Arc::clone(&info), timeouts));
        let bounds = SendBounds { rate_min_bytes: 1_024, total: None };
        (BufferedIo::new(stream, reading, info.digest(), bounds), far)
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_closed_without_an_answer_only_between_requests() {
        let (mut io, mut far) = pair();
        let (close, mut closing) = watch::channel(true);
        let moment = Duration::from_millis(1);
        let (begin, rest) = GET.split_at(5);
        for part in [begin, rest] {
            let early = timeout(moment, next_request(&mut io, &mut closing)).await;
            assert!(early.is_err(), "the first head is awaited");
            far.write_all(part).await.unwrap();
        }
        assert!(next_request(&mut io, &mut closing).await);
        let mut given = vec![0; GET.len()];
        io.read_exact(&mut given).await.unwrap();

        close.send_replace(false);
        far.write_all(begin).await.unwrap();
        assert!(timeout(moment, next_request(&mut io, &mut closing)).await.is_err());
        close.send_replace(true);
        let early = timeout(moment, next_request(&mut io, &mut closing)).await;
        assert!(early.is_err(), "the rest of the next head is awaited");
        far.write_all(rest).await.unwrap();
        assert!(next_request(&mut io, &mut closing).await);
        io.read_exact(&mut given).await.unwrap();
        assert_eq!(given, GET);

        let idle = timeout(moment, next_request(&mut io, &mut closing)).await;
        assert_eq!(idle, Ok(false), "an idle one is closed at once");
        let (mut silent, _far) = pair();
        assert!(!next_request(&mut silent, &mut closing).await, "it has had its time");
    }
}
