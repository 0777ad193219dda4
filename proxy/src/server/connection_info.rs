//! Pingora hands a session nothing of its connection but digests; the one of proxies carries a value,
//! with or without TLS, and here that is the state all requests of a connection share.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::Response;
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::tls::TlsRef;
use rampart_core::platform::metrics::{ConnectionMeter, RequestInFlight};
use rampart_core::platform::rate_limit::{Gcra, Quota};
use rampart_core::platform::shared_rates::SharedGcra;
use tokio::sync::Notify;

use super::framing::HeadError;
use super::http2::RefusedStreams;
use super::tls::x509;

/// Streams that a client may reset before their answer at once.
pub(super) const RESETS_AT_ONCE: u32 = 100;
/// The same with their rate, 10 a second. A client that changes its mind more often is attacking
/// (CVE-2023-44487).
const RESETS: Quota = Quota::new(10, 1, RESETS_AT_ONCE);
/// Nanoseconds for which a connection uses the bucket of its address without asking for it. Much
/// less than the time after which an unused one is forgotten.
const BUCKET_CACHE_NS: u64 = 1_000_000_000;

/// Peer, TLS and state of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionInfo {
    /// The client, or the proxy that speaks for several.
    pub(crate) peer: IpAddr,
    /// Version of TLS; empty without.
    pub(crate) tls: String,
    /// Subject of the client's TLS certificate, which has been verified; `None` without one.
    pub(crate) client_certificate: Option<Arc<str>>,
    /// Why the head was refused that the current request stands for.
    pub(crate) head_error: OnceLock<HeadError>,
    /// Request id in that head as sent, if it had one.
    pub(crate) refused_request_id: OnceLock<Box<[u8]>>,
    /// Method of that head, empty if it had none.
    pub(crate) refused_method: OnceLock<Box<str>>,
    /// Streams of HTTP/2 whose heads are refused.
    pub(super) refused_streams: RefusedStreams,
    resets: Gcra,
    first_request_ns: OnceLock<u64>,
    hostile: Notify,
    bucket: Mutex<Option<CachedBucket>>,
    meter: Option<Arc<ConnectionMeter>>,
}

/// The bucket of a connection's last address, and until when it is used without a look.
#[derive(Debug)]
struct CachedBucket {
    address: IpAddr,
    bucket: Arc<SharedGcra>,
    until_ns: u64,
}

impl ConnectionInfo {
    /// Reads the TLS version and the client's certificate off `stream`, whose client is `peer` and which `meter` counts.
    pub(super) fn new(stream: &Stream, peer: IpAddr, meter: Option<ConnectionMeter>) -> Arc<Self> {
        let tls = stream.get_ssl_digest().map_or_else(String::new, |tls| tls.version.to_string());
        let certificate = stream.get_ssl().and_then(TlsRef::peer_certificate_der);
        let client_certificate = certificate.and_then(x509::subject).map(Arc::from);
        let meter = meter.map(Arc::new);
        Arc::new(Self { client_certificate, meter, ..Self::with(peer, tls) })
    }

    /// Without a certificate and uncounted.
    pub(super) fn with(peer: IpAddr, tls: String) -> Self {
        Self {
            peer,
            tls,
            client_certificate: None,
            head_error: OnceLock::new(),
            refused_request_id: OnceLock::new(),
            refused_method: OnceLock::new(),
            refused_streams: RefusedStreams::default(),
            resets: Gcra::default(),
            first_request_ns: OnceLock::new(),
            hostile: Notify::new(),
            bucket: Mutex::new(None),
            meter: None,
        }
    }

    /// The digest in which [`ConnectionInfo::for_session`] finds it.
    pub(super) fn digest(self: &Arc<Self>) -> Arc<ProxyDigest> {
        let (none, ()) = Response::new(()).into_parts();
        Arc::new(ProxyDigest::new(Box::new(none.into()), Some(Box::new(Arc::clone(self)))))
    }

    /// The connection that `session` belongs to.
    pub(crate) fn for_session(session: &ServerSession) -> Option<&Arc<Self>> {
        session.digest()?.proxy_digest.as_ref()?.user_data.as_ref()?.downcast_ref()
    }

    /// Gives what `find` gives for an address, or gave less than [`BUCKET_CACHE_NS`] before `now_ns`:
    /// nearly always the address of a connection stays the same.
    pub(crate) fn bucket(
        &self,
        address: IpAddr,
        now_ns: u64,
        find: impl FnOnce() -> Arc<SharedGcra>,
    ) -> Arc<SharedGcra> {
        let mut kept = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(kept) if kept.address == address && now_ns < kept.until_ns => {
                Arc::clone(&kept.bucket)
            }
            _ => {
                let bucket = find();
                let until_ns = now_ns.saturating_add(BUCKET_CACHE_NS);
                *kept = Some(CachedBucket { address, bucket: Arc::clone(&bucket), until_ns });
                bucket
            }
        }
    }

    /// Counts a request until the guard is dropped, on a listener whose connections are counted.
    pub(crate) fn begin_request(&self) -> Option<RequestInFlight> {
        self.meter.as_ref().map(ConnectionMeter::begin_request)
    }

    /// True when the connection's first request was longer than `age` before `now_ns`.
    pub(crate) fn is_older(&self, age: Duration, now_ns: u64) -> bool {
        let first = *self.first_request_ns.get_or_init(|| now_ns);
        Duration::from_nanos(now_ns.saturating_sub(first)) > age
    }

    /// Counts a stream whose client did not wait for the answer, or had it reset (CVE-2025-8671).
    pub(crate) fn abandoned(&self, now_ns: u64) {
        if !self.resets.take(RESETS, now_ns).allowed {
            self.end();
        }
    }

    /// Has the connection of HTTP/2 end.
    pub(super) fn end(&self) {
        self.hostile.notify_one();
    }

    /// Waits until the client has abandoned too many streams, or takes too long for a head, or too much
    /// memory.
    pub(super) async fn hostile(&self) {
        self.hostile.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn the_bucket_of_an_address_is_looked_for_again_after_a_while() {
        let address: IpAddr = [192, 0, 2, 1].into();
        let info = ConnectionInfo::with(address, String::new());
        let found = AtomicUsize::new(0);
        let bucket_of = |address, now_ns| {
            info.bucket(address, now_ns, || {
                found.fetch_add(1, Ordering::Relaxed);
                Arc::new(SharedGcra::new("address"))
            })
        };
        let bucket = |now_ns| bucket_of(address, now_ns);
        let first = bucket(5);
        assert!(Arc::ptr_eq(&first, &bucket(4 + BUCKET_CACHE_NS)));
        assert!(!Arc::ptr_eq(&first, &bucket(5 + BUCKET_CACHE_NS)));
        assert_eq!(found.load(Ordering::Relaxed), 2);
        let other = bucket_of([192, 0, 2, 2].into(), 6 + BUCKET_CACHE_NS);
        assert!(!Arc::ptr_eq(&other, &bucket(7 + BUCKET_CACHE_NS)));
    }

    #[tokio::test]
    async fn resets_count_by_their_rate_and_not_by_the_life_of_a_connection() {
        let info = ConnectionInfo::with([192, 0, 2, 1].into(), String::new());
        let hostile = || info.hostile().now_or_never().is_some();
        for number in 0..1_000 {
            info.abandoned(number * 1_000_000_000 / 5);
        }
        assert!(!hostile(), "five a second for minutes");
        for _ in 0..100 {
            info.abandoned(1_000_000_000_000);
        }
        assert!(!hostile(), "a hundred at once");
        info.abandoned(1_000_000_000_000);
        assert!(hostile());
    }
}
