//! The life of one connection: HTTP/1 request by request, HTTP/2 stream by stream.
//!
//! What is read and when it is given up is decided here. Parsing and writing is Pingora's, but for
//! requests that arrive whole (`whole`).

use std::future::{poll_fn, ready};
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use futures::FutureExt as _;
use http::Method;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::http::v2::server::{
    H2Accept, H2Options, HttpSession, default_h2_options,
};
use pingora_core::protocols::tls::SslDigest;
use pingora_core::protocols::{ALPN, Digest, Shutdown, Ssl as _, Stream};
use rampart_core::exchange::Reply;
use rampart_core::rate_limit::Gcra;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::framing::Refused;
use crate::guard::{Guard, Incoming, Patience, linger};
use crate::lifecycle::{Lifecycle, Phase};
use crate::whole;
use crate::wire::{Cork, Wire};

/// Requests after which an HTTP/1 connection is closed, so that its memory comes back.
const REQUESTS_MAX: u32 = 10_000;
/// Streams of one HTTP/2 connection that run at once.
const STREAMS_MAX: u32 = 100;
/// Streams that may still run although the client gave up on some of them.
const RUNNING_MAX: usize = 2 * STREAMS_MAX as usize;
/// Streams that a client may reset before their answer; a client that changes its mind this
/// often is attacking (CVE-2023-44487).
const RESETS_MAX: u32 = 100;
/// Streams that Pingora may refuse as malformed.
const MALFORMED_MAX: u32 = 32;
/// Nanoseconds for which a connection uses the bucket of its address without asking for it. Much
/// less than the time after which an unused one is forgotten.
const BUCKET_KEPT_NS: u64 = 1_000_000_000;
/// Decoded header list of a stream; larger ones are answered by the h2 crate itself.
const HEADER_LIST_MAX: u32 = 64 * 1024;
/// Receive window of a stream and of a connection, in bytes.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Time for the HTTP/2 preface and settings.
const PREFACE_MAX: Duration = Duration::from_secs(10);

/// What serves the requests of a connection.
pub(crate) trait App: Send + Sync + 'static {
    /// Serves one request; gives the connection back if it can go on.
    fn serve(&self, session: ServerSession) -> impl Future<Output = Option<Stream>> + Send;

    /// Serves one request without a session, and says whether the connection can go on; it can not
    /// after the `last` one.
    ///
    /// # Errors
    /// With the request, when it takes a session.
    fn serve_whole(
        &self,
        request: BytesMut,
        _origin: &Origin,
        _stream: &mut Stream,
        _last: bool,
    ) -> impl Future<Output = Result<bool, BytesMut>> + Send {
        ready(Err(request))
    }

    /// The answer to a head that was refused, accounted for.
    fn refuse(&self, refused: Refused, peer: IpAddr) -> Reply;
}

/// What is remembered of a connection; every session of it finds it in the TLS digest.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    resets: AtomicU32,
    hostile: Notify,
    address: Mutex<Option<Kept>>,
}

/// The bucket of a connection's address, and until when it is used without a look.
#[derive(Debug)]
struct Kept {
    bucket: Arc<Gcra>,
    until_ns: u64,
}

impl Connection {
    /// What `find` gives, or gave less than [`BUCKET_KEPT_NS`] before `now_ns`: the address of a
    /// connection stays the same.
    pub(crate) fn bucket(&self, now_ns: u64, find: impl FnOnce() -> Arc<Gcra>) -> Arc<Gcra> {
        let mut kept = self.address.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(kept) if now_ns < kept.until_ns => Arc::clone(&kept.bucket),
            _ => {
                let bucket = find();
                let until_ns = now_ns.saturating_add(BUCKET_KEPT_NS);
                *kept = Some(Kept { bucket: Arc::clone(&bucket), until_ns });
                bucket
            }
        }
    }

    /// Counts a stream whose client did not wait for the answer.
    pub(crate) fn abandoned(&self) {
        if self.resets.fetch_add(1, Ordering::Relaxed) + 1 == RESETS_MAX {
            self.hostile.notify_one();
        }
    }
}

/// Where the requests of a connection come from.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The other end.
    pub(crate) peer: IpAddr,
    tls: Option<Arc<SslDigest>>,
}

impl Origin {
    /// Version of TLS; empty without.
    pub(crate) fn tls(&self) -> &str {
        self.tls.as_ref().map_or("", |tls| tls.version.as_ref())
    }

    /// What is remembered of the connection; `None` without TLS.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.tls.as_ref()?.extension.get()
    }
}

/// What is remembered of the connection that a session belongs to; `None` without TLS.
pub(crate) fn of(session: &ServerSession) -> Option<&Connection> {
    session.digest()?.ssl_digest.as_ref()?.extension.get()
}

