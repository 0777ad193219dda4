//! Pingora's listener neither caps connections nor counts and bounds TLS handshakes, and its
//! application gives a connection no deadlines: all of it happens here, around the proxy.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pingora_core::apps::ServerApp;
use pingora_core::listeners::tls::Acceptor;
use pingora_core::protocols::l4::stream::Stream as Socket;
use pingora_core::protocols::{ALPN, Ssl as _, Stream};
use pingora_core::server::ShutdownWatch;
use pingora_proxy::HttpProxy;
use rampart_core::platform::metrics::Metrics;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::buffered_io::BufferedIo;
use super::client_address::ClientAddresses;
use super::connection_info::ConnectionInfo;
use super::http2;
use super::lifecycle::{Lifecycle, Phase};
use super::request_reader::{RequestReader, Timeouts};
use crate::gateway::Gateway;

/// Time for a TLS handshake, and for the PROXY protocol before it.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// TLS on a listener.
pub(super) struct Tls {
    /// Pingora's acceptor; its listeners take settings only, and those have no ticket keys.
    pub(super) acceptor: Acceptor,
    /// Counts handshakes.
    pub(super) metrics: Metrics,
}

/// The proxy behind the bounds of one listener.
pub(super) struct ConnectionLimits {
    pub(super) proxy: Arc<HttpProxy<Gateway>>,
    pub(super) clients: ClientAddresses,
    pub(super) permits: Semaphore,
    pub(super) timeouts: Timeouts,
    /// There on the public listener.
    pub(super) tls: Option<Tls>,
    pub(super) lifecycle: Arc<Lifecycle>,
}

#[async_trait]
impl ServerApp for ConnectionLimits {
    async fn process_new(
        self: &Arc<Self>,
        stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let _permit = self.permits.try_acquire().ok()?;
        // What a handshake takes is given back before the connection waits for requests.
        let (stream, client) = Box::pin(self.open(stream)).await?;
        let info = ConnectionInfo::new(&stream, client);
        let digest = info.digest().ok();
        if matches!(stream.selected_alpn_proto(), Some(ALPN::H2)) {
            let io: Stream = Box::new(BufferedIo::new(stream, None, digest));
            let idle = self.timeouts.idle;
            Box::pin(http2::serve(&self.proxy, io, &info, idle, shutdown)).await;
            return None;
        }
        let requests = RequestReader::new(info, self.timeouts);
        let io = Box::new(BufferedIo::new(stream, Some(requests), digest));
        self.proxy.process_new(io, shutdown).await
    }

    /// Pingora closes idle connections as soon as it accepts none; clients get time to notice.
    async fn cleanup(&self) {
        self.lifecycle.watch().at_least(Phase::Closing).await;
        self.proxy.cleanup().await;
    }
}

impl ConnectionLimits {
    /// The connection, its TLS handshake done, and its client's address.
    async fn open(&self, stream: Stream) -> Option<(Stream, IpAddr)> {
        // Who has come this far gets an answer, even from a process that stops.
        let _busy = self.lifecycle.begin();
        let mut socket = stream.into_any().downcast::<Socket>().ok()?;
        let client = timeout(HANDSHAKE_MAX, self.clients.of_connection(&mut socket)).await.ok()?;
        let client = client
            .inspect_err(|error| tracing::debug!(%error, "a connection is not from a proxy"))
            .ok()?;
        let Some(tls) = &self.tls else { return Some((socket, client)) };
        let handshake = timeout(HANDSHAKE_MAX, tls.acceptor.tls_handshake(*socket)).await;
        let count = |version: &str, outcome: &str| {
            tls.metrics.tls_handshakes.with_label_values(&[version, outcome]).inc();
        };
        match handshake {
            Ok(Ok(stream)) => {
                let digest = stream.get_ssl_digest();
                count(digest.as_ref().map_or("", |digest| digest.version.as_ref()), "ok");
                Some((Box::new(stream), client))
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake failed");
                count("", "failed");
                None
            }
            Err(_) => {
                count("", "timeout");
                None
            }
        }
    }
}
