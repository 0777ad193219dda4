//! The one request that goes on to a backend: where to, what of it, and what of the answer comes
//! back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, Uri, header};
use pingora_core::protocols::ALPN;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{Error, ErrorType, OrErr as _, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use rampart_core::platform::lookups::Lookups;
use rampart_core::platform::telemetry::Span;
use rampart_core::trading::limits::upstream::{Protocol, Upstream, UpstreamRequest};
use tokio::time::timeout;

use super::body::{Budget, Share, content_length};

/// Most addresses of the backend that a request tries.
pub(crate) const ADDRESSES_MAX: usize = 4;
/// Nanoseconds for which an address is the first since those before it took no connection.
const PREFERRED_NS: u64 = 30_000_000_000;
/// Time for finding the backend's addresses.
const LOOKUP_MAX: Duration = Duration::from_secs(2);
/// Time for a connection, and with TLS; the addresses that are tried share it.
const CONNECT_MAX: Duration = Duration::from_secs(2);
const HANDSHAKE_MAX: Duration = Duration::from_secs(3);
/// Time without a byte from the backend, or without one that it takes.
const STALL_MAX: Duration = Duration::from_secs(5);
/// Time for the whole answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Time for which a connection is kept for the next request.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Requests that share one HTTP/2 connection.
const STREAMS_MAX: usize = 100;
/// Largest answer, in bytes, and the window in which HTTP/2 sends it.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
const WINDOW_BYTES: u32 = 256 * 1024;
/// Headers that are about one connection (RFC 9110, section 7.6.1). How the body is delimited
/// (`Transfer-Encoding`) is Pingora's.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// The backend's address behind one that took no connection, and when that was: tried first, the other
/// would cost every request its share of the time for connecting.
pub(super) type PreferredAddress = ArcSwapOption<(SocketAddr, u64)>;

/// A request on its way to the backend, and what has come back.
#[derive(Debug)]
pub(super) struct UpstreamExchange {
    request: UpstreamRequest,
    upstream: Upstream,
    /// The backend's, once they are looked up.
    addresses: Vec<SocketAddr>,
    /// The place of the one among them that is tried.
    tried: usize,
    /// Its part of the trace, until the exchange is over.
    span: Option<Span>,
    began_ns: u64,
    /// The part of the answer's body that has come: the backend need not wait for the client.
    body: BytesMut,
    /// Bytes of the answer's body that have come, with those that have gone on to the client.
    received: usize,
    /// Memory for what is kept, until the client has taken the answer.
    share: Option<Share>,
}

impl UpstreamExchange {
    /// `request` goes to `upstream` now.
    pub(super) fn new(
        request: UpstreamRequest,
        upstream: Upstream,
        span: Option<Span>,
        began_ns: u64,
    ) -> Self {
        let (addresses, body, share) = (Vec::new(), BytesMut::new(), None);
        let (tried, received) = (0, 0);
        Self { request, upstream, addresses, tried, span, began_ns, body, received, share }
    }

    /// Headers that a refusal carries too.
    pub(super) const fn answer_headers(&self) -> &HeaderMap {
        &self.request.answer
    }

    /// The peer to connect to.
    ///
    /// # Errors
    /// When the backend's name resolves to no address.
    pub(super) async fn peer(
        &mut self,
        lookups: &Lookups,
        preferred: &PreferredAddress,
        now_ns: u64,
    ) -> Result<Box<HttpPeer>> {
        if self.addresses.is_empty() {
            self.addresses = self.look_up(lookups).await?;
            self.prefer(preferred, now_ns);
        }
        let unknown = || Error::explain(ErrorType::ConnectError, "the upstream has no address");
        let address = *self.addresses.get(self.tried).ok_or_else(unknown)?;
        let sharers = u32::try_from(self.addresses.len()).unwrap_or(u32::MAX).max(1);
        let Upstream { host, protocol, .. } = &self.upstream;
        let mut peer = HttpPeer::new(address, *protocol == Protocol::Tls, host.clone());
        peer.options.alpn = match protocol {
            Protocol::Tls => ALPN::H2H1,
            Protocol::Http1 => ALPN::H1,
            Protocol::Http2 => ALPN::H2,
        };
        peer.options.connection_timeout = Some(CONNECT_MAX / sharers);
        peer.options.total_connection_timeout = Some(HANDSHAKE_MAX / sharers);
        peer.options.read_timeout = Some(STALL_MAX);
        peer.options.write_timeout = Some(STALL_MAX);
        peer.options.idle_timeout = Some(IDLE_MAX);
        peer.options.max_h2_streams = STREAMS_MAX;
        peer.options.h2_stream_window_size = Some(WINDOW_BYTES);
        peer.options.h2_connection_window_size = Some(WINDOW_BYTES);
        Ok(Box::new(peer))
    }

    /// Puts the address first that is preferred still.
    fn prefer(&mut self, preferred: &PreferredAddress, now_ns: u64) {
        if let Some((first, since_ns)) = preferred.load().as_deref()
            && now_ns.saturating_sub(*since_ns) < PREFERRED_NS
        {
            self.addresses.sort_by_key(|address| address != first);
        }
    }

    /// Finds the backend's addresses, in the order in which they are to be tried.
    async fn look_up(&self, lookups: &Lookups) -> Result<Vec<SocketAddr>> {
        let looking = lookups.addresses(None, &self.upstream.host, self.upstream.port);
        let mut found = timeout(LOOKUP_MAX, looking)
            .await
            .or_err(ErrorType::ConnectTimedout, "look up the upstream")?
            .or_err(ErrorType::ConnectError, "look up the upstream")?;
        found.truncate(ADDRESSES_MAX);
        Ok(found)
    }

    /// Goes on to the backend's next address, which is preferred from now on; `false` when there is
    /// none.
    pub(super) fn next_address(&mut self, preferred: &PreferredAddress, now_ns: u64) -> bool {
        let Some(next) = self.addresses.get(self.tried + 1) else { return false };
        preferred.store(Some(Arc::new((*next, now_ns))));
        self.tried += 1;
        true
    }

    /// Makes the request the backend's: its target, its authority, and no header but those meant
    /// for it.
    ///
    /// # Errors
    /// When that is no request, which is our fault.
    pub(super) fn request(&self, request: &mut RequestHeader) -> Result<()> {
        let sent: Vec<HeaderName> = request.headers.keys().cloned().collect();
        for name in sent {
            request.remove_header(&name);
        }
        let target: Uri = self
            .request
            .target
            .parse()
            .or_err(ErrorType::InternalError, "write the upstream's target")?;
        request.set_uri(target);
        request.insert_header(header::HOST, &self.upstream.authority)?;
        for (name, value) in &self.request.headers {
            request.insert_header(name.clone(), value.clone())?;
        }
        for (name, value) in self.span.iter().flat_map(|span| span.context().header_map()) {
            if let Some(name) = name {
                request.insert_header(name, value)?;
            }
        }
        Ok(())
    }

    /// Leaves out of the answer what is about the backend's connection, and adds what every answer
    /// of ours carries. Interim heads come here too, however many there are.
    ///
    /// # Errors
    /// When the answer is too large or takes too long.
    pub(super) fn answer(&self, answer: &mut ResponseHeader, now_ns: u64) -> Result<()> {
        self.check_time(now_ns)?;
        if content_length(&answer.headers).is_some_and(|length| length > ANSWER_BYTES_MAX as u64) {
            return Err(too_large());
        }
        let named = answer.headers.get_all(header::CONNECTION).iter();
        let named: Vec<String> = named
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|name| name.trim().to_ascii_lowercase())
            .filter(|name| !matches!(&**name, "content-length" | "transfer-encoding"))
            .collect();
        for name in HOP_BY_HOP.into_iter().chain(named.iter().map(String::as_str)) {
            answer.remove_header(name);
        }
        for (name, value) in &self.request.answer {
            answer.insert_header(name.clone(), value.clone())?;
        }
        Ok(())
    }

    /// Keeps a part of the answer's body, and looks at the clock; `false` when `memory` has no room for
    /// it, so that what is kept is to go on to the client now.
    ///
    /// # Errors
    /// When it is too large or takes too long.
    pub(super) fn hold(&mut self, part: &[u8], memory: Budget<'_>, now_ns: u64) -> Result<bool> {
        self.received += part.len();
        if self.received > ANSWER_BYTES_MAX {
            return Err(too_large());
        }
        self.check_time(now_ns)?;
        self.body.extend_from_slice(part);
        Ok(memory.cover(&mut self.share, self.received).is_ok())
    }

    /// The part of the body that is kept: all of it, unless there was no room.
    pub(super) fn kept_body(&mut self) -> Bytes {
        self.body.split().freeze()
    }

    fn check_time(&self, now_ns: u64) -> Result<()> {
        if Duration::from_nanos(now_ns.saturating_sub(self.began_ns)) > ANSWER_MAX {
            return Err(
                Error::explain(ErrorType::ReadTimedout, "the answer takes too long").into_up()
            );
        }
        Ok(())
    }
}

