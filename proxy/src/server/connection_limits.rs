//! Pingora's listener neither caps connections nor counts and bounds TLS handshakes, and its
//! application gives a connection no deadlines: all of it happens here, around the proxy. A
//! connection that cannot be served is closed at once, and counted.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pingora_core::apps::ServerApp;
use pingora_core::listeners::tls::Acceptor;
use pingora_core::protocols::l4::stream::Stream as Socket;
use pingora_core::protocols::{ALPN, Peek as _, Ssl as _, Stream};
use pingora_core::server::ShutdownWatch;
use pingora_proxy::HttpProxy;
use rampart_core::platform::keyed_semaphore::{KeyedPermit, KeyedSemaphore};
use rampart_core::platform::metrics::Metrics;
use rampart_core::platform::network::network;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::buffered_io::{BufferedIo, Reading};
use super::client_address::ClientAddresses;
use super::connection_info::ConnectionInfo;
use super::descriptors::HeldDescriptors;
use super::http1;
use super::http2::{self, FrameScan, HeaderMemory};
use super::lifecycle::{Lifecycle, Phase};
use super::request_reader::{RequestReader, Timeouts};
use super::send_rate::SendBounds;
use crate::gateway::Gateway;

/// Time for a TLS handshake, and for the PROXY protocol before it.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Handshakes that an address may have under way; three quarters of its connections, if that is more.
const HANDSHAKES_PER_ADDRESS: usize = 64;

/// The connections of each address on a listener, and its handshakes among them.
pub(super) struct AddressPermits {
    connections: KeyedSemaphore<IpAddr>,
    handshakes: KeyedSemaphore<IpAddr>,
}

impl AddressPermits {
    /// At most `connections` of one address, or of one /64 network in IPv6.
    pub(super) fn new(connections: usize) -> Self {
        let handshakes = HANDSHAKES_PER_ADDRESS.max(connections - connections / 4);
        Self {
            connections: KeyedSemaphore::new(connections),
            handshakes: KeyedSemaphore::new(handshakes),
        }
    }

    /// The permit of a connection, and that of its handshake.
    ///
    /// # Errors
    /// The cause for which it is refused.
    fn admit(
        &self,
        address: IpAddr,
    ) -> Result<(KeyedPermit<IpAddr>, KeyedPermit<IpAddr>), &'static str> {
        let network = network(address);
        let connection = self.connections.try_acquire(network).ok_or("address")?;
        let handshake = self.handshakes.try_acquire(network).ok_or("address_handshakes")?;
        Ok((connection, handshake))
    }
}

/// The proxy behind the bounds of one listener.
pub(super) struct ConnectionLimits {
    pub(super) proxy: Arc<HttpProxy<Gateway>>,
    pub(super) clients: ClientAddresses,
    /// Its connections are counted.
    pub(super) public: bool,
    pub(super) permits: Semaphore,
    pub(super) addresses: AddressPermits,
    pub(super) descriptors: Arc<HeldDescriptors>,
    /// For heads of HTTP/2 that have not come whole.
    pub(super) header_memory: Arc<HeaderMemory>,
    pub(super) timeouts: Timeouts,
    pub(super) bounds: SendBounds,
    /// Age and number of requests after which a connection is closed.
    pub(super) connection_max_age: Duration,
    pub(super) connection_requests_max: u32,
    /// There on the public listener, and on a private one with a certificate. Pingora's listeners take
    /// settings only, and those have no ticket keys.
    pub(super) tls: Option<Acceptor>,
    pub(super) lifecycle: Arc<Lifecycle>,
    /// Turns true when idle connections are to be closed.
    pub(super) closing: watch::Sender<bool>,
    /// Counts handshakes, and connections that are refused.
    pub(super) metrics: Metrics,
}

/// The application of a listener: Pingora keeps it, and the listener after it has the same bounds.
pub(super) struct ConnectionApp(pub(super) Arc<ConnectionLimits>);

