//! From a configuration to a serving edge, and to its end. `rampart serve` and `rampart demo` both
//! start here.
//!
//! Pingora gives each service a runtime, and a connection of the database's pool works only as long
//! as the runtime on which it was opened: so the core and all listeners are one service.

mod buffered_io;
mod client_address;
mod connection_info;
mod connection_limits;
mod deadline;
mod descriptors;
mod framing;
mod http1;
mod http2;
mod lifecycle;
mod listener;
mod pingora_conf;
mod proxy_protocol;
mod request_reader;
mod send_rate;
mod service_manager;
mod shutdown;
mod sockets;
mod tls;
pub(crate) mod upgrade;

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use pingora_core::apps::HttpServerOptions;
use pingora_core::listeners::tls::Acceptor;
use pingora_core::server::configuration::{Opt, ServerConf};
use pingora_core::server::{Fds, ListenFds, RunArgs, Server, ShutdownWatch};
use pingora_core::services::Service;
use pingora_proxy::http_proxy;
use rampart_api::{served_apis, workers};
use rampart_core::Core;
use rampart_core::platform::clock::Clock;
use tokio::runtime::Runtime;
use tokio::sync::watch;

pub(crate) use self::client_address::ClientAddresses;
pub(crate) use self::connection_info::ConnectionInfo;
use self::connection_limits::{AddressPermits, ConnectionLimits};
pub(crate) use self::deadline::now;
use self::descriptors::HeldDescriptors;
pub(crate) use self::framing::{HeadError, METHOD_BYTES_MAX};
pub(crate) use self::lifecycle::{Busy, Lifecycle, Phase};
use self::listener::Listener;
use self::request_reader::Timeouts;
use self::send_rate::SendBounds;
use self::shutdown::{Shutdown, Watch};
use self::sockets::{Bound, Sockets};
pub(crate) use self::tls::{Certificates, StapleStatus};
use self::upgrade::UpgradePeer;
use crate::config::{Config, Tls};
use crate::gateway::{AccessLog, Gateway, PrivateListener};
use crate::logging::DiagnosticLog;
use crate::output;
use crate::startup_error::{Context as _, StartupError};

/// Most connections of each private listener, and most of one address among them: half of what the
/// network around it may have.
const PRIVATE_CONNECTIONS_MAX: usize = 256;
const PRIVATE_CONNECTIONS_PER_ADDRESS_MAX: usize = 96;

/// Serves until told to stop. Blocks; `upgrade` takes the listeners over from a running process.
/// Dropped lines of `log` count in its metrics.
pub(crate) fn run(config: Config, upgrade: bool, log: &DiagnosticLog) -> Result<(), StartupError> {
    let format = config.log.format;
    let mut serving = start(config, upgrade)?;
    log.count_in(&serving.core.metrics);
    output::line(serving.sockets.line(format));
    serving.until_stopped();
    Ok(())
}

/// A Tokio runtime for commands that run no edge.
pub(crate) fn runtime(threads: usize) -> Result<Runtime, StartupError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("rampart")
        .enable_all()
        .build()
        .context("threads cannot be started")
}

/// A serving edge.
pub(crate) struct Serving {
    /// The core behind the listeners.
    pub(crate) core: Arc<Core>,
    /// The addresses of the listeners.
    pub(crate) sockets: Sockets,
    running: Running,
}

