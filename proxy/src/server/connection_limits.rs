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
use rampart_core::platform::network::{network, surrounding_network};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::buffered_io::{BufferedIo, Reading};
use super::client_address::ClientAddresses;
use super::connection_info::ConnectionInfo;
use super::descriptors::HeldDescriptors;
use super::http1;
use super::http2::{self, FrameScan, HeaderMemory};
use super::lifecycle::Lifecycle;
use super::request_reader::{RequestReader, Timeouts};
use super::send_rate::SendBounds;
use crate::gateway::Gateway;

/// Time for a TLS handshake, and for the PROXY protocol before it.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Handshakes that an address may have under way; three quarters of its connections, if that is more.
const HANDSHAKES_PER_ADDRESS: usize = 64;

/// The permits of a connection: its address's, and that of the network around it.
type ConnectionPermits = [KeyedPermit<IpAddr>; 2];

/// The connections of a listener: all, those of each address, with its handshakes among them, and
/// those of the network around it.
pub(super) struct AddressPermits {
    all: Semaphore,
    /// Counted as free besides: the setting for one address holds where it is much of all.
    spare: usize,
    networks: KeyedSemaphore<IpAddr>,
    connections: KeyedSemaphore<IpAddr>,
    handshakes: KeyedSemaphore<IpAddr>,
}

impl AddressPermits {
    /// At most `of_address` of one address, or of one /64 network in IPv6. The network around it
    /// has three quarters of all `connections`, or those of two addresses if that is more.
    pub(super) fn new(connections: usize, of_address: usize) -> Self {
        let of_network = (connections - connections / 4).max(of_address.saturating_mul(2));
        let handshakes = HANDSHAKES_PER_ADDRESS.max(of_address - of_address / 4);
        Self {
            all: Semaphore::new(connections),
            spare: (of_network + of_network / 3).saturating_sub(connections),
            networks: KeyedSemaphore::new(of_network),
            connections: KeyedSemaphore::new(of_address),
            handshakes: KeyedSemaphore::new(handshakes),
        }
    }

    /// The permits of a connection that is counted among all, and that of its handshake. An address
    /// has no more connections than it leaves to the others, of its network and of all, and a network
    /// no more than three times as many: few of them cannot take all.
    ///
    /// # Errors
    /// The cause for which it is refused.
    fn admit(
        &self,
        address: IpAddr,
    ) -> Result<(ConnectionPermits, KeyedPermit<IpAddr>), &'static str> {
        let (address, around) = (network(address), surrounding_network(address));
        let free = self.all.available_permits() + self.spare + 1;
        let of_network = self.networks.try_acquire_within(around, 3 * free).ok_or("network")?;
        let most = free.min(self.networks.left(&around) + 1);
        let of_address = self.connections.try_acquire_within(address, most).ok_or("address")?;
        let handshake = self.handshakes.try_acquire(address).ok_or("address_handshakes")?;
        Ok(([of_address, of_network], handshake))
    }
}

