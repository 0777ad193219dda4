//! The life of one connection: HTTP/1 request by request, HTTP/2 stream by stream.
//!
//! What is read and when it is given up is decided here. Parsing and writing is Pingora's, but for
//! requests that arrive whole (`whole`) and for streams of HTTP/2 (`stream`) that no upstream answers.

mod http2;

use std::future::ready;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use http::Method;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::tls::SslDigest;
use pingora_core::protocols::{ALPN, Shutdown, Ssl as _, Stream};
use rampart_core::http::reply::Reply;
use rampart_core::platform::rate_limit::Gcra;
use tokio::sync::Notify;

use self::http2::http2;
use crate::framing::Refused;
use crate::guard::{Guard, Incoming, Patience, linger};
use crate::lifecycle::{Lifecycle, Phase};
use crate::stream::Stream as Http2Stream;
use crate::whole;
use crate::wire::Wire;

/// Requests after which an HTTP/1 connection is closed, so that its memory comes back.
const REQUESTS_MAX: u32 = 10_000;
/// Streams that a client may reset before their answer; a client that changes its mind this
/// often is attacking (CVE-2023-44487).
const RESETS_MAX: u32 = 100;
/// Nanoseconds for which a connection uses the bucket of its address without asking for it. Much
/// less than the time after which an unused one is forgotten.
const BUCKET_KEPT_NS: u64 = 1_000_000_000;

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

    /// Serves a stream of HTTP/2 without a session.
    fn serve_stream(
        &self,
        _stream: Http2Stream,
        _origin: &Origin,
    ) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Whether streams of HTTP/2 are served without a session.
    fn serves_streams(&self) -> bool {
        false
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
#[derive(Clone, Debug)]
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

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