/// Starts everything and returns when the listeners accept. Blocks.
///
/// # Errors
/// One sentence: a certificate, an address, the database or the old process.
pub(crate) fn start(mut config: Config, upgrade: bool) -> Result<Serving, StartupError> {
    config.settle()?;
    descriptors::reserve(&config)?;
    let descriptors = HeldDescriptors::take();
    let certificates = Certificates::load(config.edge.certificates())?;
    let private = |pair: Option<_>| pair.map(|pair| Certificates::load(vec![pair])).transpose();
    let (peer, mut fds) = inherit(&config, upgrade)?;
    let sockets = Sockets::open(&config, &mut fds)?;
    name_listeners(&mut config, &sockets);
    let start_log = || AccessLog::start(std::io::stdout(), config.log.format);
    let log = config.log.access.then(start_log).transpose();
    let log = log.context("the access log cannot be started")?.map(Arc::new);
    let clock = Clock::system();
    let edge = &config.edge;
    let shutdown = Arc::new(Shutdown {
        lifecycle: Lifecycle::new(clock.clone()),
        certificates,
        admin_certificate: private(config.admin.tls.key_pair())?,
        connectors_certificate: private(config.connectors.tls.key_pair())?,
        fds: ListenFds::new(fds.into()),
        upgrade_socket: edge.upgrade_socket.clone(),
        drain: edge.drain(),
        unready: Duration::from_secs(edge.shutdown_delay_seconds),
        handing_over: watch::Sender::new(false),
    });
    let mut server = Server::new_with_opt_and_conf(None::<Opt>, pingora_conf::of(&config)?);
    let (started, core) = sync_channel(1);
    server.add_service(EdgeService {
        conf: Arc::clone(&server.configuration),
        config,
        clock,
        log: log.clone(),
        sockets: sockets.clone(),
        descriptors,
        peer,
        shutdown: Arc::clone(&shutdown),
        started,
    });
    let shutdown_signal = Watch(Arc::clone(&shutdown));
    let run = move || server.run(RunArgs { shutdown_signal: Box::new(shutdown_signal) });
    let server = std::thread::Builder::new().name("server".into()).spawn(run);
    let running =
        Running { server: Some(server.context("threads cannot be started")?), shutdown, _log: log };
    let ended = |_| StartupError::from("the edge ended while it started; see above");
    Ok(Serving { core: core.recv().map_err(ended)??, sockets, running })
}

/// Checks the settings that only the server reads: cipher suites, and files of authorities.
///
/// # Errors
/// One sentence: which setting cannot be used.
pub(crate) fn check(config: &Config) -> Result<(), StartupError> {
    pingora_conf::of(config)?;
    tls::builder(&config.edge.tls)?;
    Ok(())
}

/// Sets the URLs that are not configured: a socket may have been any free port.
fn name_listeners(config: &mut Config, sockets: &Sockets) {
    if config.edge.public_url.is_none() {
        config.core.public_url = sockets.public_url();
    }
    if config.admin.url.is_none() {
        config.admin.listen = sockets.admin.address;
        config.core.admin_url = config.admin.base_url();
    }
}

/// The listeners of the process that runs, if we are to take them over.
fn inherit(config: &Config, upgrade: bool) -> Result<(Option<UpgradePeer>, Fds), StartupError> {
    if !upgrade {
        return Ok((None, Fds::new()));
    }
    let Some(path) = &config.edge.upgrade_socket else {
        return Err(StartupError::from("--upgrade needs 'edge.upgrade_socket'"));
    };
    tracing::info!(socket = %path.display(), "waiting for the listeners of the running process");
    let (peer, fds) = upgrade::inherit(path)
        .context(format_args!("no listeners were handed over at '{}'", path.display()))?;
    Ok((Some(peer), fds))
}

/// Waits until this process is the one to accept.
async fn take_over(peer: Option<UpgradePeer>) -> Result<(), StartupError> {
    let Some(peer) = peer else { return Ok(()) };
    let taking = tokio::task::spawn_blocking(move || peer.take_over()).await;
    taking
        .map_err(std::io::Error::other)
        .flatten()
        .context("the running process did not give up the listeners")
}

impl Serving {
    /// Waits until a signal has ended it.
    pub(crate) fn until_stopped(&mut self) {
        self.running.join();
    }
}

/// Pingora's server on its thread; stopped when this is dropped.
struct Running {
    server: Option<JoinHandle<()>>,
    shutdown: Arc<Shutdown>,
    /// Kept to the end, so that the lines of the last requests are written.
    _log: Option<Arc<AccessLog>>,
}