fn too_large() -> Box<Error> {
    Error::explain(ErrorType::InvalidHTTPHeader, "the answer is too large").into_up()
}

#[cfg(test)]
mod tests {
    use pingora_core::upstreams::peer::Peer as _;

    use super::super::body::{BodyMemory, Sender};
    use super::*;

    const KNOWN: [u8; 3] = [1, 2, 3];

    fn address(last: u8) -> SocketAddr {
        ([192, 0, 2, last], 80).into()
    }

    /// A request for a backend of which [`KNOWN`] are known.
    fn exchange() -> UpstreamExchange {
        let request = UpstreamRequest {
            target: "/".to_owned(),
            headers: HeaderMap::new(),
            answer: HeaderMap::new(),
        };
        let upstream = Upstream::parse("http://limits.example.com").unwrap();
        let mut exchange = UpstreamExchange::new(request, upstream, None, 0);
        exchange.addresses = KNOWN.map(address).into();
        exchange
    }

    #[test]
    fn the_address_behind_one_that_failed_is_the_first_for_a_while() {
        let preferred = PreferredAddress::default();
        let order = |now_ns| {
            let mut exchange = exchange();
            exchange.prefer(&preferred, now_ns);
            exchange.addresses
        };
        assert_eq!(order(5), KNOWN.map(address));
        assert!(exchange().next_address(&preferred, 5));
        assert_eq!(order(4 + PREFERRED_NS), [2, 1, 3].map(address));
        assert_eq!(order(5 + PREFERRED_NS), KNOWN.map(address));
    }

