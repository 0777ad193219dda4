//! Pingora knows no second signal, no SIGHUP and no stop that ends as soon as nothing is in flight;
//! this is the watch of signals that its server asks when to shut down.

use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use pingora_core::server::{ListenFds, ShutdownSignal, ShutdownSignalWatch};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::{oneshot, watch};

use super::deadline::now;
use super::lifecycle::{Lifecycle, Phase};
use super::tls::Certificates;
use super::upgrade::{self, SocketCopies, UpgradeHeir};

/// Time that background work gets to end.
const WORK_END_MAX: Duration = Duration::from_secs(5);
/// Time in which a new process, with nothing left to do, takes the sockets. Connections wait in them
/// meanwhile.
const TAKE_MAX: Duration = Duration::from_secs(5);

/// SIGTERM: finish, then end.
const TERMINATE: SignalKind = SignalKind::terminate();
/// SIGINT: end.
const INTERRUPT: SignalKind = SignalKind::interrupt();
/// SIGQUIT: hand over to a new process, then finish and end.
const UPGRADE: SignalKind = SignalKind::quit();
/// SIGHUP: read the certificates again.
const RELOAD: SignalKind = SignalKind::hangup();
const ENDS: [SignalKind; 2] = [INTERRUPT, TERMINATE];
const ALL: [SignalKind; 4] = [INTERRUPT, TERMINATE, UPGRADE, RELOAD];

/// The process under signals: it reads certificates again, hands over to a new process, ends.
pub(super) struct Shutdown {
    pub(super) lifecycle: Arc<Lifecycle>,
    pub(super) certificates: Arc<Certificates>,
    /// The operators' listener's, if it has one.
    pub(super) admin_certificate: Option<Arc<Certificates>>,
    /// The same of the connectors' listener.
    pub(super) connectors_certificate: Option<Arc<Certificates>>,
    /// The sockets of all listeners, by their names.
    pub(super) fds: ListenFds,
    pub(super) upgrade_socket: Option<PathBuf>,
    pub(super) drain: Duration,
    /// True while a new process is to own the sockets: no listener accepts, the private ones neither.
    pub(super) handing_over: watch::Sender<bool>,
    pub(super) unready: Duration,
}

/// The one that Pingora owns.
pub(super) struct Watch(pub(super) Arc<Shutdown>);

#[async_trait]
impl ShutdownSignalWatch for Watch {
    /// Returns when everything has ended that Pingora does not know of.
    async fn recv(&self) -> ShutdownSignal {
        let Self(shutdown) = self;
        let signalled = match Signals::install() {
            Ok(signals) => tokio::select! {
                at_once = shutdown.run(signals) => {
                    if at_once {
                        return ShutdownSignal::GracefulTerminate;
                    }
                    true
                }
                () = shutdown.lifecycle.reach(Phase::Ending) => false,
            },
            Err(error) => {
                tracing::error!(%error, "signals cannot be watched");
                false
            }
        };
        shutdown.lifecycle.enter(Phase::Ending);
        let ended = shutdown.lifecycle.reach(Phase::Ended);
        if tokio::time::timeout(WORK_END_MAX, ended).await.is_err() {
            tracing::warn!("background work did not end in time");
        }
        if signalled {
            tracing::info!("stopped");
        }
        ShutdownSignal::GracefulTerminate
    }
}

impl Shutdown {
    /// The certificates of all listeners, the public one's first.
    pub(super) fn all_certificates(&self) -> Vec<Arc<Certificates>> {
        let private = self.admin_certificate.iter().chain(&self.connectors_certificate);
        [&self.certificates].into_iter().chain(private).cloned().collect()
    }

    /// Serves until a signal says otherwise: SIGTERM drains, SIGINT ends at once, SIGQUIT hands
    /// the listeners to a new process and drains, SIGHUP reads the certificates again. Gives the
    /// signal that ends it.
    async fn stop_signal(&self, signals: &mut Signals) -> SignalKind {
        self.lifecycle.reach(Phase::Serving).await;
        loop {
            match signals.next(&ALL).await {
                RELOAD => self.all_certificates().iter().for_each(|one| one.reload()),
                UPGRADE => {
                    let heir = tokio::select! {
                        heir = self.find_heir() => heir,
                        end = signals.next(&ENDS) => return end,
                    };
                    // No signal ends this halfway: within seconds one of the two accepts.
                    if let Some((heir, copies)) = heir
                        && self.hand_over(heir, copies).await
                    {
                        tracing::info!("the new process accepts; finishing what is in flight");
                        // One that came meanwhile is the first: left for later it would count as
                        // the second, which ends what is in flight.
                        return signals.next(&ENDS).now_or_never().unwrap_or(UPGRADE);
                    }
                }
                end => return end,
            }
        }
    }