impl Running {
    fn join(&mut self) {
        if self.server.take().is_some_and(|server| server.join().is_err()) {
            tracing::error!("the server ended early");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.lifecycle.enter(Phase::Ending);
        self.join();
    }
}

/// Pingora's service: the core, its background work and all listeners.
struct EdgeService {
    conf: Arc<ServerConf>,
    config: Config,
    clock: Clock,
    log: Option<Arc<AccessLog>>,
    sockets: Sockets,
    descriptors: Arc<HeldDescriptors>,
    /// The old process, until it stops accepting.
    peer: Option<UpgradePeer>,
    shutdown: Arc<Shutdown>,
    started: SyncSender<Result<Arc<Core>, StartupError>>,
}

#[async_trait]
impl Service for EdgeService {
    fn name(&self) -> &'static str {
        "rampart"
    }

    async fn start_service(&mut self, _: Option<ListenFds>, _: ShutdownWatch, tasks: usize) {
        let (stop, stopped) = watch::channel(false);
        let core = self.listen(tasks, &stopped).await;
        let work =
            core.as_ref().ok().map(|core| tokio::spawn(workers::work(Arc::clone(core), stopped)));
        // Who started it waits for this.
        let _ = self.started.send(core);
        if let Some(work) = work {
            self.shutdown.lifecycle.enter(Phase::Serving);
            tokio::spawn(service_manager::inform(Arc::clone(&self.shutdown)));
            self.shutdown.lifecycle.reach(Phase::Ending).await;
            stop.send_replace(true);
            if work.await.is_err() {
                tracing::error!("background work ended early");
            }
        }
        self.shutdown.lifecycle.enter(Phase::Ended);
    }
}

impl EdgeService {
    /// Starts the core, and the listeners in front of it.
    async fn listen(
        &mut self,
        tasks: usize,
        stop: &watch::Receiver<bool>,
    ) -> Result<Arc<Core>, StartupError> {
        let mut settings = self.config.core.clone();
        // This very binary, even when a newer one has taken its name.
        settings.policy.compiler = Some("/proc/self/exe".into());
        let core = Core::start(served_apis(), settings, self.clock.clone()).await?;
        let (edge, lifecycle) = (&self.config.edge, &self.shutdown.lifecycle);
        let certificates = &self.shutdown.certificates;
        let acceptor = tls::acceptor(Arc::clone(certificates), &edge.tls, &core)?;
        // Callers of private listeners have tokens; certificates are for partners.
        let without_clients = Tls { client_ca: None, ..edge.tls.clone() };
        let private_tls = |certificates: &Option<Arc<Certificates>>| {
            certificates.clone().map(|own| tls::acceptor(own, &without_clients, &core)).transpose()
        };
        let admin_tls = private_tls(&self.shutdown.admin_certificate)?;
        let connectors_tls = private_tls(&self.shutdown.connectors_certificate)?;
        let public =
            Gateway::public(Arc::clone(&core), edge, Arc::clone(lifecycle), self.log.clone());
        let private =
            |listener| Gateway::private(listener, Arc::clone(&core), Arc::clone(lifecycle));
        let has_tls = self.shutdown.admin_certificate.is_some();
        let hsts_seconds = if has_tls { self.config.admin.hsts_seconds } else { 0 };
        let operators = private(PrivateListener::Operators).with_hsts(hsts_seconds);
        let operations = private(PrivateListener::Operations)
            .with_certificates(self.shutdown.all_certificates());
        let sockets = &self.sockets;
        let mut listeners = vec![
            self.listener(public, &core, &sockets.edge, Some(acceptor)),
            self.listener(operators, &core, [&sockets.admin], admin_tls),
            self.listener(operations, &core, [&sockets.ops], None),
        ];
        if sockets.connectors.is_some() {
            let connectors = private(PrivateListener::Connectors);
            listeners.push(self.listener(connectors, &core, &sockets.connectors, connectors_tls));
        }
        // Last, when nothing can fail any more: the old process ends then.
        take_over(self.peer.take()).await?;
        for listener in listeners.into_iter().map(Arc::new) {
            let shutdown = Arc::clone(&self.shutdown);
            let accept = move || Arc::clone(&listener).accept(tasks, Arc::clone(&shutdown));
            keep(&core, "listener", stop, accept);
        }
        let (lifecycle, waiting) = (Arc::clone(lifecycle), Arc::clone(&core));
        tokio::spawn(async move {
            lifecycle.reach(Phase::Draining).await;
            waiting.lease_waits.end();
        });
        self.keep_current(&core, stop);
        Ok(core)
    }

