//! From a configuration to a serving edge, and to its end. `rampart serve` and `rampart demo` both
//! start here.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rampart_core::Core;
use rampart_core::platform::clock::Clock;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::access_log::AccessLog;
use crate::admin::Admin;
use crate::config::{self, Config};
use crate::edge::Edge;
use crate::gateway::Gateway;
use crate::guard::Guard;
use crate::lifecycle::{Lifecycle, Phase};
use crate::listener::{Listener, Tls};
use crate::local::{Answer, Local};
use crate::ops::Ops;
use crate::signals::{Signal, Signals};
use crate::sockets::Sockets;
use crate::tls::{self, Certificates};
use crate::upgrade::{self, Heir, Named, copies};

/// Most connections of each private listener.
const PRIVATE_CONNECTIONS_MAX: usize = 256;
/// Most bytes of bodies on each private listener at once.
const PRIVATE_BODY_MEMORY: usize = 64 * 1024 * 1024;
/// Time that background work gets to end.
const WORK_END_MAX: Duration = Duration::from_secs(5);
/// Time that the runtime waits for threads that still block when everything else has ended.
const RUNTIME_END_MAX: Duration = Duration::from_secs(1);

/// Why a command cannot do what it was told: one sentence for the operator.
#[derive(Debug)]
pub(crate) struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

impl From<String> for Fault {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

impl Fault {
    /// `what` could not be done because of `why`.
    pub(crate) fn new(what: &str, why: &dyn fmt::Display) -> Self {
        Self(format!("{what}: {why}"))
    }
}

/// Serves until told to stop. Blocks; `upgrade` takes the listeners over from a running process.
///
/// # Errors
/// One sentence: what is wrong, and where.
pub(crate) fn run(config: Config, upgrade: bool) -> Result<(), Fault> {
    let runtime = runtime(config.edge.threads)?;
    let mut serving = runtime.block_on(start(config, upgrade))?;
    println!("{}", serving.addresses());
    runtime.block_on(serving.until_stopped());
    runtime.shutdown_timeout(RUNTIME_END_MAX);
    // Last, so that the lines of the last requests are written.
    drop(serving);
    Ok(())
}

/// One runtime for everything: the sockets of the pool are then driven where requests run.
///
/// # Errors
/// When the operating system gives no threads.
pub(crate) fn runtime(threads: usize) -> Result<Runtime, Fault> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("rampart")
        .enable_all()
        .build()
        .map_err(|e| Fault::new("threads cannot be started", &e))
}

/// A serving edge.
pub(crate) struct Serving {
    /// The core behind the listeners.
    pub(crate) core: Arc<Core>,
    /// Where the public listeners are.
    pub(crate) edge: Vec<SocketAddr>,
    /// Where the operators' listener is.
    pub(crate) admin: SocketAddr,
    /// Where metrics and health are.
    pub(crate) ops: SocketAddr,
    lifecycle: Arc<Lifecycle>,
    certificates: Arc<Certificates>,
    signals: Signals,
    sockets: Vec<Named>,
    upgrade_socket: Option<PathBuf>,
    drain: Duration,
    unready: Duration,
    stop_work: watch::Sender<bool>,
    work: JoinHandle<()>,
    log: Arc<AccessLog>,
}