/// Serves `stream` until it ends.
pub(crate) async fn run<A: App>(
    stream: Stream,
    peer: IpAddr,
    app: &Arc<A>,
    guard: &Guard,
    lifecycle: &Lifecycle,
) {
    let wire = Wire::new(stream);
    let origin = Origin { peer, tls: wire.get_ssl_digest() };
    if matches!(wire.selected_alpn_proto(), Some(ALPN::H2)) {
        // Each on its own, so that one that waits takes no memory for what the other is.
        Box::pin(http2(wire, origin, app, guard, lifecycle)).await;
    } else {
        Box::pin(http1(wire, origin, app.as_ref(), guard, lifecycle)).await;
    }
}

async fn http1<A: App>(wire: Wire, origin: Origin, app: &A, guard: &Guard, lifecycle: &Lifecycle) {
    let tap = wire.tap();
    let mut stream: Stream = Box::new(wire);
    let mut phase = lifecycle.watch();
    let mut closing = pin!(phase.at_least(Phase::Closing));
    let (mut held, mut patience) = (BytesMut::new(), Patience::new());
    let mut reuses = REQUESTS_MAX;
    loop {
        let incoming = tokio::select! {
            biased;
            incoming = guard.next(&mut stream, &mut held, &mut patience, reuses == REQUESTS_MAX) => {
                incoming
            }
            () = &mut closing => return,
        };
        let request = match incoming {
            Incoming::Request(bytes, chunks) => {
                tap.follow(chunks);
                bytes
            }
            Incoming::Refused(refused) => {
                return hang_up(stream, app.refuse(refused, origin.peer)).await;
            }
            Incoming::Nothing => {
                Shutdown::shutdown(stream.as_mut()).await;
                return;
            }
        };
        match app.serve_whole(request, &origin, &mut stream, reuses == 0).await {
            Ok(true) => {}
            // It may have sent the next request already.
            Ok(false) => return linger(&mut stream).await,
            Err(request) => {
                let mut session = ServerSession::new_http1(stream);
                session.set_keepalive_reuses_remaining(Some(reuses));
                session.set_pipelined_prefix(request);
                match app.serve(session).await {
                    Some(kept) => stream = kept,
                    None => return,
                }
            }
        }
        reuses = reuses.saturating_sub(1);
        // However many requests lie ready, other connections have their turn.
        tokio::task::consume_budget().await;
    }
}

/// Answers what was not understood, and closes so that the answer arrives.
async fn hang_up(mut stream: Stream, reply: Reply) {
    // Its method is not known: a `HEAD` gets a body as well, and nothing follows it.
    if whole::answer(&mut stream, &Method::GET, reply, false).await.is_ok() {
        Shutdown::shutdown(stream.as_mut()).await;
        linger(&mut stream).await;
    }
}

async fn http2<A: App>(
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
    let handshake = pingora_core::protocols::http::v2::server::handshake(stream, Some(options()));
    let Ok(Ok(mut h2)) = timeout(PREFACE_MAX, handshake).await else {
        return;
    };
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
            accepted = gathering(&cork, HttpSession::from_h2_conn(&mut h2, Arc::clone(&digest)))
                => accepted,
            _ = idle.tick() => {
                if !used && running.load(Ordering::Acquire) == 0 {
                    return;
                }
                used = false;
                continue;
            }
        };
        match accepted {
            Ok(Some(H2Accept::Session(session))) => {
                used = true;
                let ticket = Ticket::new(&running);
                if running.load(Ordering::Acquire) > RUNNING_MAX {
                    return;
                }
                serve_stream(Arc::clone(app), session, ticket).await;
            }
            Ok(Some(H2Accept::Rejected)) => {
                malformed += 1;
                if malformed > MALFORMED_MAX {
                    return;
                }
            }
            Ok(None) | Err(_) => return,
        }
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
async fn serve_stream<A: App>(app: Arc<A>, session: HttpSession, ticket: Ticket) {
    let serving = async move {
        app.serve(ServerSession::new_http2(session)).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_of_an_address_is_looked_for_again_after_a_while() {
        let (connection, found) = (Connection::default(), AtomicUsize::new(0));
        let bucket = |now_ns| {
            connection.bucket(now_ns, || {
                found.fetch_add(1, Ordering::Relaxed);
                Arc::default()
            })
        };
        let first = bucket(5);
        assert!(Arc::ptr_eq(&first, &bucket(4 + BUCKET_KEPT_NS)));
        assert!(!Arc::ptr_eq(&first, &bucket(5 + BUCKET_KEPT_NS)));
        assert_eq!(found.load(Ordering::Relaxed), 2);
    }
}