    /// Follows the files of all certificates, and the descriptors that are left.
    fn keep_current(&self, core: &Arc<Core>, stop: &watch::Receiver<bool>) {
        let (public, renewing) = (Arc::clone(&self.shutdown.certificates), Arc::clone(core));
        let ocsp = self.config.edge.tls.ocsp;
        let renew = move || Arc::clone(&public).renew(Arc::clone(&renewing), ocsp);
        keep(core, "certificates", stop, renew);
        for private in self.shutdown.all_certificates().into_iter().skip(1) {
            keep(core, "private certificates", stop, move || Arc::clone(&private).watch());
        }
        let descriptors = Arc::clone(&self.descriptors);
        keep(core, "descriptors", stop, move || Arc::clone(&descriptors).watch());
    }

    /// A listener on `sockets`.
    fn listener<'a>(
        &self,
        gateway: Gateway,
        core: &Core,
        sockets: impl IntoIterator<Item = &'a Bound>,
        tls: Option<Acceptor>,
    ) -> Listener {
        let (edge, public) = (&self.config.edge, gateway.is_public());
        let mut proxy = http_proxy(&self.conf, gateway);
        let mut options = HttpServerOptions::default();
        // CONNECT gets our own 405 instead of Pingora's, which is no envelope.
        options.allow_connect_method_proxying = true;
        proxy.server_options = Some(options);
        let (connections, of_address) = match public {
            true => (edge.connections_max, edge.connections_per_address_max),
            false => (PRIVATE_CONNECTIONS_MAX, PRIVATE_CONNECTIONS_PER_ADDRESS_MAX),
        };
        if public {
            core.metrics.set_connections_max(connections);
        }
        let limits = ConnectionLimits {
            proxy: Arc::new(proxy),
            clients: if public { ClientAddresses::new(edge) } else { ClientAddresses::default() },
            public,
            addresses: AddressPermits::new(connections, of_address),
            descriptors: Arc::clone(&self.descriptors),
            header_memory: http2::header_memory(),
            timeouts: Timeouts {
                head: Duration::from_secs(edge.request_header_timeout_seconds),
                idle: Duration::from_secs(edge.keepalive_timeout_seconds),
            },
            bounds: SendBounds {
                rate_min_bytes: edge.send_rate_min_bytes,
                total: Some(Duration::from_secs(edge.write_timeout_seconds)),
            },
            connection_max_age: Duration::from_secs(edge.connection_max_age_seconds),
            connection_requests_max: edge.connection_requests_max,
            tls,
            lifecycle: Arc::clone(&self.shutdown.lifecycle),
            closing: watch::Sender::new(false),
            metrics: core.metrics.clone(),
        };
        Listener { limits: Arc::new(limits), sockets: sockets.into_iter().cloned().collect() }
    }
}

/// Starts a task that goes on beside the requests, and again after a panic.
fn keep<Fut: Future<Output = ()> + Send + 'static>(
    core: &Arc<Core>,
    name: &'static str,
    stop: &watch::Receiver<bool>,
    start: impl Fn() -> Fut + Send + 'static,
) {
    let (core, stop) = (Arc::clone(core), stop.clone());
    tokio::spawn(async move { workers::keep(&core, name, stop, start).await });
}