    #[test]
    fn an_answer_for_which_there_is_no_memory_goes_on_as_it_comes() {
        let memory = BodyMemory::new(64 * 1024, 64 * 1024);
        let sender = Sender::of([192, 0, 2, 1].into(), &Arc::default());
        let (memory, part) = (memory.of(&sender), vec![b' '; 32 * 1024]);
        let [mut one, mut other] = [exchange(), exchange()];
        assert!(one.hold(&part, memory, 0).unwrap());
        assert!(other.hold(&part, memory, 0).unwrap());
        assert!(!other.hold(&part, memory, 0).unwrap());
        assert_eq!(other.kept_body().len(), 2 * part.len());
        assert!(!other.hold(&part, memory, 0).unwrap());
        assert_eq!(other.kept_body().len(), part.len(), "what has gone on goes once");
        assert_eq!(one.kept_body().len(), part.len());
        assert!(!exchange().hold(&part, memory, 0).unwrap(), "the clients have not taken theirs");
        drop(one);
        assert!(exchange().hold(&part, memory, 0).unwrap());
    }

    #[tokio::test]
    async fn each_address_is_tried_and_all_of_them_within_the_time_for_one() {
        let (lookups, preferred) = (Lookups::default(), PreferredAddress::default());
        let mut exchange = exchange();
        let (mut tried, mut connecting) = (Vec::new(), Duration::ZERO);
        let mut with_tls = Duration::ZERO;
        loop {
            let peer = exchange.peer(&lookups, &preferred, 0).await.unwrap();
            tried.extend(peer.address().as_inet().copied());
            connecting += peer.options.connection_timeout.unwrap();
            with_tls += peer.options.total_connection_timeout.unwrap();
            // A request that is sent again after a kept connection has ended goes to the same one.
            let again = exchange.peer(&lookups, &preferred, 0).await.unwrap();
            assert_eq!(again.address(), peer.address());
            if !exchange.next_address(&preferred, 0) {
                break;
            }
        }
        assert_eq!(tried, KNOWN.map(address));
        assert!(connecting <= CONNECT_MAX && with_tls <= HANDSHAKE_MAX);
    }
}
