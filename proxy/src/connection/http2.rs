//! A connection of HTTP/2, stream by stream.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use h2::server::Connection as Streams;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::http::v2::server::{
    H2Accept, H2Options, HttpSession, default_h2_options, handshake,
};
use pingora_core::protocols::{Digest, Stream};
use tokio::time::timeout;

use super::{App, Connection, Origin};
use crate::guard::Guard;
use crate::lifecycle::{Lifecycle, Phase};
use crate::stream::Stream as Http2Stream;
use crate::wire::{Cork, Wire};

/// Streams of one HTTP/2 connection that run at once.
const STREAMS_MAX: u32 = 100;
/// Streams that may still run although the client gave up on some of them.
const RUNNING_MAX: usize = 2 * STREAMS_MAX as usize;
/// Streams that Pingora may refuse as malformed.
const MALFORMED_MAX: u32 = 32;
/// Decoded header list of a stream; larger ones are answered by the h2 crate itself.
const HEADER_LIST_MAX: u32 = 64 * 1024;
/// Receive window of a stream and of a connection, in bytes.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Time for the HTTP/2 preface and settings.
const PREFACE_MAX: Duration = Duration::from_secs(10);

/// Serves a connection until it ends.
pub(super) async fn http2<A: App>(
    wire: Wire,
    origin: Origin,
    app: &Arc<A>,
    guard: &Guard,
    lifecycle: &Lifecycle,
) {
    let cork = wire.cork();
    let stream: Stream = Box::new(wire);
    let unknown = Connection::default();
    let connection = origin.connection().unwrap_or(&unknown);
    let digest = Arc::new(Digest {
        ssl_digest: origin.tls.clone(),
        timing_digest: stream.get_timing_digest(),
        proxy_digest: stream.get_proxy_digest(),
        socket_digest: stream.get_socket_digest(),
    });
    let Ok(Ok(mut h2)) = timeout(PREFACE_MAX, handshake(stream, Some(options()))).await else {
        return;
    };
    let sessions = (!app.serves_streams()).then_some(&digest);
    let mut phase = lifecycle.watch();
    let mut stopping = pin!(phase.at_least(Phase::Stopping));
    let mut hostile = pin!(connection.hostile.notified());
    let mut leaving = false;
    let mut malformed = 0;
    let running = Arc::new(AtomicUsize::new(0));
    let mut used = true;
    let mut idle = tokio::time::interval(guard.idle);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut hostile => return,
            () = &mut stopping, if !leaving => {
                h2.graceful_shutdown();
                leaving = true;
                continue;
            }
            accepted = gathering(&cork, accept(&mut h2, sessions)) => accepted,
            _ = idle.tick() => {
                if !used && running.load(Ordering::Acquire) == 0 {
                    return;
                }
                used = false;
                continue;
            }
        };
        match accepted {
            Ok(request) => {
                used = true;
                let ticket = Ticket::new(&running);
                if running.load(Ordering::Acquire) > RUNNING_MAX {
                    return;
                }
                serve(Arc::clone(app), request, origin.clone(), ticket).await;
            }
            Err(Nothing::Rejected) => {
                malformed += 1;
                if malformed > MALFORMED_MAX {
                    return;
                }
            }
            Err(Nothing::Ended) => return,
        }
    }
}

/// A request on a stream, with or without a session.
#[expect(clippy::large_enum_variant, reason = "a box would cost every stream that has no session")]
enum Asked {
    Session(Box<HttpSession>),
    Stream(Http2Stream),
}

/// Why there is none.
enum Nothing {
    /// Pingora has refused it.
    Rejected,
    /// The connection has ended.
    Ended,
}

/// The next stream: a session with the digest of the connection, or the bare stream without one.
async fn accept(
    h2: &mut Streams<Stream, Bytes>,
    digest: Option<&Arc<Digest>>,
) -> Result<Asked, Nothing> {
    let Some(digest) = digest else {
        return match h2.accept().await {
            Some(Ok((request, answer))) => Ok(Asked::Stream(Http2Stream::new(request, answer))),
            Some(Err(_)) | None => Err(Nothing::Ended),
        };
    };
    match HttpSession::from_h2_conn(h2, Arc::clone(digest)).await {
        Ok(Some(H2Accept::Session(session))) => Ok(Asked::Session(Box::new(session))),
        Ok(Some(H2Accept::Rejected)) => Err(Nothing::Rejected),
        Ok(None) | Err(_) => Err(Nothing::Ended),
    }
}

/// What `accepting` gives. As long as it has something at once, nothing leaves: requests that came
/// together are answered together, in one write.
async fn gathering<F: Future>(cork: &Cork, accepting: F) -> F::Output {
    let mut accepting = pin!(accepting);
    poll_fn(|cx| {
        cork.hold();
        let accepted = accepting.as_mut().poll(cx);
        if accepted.is_ready() {
            return accepted;
        }
        cork.release();
        accepting.as_mut().poll(cx)
    })
    .await
}

/// Serves a stream: here if that can be done at once, or else in a task of its own. A panic ends
/// the stream alone.
async fn serve<A: App>(app: Arc<A>, request: Asked, origin: Origin, ticket: Ticket) {
    let serving = async move {
        match request {
            Asked::Session(session) => drop(app.serve(ServerSession::new_http2(*session)).await),
            Asked::Stream(stream) => app.serve_stream(stream, &origin).await,
        }
        drop(ticket);
    };
    let mut serving = Box::pin(AssertUnwindSafe(serving).catch_unwind());
    if futures::poll!(&mut serving).is_pending() {
        tokio::spawn(serving);
    }
    // However many streams come, other connections have their turn.
    tokio::task::consume_budget().await;
}

/// Bounds of an HTTP/2 connection. Pingora's own defaults come first: a bare builder has none.
fn options() -> H2Options {
    let mut options = default_h2_options();
    options
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEADER_LIST_MAX)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    options
}

/// A running stream.
struct Ticket(Arc<AtomicUsize>);

impl Ticket {
    fn new(running: &Arc<AtomicUsize>) -> Self {
        running.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(running))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