    /// The new process, when it is ready to accept. Until then, however long that takes, nothing
    /// changes here.
    async fn find_heir(&self) -> Option<(UpgradeHeir, SocketCopies)> {
        let Some(path) = self.upgrade_socket.clone() else {
            tracing::error!("'edge.upgrade_socket' is not set: going on");
            return None;
        };
        let fds = Arc::clone(&self.fds);
        let (sender, handed) = oneshot::channel();
        // A thread that the end of the process does not wait for.
        std::thread::spawn(move || {
            let unheard = sender.send(upgrade::hand_over(&path, &fds.lock()));
            // The process was told to end meanwhile: the new one accepts when this one is gone.
            while unheard.is_err() {
                std::thread::park();
            }
        });
        handed
            .await
            .map_err(io::Error::other)
            .flatten()
            .inspect_err(
                |error| tracing::error!(%error, "nobody took the listeners over: going on"),
            )
            .ok()
    }

    /// Says whether the new process owns our sockets now: it accepts only when we do no more. Should
    /// it not do so, we accept again.
    async fn hand_over(&self, heir: UpgradeHeir, copies: SocketCopies) -> bool {
        self.handing_over.send_replace(true);
        self.lifecycle.all_deaf().await;
        let accepting = tokio::task::spawn_blocking(move || heir.accept(TAKE_MAX)).await;
        if let Err(error) = accepting.map_err(io::Error::other).flatten() {
            tracing::error!(%error, "the new process did not accept: accepting again");
            copies.restore(&mut self.fds.lock());
            self.handing_over.send_replace(false);
            return false;
        }
        self.lifecycle.enter(Phase::Stopping);
        true
    }

    /// Serves until told to stop, and finishes what is in flight unless told to stop at once.
    async fn run(&self, mut signals: Signals) -> bool {
        match self.stop_signal(&mut signals).await {
            INTERRUPT => return true,
            TERMINATE => {
                tracing::info!("stopping: not ready any more, finishing what is in flight");
                self.lifecycle.enter(Phase::Draining);
            }
            _ => {}
        }
        tokio::select! {
            () = self.leave() => {}
            // Whoever asks twice does not want to wait.
            _ = signals.next(&ENDS) => {}
        }
        false
    }

    /// From draining (or stopping, after an upgrade) to the end of the last connection: `unready`
    /// is spent accepting, at most `drain` finishing.
    async fn leave(&self) {
        let Self { lifecycle, drain, unready, .. } = self;
        if lifecycle.phase() < Phase::Stopping {
            // Nothing ends this early: it is the balancer's time to notice.
            let _ = tokio::time::timeout(*unready, lifecycle.reach(Phase::Stopping)).await;
            lifecycle.enter(Phase::Stopping);
        }
        let end = now() + *drain;
        lifecycle.quiet(*drain).await;
        lifecycle.enter(Phase::Closing);
        // A request that comes with the last look is answered, too.
        lifecycle.all_closed(end.saturating_duration_since(now())).await;
    }
}

/// The signals that are caught, from when this was made.
struct Signals(Vec<(SignalKind, unix::Signal)>);

impl Signals {
    fn install() -> io::Result<Self> {
        let installed = ALL.map(|kind| Ok((kind, unix::signal(kind)?)));
        installed.into_iter().collect::<io::Result<_>>().map(Self)
    }

    /// The next one of `kinds`.
    async fn next(&mut self, kinds: &[SignalKind]) -> SignalKind {
        poll_fn(|cx| {
            let mut caught = self.0.iter_mut().filter(|(kind, _)| kinds.contains(kind));
            let caught =
                caught.find_map(|(kind, signal)| signal.poll_recv(cx).is_ready().then_some(*kind));
            caught.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
