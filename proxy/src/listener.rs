//! Listening: the accept loop, the cap on connections, the TLS handshake.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use pingora_core::listeners::tls::Acceptor;
use pingora_core::protocols::l4::stream::Stream as Plain;
use pingora_core::protocols::{GetSocketDigest as _, SocketDigest, Ssl as _, Stream};
use rampart_core::platform::metrics::Metrics;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::connection::{self, App};
use crate::guard::Guard;
use crate::lifecycle::{Lifecycle, Phase};
use crate::sockets::Opened;

/// Time for a TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Pause after an accept that failed, so that a lack of file descriptors does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// TLS on a listener.
pub(crate) struct Tls {
    /// What handshakes are made with.
    pub(crate) acceptor: Acceptor,
    /// Where they are counted.
    pub(crate) metrics: Metrics,
}

/// What serves the connections of a socket, and within which bounds.
pub(crate) struct Listener<A> {
    /// What serves.
    pub(crate) app: Arc<A>,
    /// TLS, on the public listener.
    pub(crate) tls: Option<Tls>,
    /// Caps and deadlines.
    pub(crate) guard: Guard,
    /// When to stop.
    pub(crate) lifecycle: Arc<Lifecycle>,
}

impl<A: App> Listener<A> {
    /// Accepts connections on `sockets` until the process stops; what waits in a queue then is
    /// still taken. Must run on the runtime that serves.
    ///
    /// # Errors
    /// When the runtime cannot watch a socket.
    pub(crate) fn spawn(
        self: Arc<Self>,
        sockets: impl IntoIterator<Item = Opened>,
    ) -> io::Result<()> {
        for opened in sockets {
            let socket = TcpListener::from_std(opened.socket)?;
            tokio::spawn(Arc::clone(&self).accept(socket));
        }
        Ok(())
    }

    async fn accept(self: Arc<Self>, socket: TcpListener) {
        let mut phase = self.lifecycle.watch();
        loop {
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted,
                () = phase.at_least(Phase::Stopping) => break,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    // A stop ends the pause early.
                    let _ = timeout(ACCEPT_PAUSE, phase.at_least(Phase::Stopping)).await;
                }
            }
        }
        while let Some(Ok((stream, peer))) = socket.accept().now_or_never() {
            self.admit(stream, peer);
        }
    }

    /// Serves the connection in a task of its own, or drops it when there are too many.
    fn admit(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        let Some(place) = self.guard.enter() else {
            return;
        };
        let listener = Arc::clone(self);
        tokio::spawn(async move {
            // What a handshake takes is given back before the connection waits for requests.
            if let Some(stream) = Box::pin(listener.open(stream, peer)).await {
                let Self { app, guard, lifecycle, .. } = &*listener;
                connection::run(stream, canonical(peer), app, guard, lifecycle).await;
            }
            drop(place);
        });
    }

    /// The connection as Pingora knows it, its TLS handshake done.
    async fn open(&self, stream: TcpStream, peer: SocketAddr) -> Option<Stream> {
        // Who has come this far gets an answer, even from a process that stops.
        let _busy = self.lifecycle.begin();
        // Without it answers wait for the peer's acknowledgements; the connection works anyway.
        let _ = stream.set_nodelay(true);
        let digest = SocketDigest::from_raw_fd(stream.as_raw_fd());
        // The cell is new and therefore empty.
        let _ = digest.peer_addr.set(Some(peer.into()));
        let mut plain = Plain::from(stream);
        plain.set_socket_digest(digest);
        let Some(tls) = &self.tls else {
            return Some(Box::new(plain));
        };
        let handshake = timeout(HANDSHAKE_MAX, tls.acceptor.tls_handshake(plain)).await;
        let count = |version: &str, outcome: &str| {
            tls.metrics.tls_handshakes.with_label_values(&[version, outcome]).inc();
        };
        match handshake {
            Ok(Ok(stream)) => {
                let digest = stream.get_ssl_digest();
                count(digest.as_ref().map_or("", |digest| digest.version.as_ref()), "ok");
                Some(Box::new(stream))
            }
            Ok(Err(error)) => {
                tracing::debug!(%peer, %error, "a TLS handshake failed");
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

/// An IPv4 address that arrived on an IPv6 socket is the IPv4 address.
fn canonical(peer: SocketAddr) -> IpAddr {
    peer.ip().to_canonical()
}
