//! The one request that goes on to a backend: where to, what of it, and what of the answer comes
//! back.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Uri, header};
use pingora_core::protocols::ALPN;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{Error, ErrorType, OrErr as _, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use rampart_core::platform::telemetry::Span;
use rampart_core::trading::limits::upstream::{PassedOn, Protocol, Upstream};
use tokio::time::timeout;

use super::body::content_length;

/// Time for finding the backend's address.
const LOOKUP_MAX: Duration = Duration::from_secs(2);
/// Time for a connection, and with TLS.
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
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
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

/// A request on its way to the backend, and what has come back.
#[derive(Debug)]
pub(super) struct UpstreamExchange {
    request: PassedOn,
    upstream: Upstream,
    /// Its part of the trace, until the exchange is over.
    span: Option<Span>,
    began_ns: u64,
    seen: u64,
}

impl UpstreamExchange {
    /// `request` goes to `upstream` now.
    pub(super) const fn new(
        request: PassedOn,
        upstream: Upstream,
        span: Option<Span>,
        began_ns: u64,
    ) -> Self {
        Self { request, upstream, span, began_ns, seen: 0 }
    }

    /// Headers that a refusal carries too.
    pub(super) const fn answer_headers(&self) -> &HeaderMap {
        &self.request.answer
    }

    /// The peer to connect to.
    ///
    /// # Errors
    /// When the backend's name resolves to no address.
    pub(super) async fn peer(&self) -> Result<Box<HttpPeer>> {
        let Upstream { host, port, protocol, .. } = &self.upstream;
        let looking = tokio::net::lookup_host((host.as_str(), *port));
        let mut found = timeout(LOOKUP_MAX, looking)
            .await
            .or_err(ErrorType::ConnectTimedout, "look up the upstream")?
            .or_err(ErrorType::ConnectError, "look up the upstream")?;
        let address = found.next();
        let address = address.ok_or_else(|| {
            Error::explain(ErrorType::ConnectError, "the upstream has no address")
        })?;
        let mut peer = HttpPeer::new(address, *protocol == Protocol::Tls, host.clone());
        peer.options.alpn = match protocol {
            Protocol::Tls => ALPN::H2H1,
            Protocol::Http1 => ALPN::H1,
            Protocol::Http2 => ALPN::H2,
        };
        peer.options.connection_timeout = Some(CONNECT_MAX);
        peer.options.total_connection_timeout = Some(HANDSHAKE_MAX);
        peer.options.read_timeout = Some(STALL_MAX);
        peer.options.write_timeout = Some(STALL_MAX);
        peer.options.idle_timeout = Some(IDLE_MAX);
        peer.options.max_h2_streams = STREAMS_MAX;
        peer.options.h2_stream_window_size = Some(WINDOW_BYTES);
        peer.options.h2_connection_window_size = Some(WINDOW_BYTES);
        Ok(Box::new(peer))
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
    /// of ours carries.
    ///
    /// # Errors
    /// When the answer is too large.
    pub(super) fn answer(&self, answer: &mut ResponseHeader) -> Result<()> {
        if content_length(&answer.headers).is_some_and(|length| length > ANSWER_BYTES_MAX) {
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

    /// Counts the answer's body and looks at the clock.
    ///
    /// # Errors
    /// When it is too large or takes too long.
    pub(super) fn body(&mut self, body: Option<&Bytes>, now_ns: u64) -> Result<()> {
        let size = body.map_or(0, |bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.seen = self.seen.saturating_add(size);
        if self.seen > ANSWER_BYTES_MAX {
            return Err(too_large());
        }
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