/// The proxy behind the bounds of one listener.
pub(super) struct ConnectionLimits {
    pub(super) proxy: Arc<HttpProxy<Gateway>>,
    pub(super) clients: ClientAddresses,
    /// Its connections are counted.
    pub(super) public: bool,
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

/// The application of a listener: Pingora keeps it as long as it accepts, and with each connection
/// until [`ConnectionApp::process_new`] has counted that in. The next listener has the same bounds.
pub(super) struct ConnectionApp {
    limits: Arc<ConnectionLimits>,
    _accepting: TaskTrackerToken,
}

impl ConnectionApp {
    /// Accepts from now on.
    pub(super) fn new(limits: Arc<ConnectionLimits>) -> Self {
        Self { _accepting: limits.lifecycle.accept(), limits }
    }
}

#[async_trait]
impl ServerApp for ConnectionApp {
    /// Pingora's task has room for a handshake of its own until it ends: the connection gets another.
    /// Its watch says that the listener ends, which happens in an upgrade that then fails, too.
    async fn process_new(self: &Arc<Self>, stream: Stream, _: &ShutdownWatch) -> Option<Stream> {
        let limits = Arc::clone(&self.limits);
        // Before the task runs: a process that stops waits for who was accepted.
        let connected = limits.lifecycle.connect();
        tokio::spawn(async move {
            let _connected = connected;
            limits.serve(stream).await;
        });
        None
    }
}

impl ConnectionLimits {
    /// Serves a connection until it ends.
    async fn serve(&self, stream: Stream) {
        // The few who watch or operate the process are served to the last descriptor.
        if self.public && self.descriptors.are_given_up() {
            return self.refuse("open_files");
        }
        let Ok(_permit) = self.addresses.all.try_acquire() else { return self.refuse("total") };
        // What a handshake takes is given back before the connection waits for requests.
        let Some((stream, client, _connection)) = Box::pin(self.open(stream)).await else { return };
        let meter = self.public.then(|| self.metrics.connection());
        let info = ConnectionInfo::new(&stream, client, meter);
        let digest = info.digest();
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

    /// The connection, its TLS handshake done where it has one, its client's address, and the
    /// permits that it needs.
    async fn open(&self, stream: Stream) -> Option<(Stream, IpAddr, Option<ConnectionPermits>)> {
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

#[cfg(test)]
mod tests {
    use tokio::sync::SemaphorePermit;

    use super::*;

    /// The permits of connections, each with that of all.
    type Connections<'a> = Vec<(SemaphorePermit<'a>, ConnectionPermits)>;

    /// Takes connections of an address until one is refused; those, and the cause.
    fn fill<'a>(permits: &'a AddressPermits, address: &str) -> (Connections<'a>, &'static str) {
        let mut open = Vec::new();
        loop {
            let Ok(one) = permits.all.try_acquire() else { return (open, "total") };
            match permits.admit(address.parse().unwrap()) {
                Ok((connection, _)) => open.push((one, connection)),
                Err(cause) => return (open, cause),
            }
        }
    }

    #[test]
    fn few_addresses_of_a_network_leave_connections_to_its_others() {
        let permits = AddressPermits::new(256, 96);
        let mut held = Vec::new();
        for (last, share) in [(1, 96), (2, 48), (3, 24), (4, 12), (5, 6), (6, 3), (7, 2), (8, 1)] {
            let (open, _) = fill(&permits, &format!("192.0.2.{last}"));
            assert_eq!(open.len(), share, "192.0.2.{last}");
            held.push(open);
        }
        assert!(matches!(fill(&permits, "192.0.2.9"), (none, "network") if none.is_empty()));
        assert!(matches!(fill(&permits, "192.0.3.1"), (open, "address") if open.len() == 32));
        held.truncate(1);
        assert_eq!(fill(&permits, "192.0.2.9").0.len(), 48);
    }

    #[test]
    fn few_networks_leave_connections_to_others() {
        let shares_of_one_address: &[_] = &[96, 80, 40, 20, 10, 5, 3, 1, 1];
        let shares_of_many: &[_] = &[192, 48, 12, 3, 1];
        for (addresses, shares) in [(1, shares_of_one_address), (20, shares_of_many)] {
            let permits = AddressPermits::new(256, 96);
            let mut held = Vec::new();
            for (number, share) in shares.iter().enumerate() {
                let all = (1..=addresses).map(|last| format!("192.0.{number}.{last}"));
                let open: Vec<_> = all.flat_map(|one| fill(&permits, &one).0).collect();
                assert_eq!(open.len(), *share, "{addresses} addresses of network {number}");
                held.push(open);
            }
            assert!(matches!(fill(&permits, "198.51.100.1"), (none, "total") if none.is_empty()));
        }
    }

    #[test]
    fn networks_of_one_party_in_ipv6_are_bounded_together() {
        let permits = AddressPermits::new(8_192, 256);
        let taken: Vec<_> =
            (0..64).map(|number| fill(&permits, &format!("2001:db8:1:{number}::1")).0).collect();
        assert_eq!(taken.iter().map(Vec::len).sum::<usize>(), 6_144);
        assert_eq!(fill(&permits, "2001:db8:2::1").0.len(), 256);
    }

    #[test]
    fn the_setting_for_one_address_holds_where_it_is_more_than_half_of_all() {
        for (connections, of_address) in [(4, 256), (8_192, 8_192), (5, 3)] {
            let permits = AddressPermits::new(connections, of_address);
            let most = of_address.min(connections);
            assert!(fill(&permits, "192.0.2.1").0.len() >= most, "{connections} {of_address}");
        }
    }
}