/// Starts everything and returns when the listeners accept. The runtime that awaits this must
/// outlive what is returned.
///
/// # Errors
/// One sentence: a certificate, an address, the database or the old process.
pub(crate) async fn start(mut config: Config, upgrade: bool) -> Result<Serving, Fault> {
    config.settle().map_err(|e| Fault(e.to_string()))?;
    let signals = Signals::install().map_err(|e| Fault::new("signals cannot be watched", &e))?;
    let certificates =
        Certificates::load(config.edge.certificates()).map_err(|e| Fault(e.to_string()))?;
    let (heir, inherited) = inherit(&config, upgrade).await?;
    let sockets = Sockets::open(&config, inherited)?;
    let kept = sockets.copies().map_err(|e| Fault::new("the listeners cannot be kept", &e))?;
    if config.edge.public_url.is_none() {
        config.core.public_url = sockets.public_url();
    }
    let core = Core::start(config.core.clone(), Clock::system())
        .await
        .map_err(|e| Fault(e.to_string()))?;
    let (stop_work, stopped) = watch::channel(false);
    let work = tokio::spawn(Arc::clone(&core).work(stopped));
    let log = AccessLog::start(config.log.format, config.log.access)
        .map_err(|e| Fault::new("the access log cannot be started", &e))?;
    let serving = Serving {
        edge: sockets.edge.iter().map(|opened| opened.address).collect(),
        admin: sockets.admin.address,
        ops: sockets.ops.address,
        lifecycle: Lifecycle::new(core.clock.clone()),
        core,
        certificates,
        signals,
        sockets: kept,
        upgrade_socket: config.edge.upgrade_socket.clone(),
        drain: Duration::from_secs(config.edge.drain_seconds),
        unready: Duration::from_secs(config.edge.shutdown_delay_seconds),
        stop_work,
        work,
        log: Arc::new(log),
    };
    serving.listen(&config, sockets)?;
    tokio::spawn(Arc::clone(&serving.certificates).watch());
    if let Some(heir) = heir
        && let Err(error) = heir.accepting()
    {
        tracing::warn!(%error, "the old process ended before it was told to");
    }
    Ok(serving)
}

/// The listeners of the process that runs, if we are to take them over.
async fn inherit(config: &Config, upgrade: bool) -> Result<(Option<Heir>, Vec<Named>), Fault> {
    if !upgrade {
        return Ok((None, Vec::new()));
    }
    let Some(path) = config.edge.upgrade_socket.clone() else {
        return Err(Fault("--upgrade needs 'edge.upgrade_socket'".into()));
    };
    let place = format!("no listeners were handed over at '{}'", path.display());
    tracing::info!(socket = %path.display(), "waiting for the listeners of the running process");
    let waited = tokio::task::spawn_blocking(move || upgrade::inherit(&path)).await;
    let (heir, sockets) =
        waited.map_err(|e| Fault::new(&place, &e))?.map_err(|e| Fault::new(&place, &e))?;
    Ok((Some(heir), sockets))
}

impl Serving {
    /// Where it listens, in one line that a program can read.
    pub(crate) fn addresses(&self) -> String {
        let edge: Vec<String> = self.edge.iter().map(SocketAddr::to_string).collect();
        format!("listening edge={} admin={} ops={}", edge.join(","), self.admin, self.ops)
    }

    fn listen(&self, config: &Config, sockets: Sockets) -> Result<(), Fault> {
        let Self { core, lifecycle, .. } = self;
        let (clock, edge) = (&core.clock, &config.edge);
        let gateway =
            Gateway::new(Arc::clone(core), edge, Arc::clone(lifecycle), Arc::clone(&self.log));
        let ca_file = upstream_ca(core)?;
        let acceptor =
            tls::acceptor(Arc::clone(&self.certificates)).map_err(|e| Fault(e.to_string()))?;
        let public = Listener {
            app: Arc::new(Edge::new(gateway, edge.threads, ca_file)),
            tls: Some(Tls { acceptor, metrics: core.metrics.clone() }),
            guard: Guard::new(
                edge.connections_max,
                edge.request_header_timeout(),
                edge.keepalive_timeout(),
            ),
            lifecycle: Arc::clone(lifecycle),
        };
        let admin = Admin { core: Arc::clone(core) };
        let ops = Ops { core: Arc::clone(core), lifecycle: Arc::clone(lifecycle) };
        let spawned = Arc::new(public)
            .spawn(sockets.edge)
            .and_then(|()| private(admin, edge, clock, lifecycle).spawn([sockets.admin]))
            .and_then(|()| private(ops, edge, clock, lifecycle).spawn([sockets.ops]));
        spawned.map_err(|e| Fault::new("a listener cannot be watched", &e))
    }

