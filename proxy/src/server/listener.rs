//! Pingora's service accepts once, and closes its sockets at its end; here a listener accepts whenever
//! this process owns its sockets: again, too, when an upgrade has failed.

use std::panic::resume_unwind;
use std::sync::Arc;

use pingora_core::apps::ServerApp as _;
use pingora_core::listeners::{L4BufferSettings, ListenerConfig};
use pingora_core::services::Service;
use pingora_core::services::listening::Service as Listening;
use tokio::sync::watch;

use super::connection_limits::{ConnectionApp, ConnectionLimits};
use super::lifecycle::Phase;
use super::shutdown::Shutdown;
use super::sockets::Bound;

/// The bounds of connections, and the sockets that they come from.
pub(super) struct Listener {
    pub(super) limits: Arc<ConnectionLimits>,
    pub(super) sockets: Vec<Bound>,
}

impl Listener {
    /// Accepts, except while a new process is to own the sockets: the public listener until the
    /// process stops, a private one until all is done, so that who watches the process can do so to
    /// the end.
    ///
    /// # Panics
    /// As Pingora's service does where a socket cannot be used.
    pub(super) async fn accept(self: Arc<Self>, tasks: usize, shutdown: Arc<Shutdown>) {
        let end = if self.limits.public { Phase::Stopping } else { Phase::Closing };
        let lifecycle = &shutdown.lifecycle;
        let mut handing_over = shutdown.handing_over.subscribe();
        loop {
            let ours = handing_over.wait_for(|handing_over| !*handing_over);
            // Under the lock of the watch: who hands over next waits for this listener too.
            let app = ours.await.map(|_locked| ConnectionApp::new(Arc::clone(&self.limits)));
            let Ok(app) = app else { return };
            let (stop, stopped) = watch::channel(false);
            let (mut service, fds) = (self.service(app), Some(Arc::clone(&shutdown.fds)));
            let limits = Arc::clone(&self.limits);
            let mut serving = tokio::spawn(async move {
                Service::start_service(&mut service, fds, stopped, tasks).await;
                // Pingora closes idle connections at once; here clients get time to notice.
                limits.lifecycle.reach(Phase::Closing).await;
                limits.closing.send_replace(true);
                limits.proxy.cleanup().await;
            });
            let is_over = tokio::select! {
                () = lifecycle.reach(end) => true,
                // The sender is the shutdown itself: the wait does not fail.
                _ = handing_over.wait_for(|handing_over| *handing_over) => false,
                Err(error) = &mut serving => {
                    if let Ok(panic) = error.try_into_panic() {
                        resume_unwind(panic);
                    }
                    true
                }
            };
            stop.send_replace(true);
            if is_over {
                return;
            }
        }
    }

    /// Pingora's service on the sockets.
    fn service(&self, app: ConnectionApp) -> Listening<ConnectionApp> {
        let mut service = Listening::new("rampart".to_owned(), app);
        for socket in &self.sockets {
            // TLS and `BufferedIo` have buffers of their own.
            let listener = ListenerConfig::tcp(&socket.name);
            service.add_listener(listener.l4_buffer(L4BufferSettings::unbuffered()));
        }
        service
    }
}