#[async_trait]
impl ServerApp for ConnectionApp {
    /// Pingora's task has room for a handshake of its own until it ends: the connection gets another.
    /// Its watch says that the listener ends, which happens in an upgrade that then fails, too.
    async fn process_new(self: &Arc<Self>, stream: Stream, _: &ShutdownWatch) -> Option<Stream> {
        let limits = Arc::clone(&self.0);
        tokio::spawn(async move { limits.serve(stream).await });
        None
    }

    /// Pingora closes idle connections as soon as it accepts none; clients get time to notice.
    async fn cleanup(&self) {
        let Self(limits) = self;
        limits.lifecycle.accepts_no_more();
        limits.lifecycle.reach(Phase::Closing).await;
        limits.closing.send_replace(true);
        limits.proxy.cleanup().await;
    }
}

impl ConnectionLimits {
    /// Serves a connection until it ends.
    async fn serve(&self, stream: Stream) {
        // The few who watch or operate the process are served to the last descriptor.
        if self.public && self.descriptors.are_given_up() {
            return self.refuse("open_files");
        }
        let Ok(_permit) = self.permits.try_acquire() else { return self.refuse("total") };
        // What a handshake takes is given back before the connection waits for requests.
        let Some((stream, client, _connection)) = Box::pin(self.open(stream)).await else { return };
        let meter = self.public.then(|| self.metrics.connection());
        let info = ConnectionInfo::new(&stream, client, meter);
        let digest = Some(info.digest());
        if matches!(stream.selected_alpn_proto(), Some(ALPN::H2)) {
            let memory = Arc::clone(&self.header_memory);
            let frames = FrameScan::new(Arc::clone(&info), self.timeouts.head, memory);
            let frames = Reading::Frames(frames);
            let io: Stream =
                Box::new(BufferedIo::new(stream, frames, digest, self.bounds.endless()));
            Box::pin(http2::serve(io, &info, self)).await;
        } else {
            let requests = Reading::Requests(RequestReader::new(info, self.timeouts));
            let io = Box::new(BufferedIo::new(stream, requests, digest, self.bounds));
            http1::serve(io, self).await;
        }
    }

    /// Counts a connection that is closed at once.
    fn refuse(&self, cause: &str) {
        self.metrics.connections_refused.with_label_values(&[cause]).inc();
    }

    /// The connection, its TLS handshake done where it has one, its client's address, and its permit
    /// where it needs one.
    async fn open(&self, stream: Stream) -> Option<(Stream, IpAddr, Option<KeyedPermit<IpAddr>>)> {
        // Who has come this far gets an answer, even from a process that stops.
        let _busy = self.lifecycle.begin();
        let mut socket = stream.into_any().downcast::<Socket>().ok()?;
        let told = timeout(HANDSHAKE_MAX, self.clients.of_connection(&mut socket)).await;
        let client = told.unwrap_or_else(|late| Err(late.into())).inspect_err(|error| {
            tracing::debug!(%error, "a connection is not from a proxy");
            self.refuse("proxy_protocol");
        });
        let client = client.ok()?;
        let admitted = (!self.clients.is_shared(client)).then(|| self.addresses.admit(client));
        let admitted = admitted.transpose().inspect_err(|cause| self.refuse(cause)).ok()?;
        let (connection, _handshake) = admitted.unzip();
        let Some(acceptor) = &self.tls else { return Some((socket, client, connection)) };
        let handshake = async {
            socket.try_peek(&mut [0]).await.ok()?;
            Some(acceptor.tls_handshake(*socket).await)
        };
        let count = |version: &str, outcome: &str| {
            self.metrics.tls_handshakes.with_label_values(&[version, outcome]).inc();
        };
        let outcome = match timeout(HANDSHAKE_MAX, handshake).await {
            Ok(Some(Ok(stream))) => {
                let digest = stream.get_ssl_digest();
                count(digest.as_ref().map_or("", |digest| digest.version.as_ref()), "ok");
                return Some((Box::new(stream), client, connection));
            }
            Ok(Some(Err(error))) => {
                tracing::debug!(%error, "a TLS handshake failed");
                "failed"
            }
            // A balancer that looks for a listener, for instance.
            Ok(None) => "closed",
            Err(_) => "timeout",
        };
        count("", outcome);
        None
    }
}