    /// Serves until a signal says otherwise: SIGTERM drains, SIGINT ends at once, SIGQUIT hands
    /// the listeners to a new process and drains, SIGHUP reads the certificates again.
    pub(crate) async fn until_stopped(&mut self) {
        let mut next = self.signals.next().await;
        loop {
            next = match next {
                Signal::Terminate => {
                    tracing::info!("stopping: not ready any more, finishing what is in flight");
                    self.lifecycle.enter(Phase::Draining);
                    break;
                }
                Signal::Interrupt => return,
                Signal::Reload => {
                    self.certificates.reload();
                    self.signals.next().await
                }
                Signal::Upgrade => {
                    let handing = hand_over(self.upgrade_socket.clone(), copies(&self.sockets));
                    let handed = tokio::select! {
                        handed = handing => Ok(handed),
                        end = self.signals.end() => Err(end),
                    };
                    match handed {
                        Ok(true) => {
                            tracing::info!("the new process accepts; finishing what is in flight");
                            self.lifecycle.enter(Phase::Stopping);
                            break;
                        }
                        Ok(false) => self.signals.next().await,
                        Err(end) => end,
                    }
                }
            };
        }
        let (lifecycle, sockets) = (Arc::clone(&self.lifecycle), std::mem::take(&mut self.sockets));
        let leave = leave(&lifecycle, sockets, self.unready, self.drain);
        tokio::select! {
            () = leave => {}
            // Whoever asks twice does not want to wait.
            _ = self.signals.end() => {}
        }
        self.stop_work.send_replace(true);
        if tokio::time::timeout(WORK_END_MAX, &mut self.work).await.is_err() {
            tracing::warn!("background work did not end in time");
        }
        tracing::info!("stopped");
    }
}

/// The file with the upstream's authorities, once it is seen to hold some.
fn upstream_ca(core: &Core) -> Result<Option<String>, Fault> {
    let Some(path) = &core.settings.limits.upstream_ca else { return Ok(None) };
    let shown = path.display();
    let wrong = |why: &dyn fmt::Display| {
        Fault::new(&format!("'limits.upstream_ca' is not usable: '{shown}'"), why)
    };
    let certificates = CertificateDer::pem_file_iter(path).map_err(|e| wrong(&e))?;
    let certificates: Result<Vec<_>, _> = certificates.collect();
    if certificates.map_err(|e| wrong(&e))?.is_empty() {
        return Err(wrong(&"it holds no certificate"));
    }
    Ok(Some(shown.to_string()))
}

/// Whether a new process accepts on our sockets now. Until it does, nothing changes here.
async fn hand_over(path: Option<PathBuf>, sockets: std::io::Result<Vec<Named>>) -> bool {
    let Some(path) = path else {
        tracing::error!("'edge.upgrade_socket' is not set: going on");
        return false;
    };
    let handed = match sockets {
        Ok(sockets) => {
            tokio::task::spawn_blocking(move || upgrade::hand_over(&path, &sockets)).await
        }
        Err(error) => Ok(Err(error)),
    };
    match handed.map_err(std::io::Error::other).flatten() {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(%error, "nobody took the listeners over: going on");
            false
        }
    }
}

/// A private listener's defaults.
fn private<A: Answer>(
    answers: A,
    edge: &config::Edge,
    clock: &Clock,
    lifecycle: &Arc<Lifecycle>,
) -> Arc<Listener<Local<A>>> {
    let (clock, of_app) = (clock.clone(), Arc::clone(lifecycle));
    Arc::new(Listener {
        app: Arc::new(Local::new(answers, PRIVATE_BODY_MEMORY, clock, of_app)),
        tls: None,
        guard: Guard::new(
            PRIVATE_CONNECTIONS_MAX,
            edge.request_header_timeout(),
            edge.keepalive_timeout(),
        ),
        lifecycle: Arc::clone(lifecycle),
    })
}

/// From draining (or stopping, after an upgrade) to closing. The first half of `drain` at most
/// is spent accepting, the second finishing.
async fn leave(lifecycle: &Lifecycle, sockets: Vec<Named>, unready: Duration, drain: Duration) {
    if lifecycle.phase() < Phase::Stopping {
        // Nothing ends this early: it is the balancer's time to notice.
        let _ = tokio::time::timeout(unready, lifecycle.watch().at_least(Phase::Stopping)).await;
        lifecycle.quiet(drain / 2).await;
        lifecycle.enter(Phase::Stopping);
    }
    drop(sockets);
    lifecycle.quiet(drain / 2).await;
    lifecycle.enter(Phase::Closing);
}
