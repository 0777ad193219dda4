//! The demo's environment: a folder, a certificate, a Postgres of its own, settings.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rampart_core::platform::clock::Clock;
use rampart_core::platform::crypto::Secret;
use rampart_core::platform::db;
use rampart_core::platform::private_postgres::{Options, PrivatePostgres, Profile};
use rampart_core::platform::settings::{Acme, Documents};
use serde_json::json;

use super::steps::Steps;
use crate::config::{Admin, Config, ProxyProtocol};
use crate::startup_error::{Context as _, StartupError};

const DATABASE: &str = "rampart_demo";

/// Everything that must exist before the edge starts, and lives as long as it.
pub(super) struct Environment {
    /// Settings of the edge.
    pub(super) config: Config,
    /// The certificate that a client must trust.
    pub(super) certificate: PathBuf,
    /// File of the settings for the other commands.
    pub(super) settings: PathBuf,
    postgres: PrivatePostgres,
}

impl Environment {
    /// Prepares folder, certificate, Postgres and the settings of the edge.
    pub(super) fn prepare(
        state: &Path,
        bin: Option<PathBuf>,
        steps: &mut Steps,
    ) -> Result<Self, StartupError> {
        let place = format!("'{}' cannot be used", state.display());
        fs::create_dir_all(state).context(&place)?;
        let state = state.canonicalize().context(&place)?;
        let mut config = Config::over(&defaults())?;
        let options = Options { state: state.join("postgres"), bin, profile: Profile::Demo };
        let postgres = steps
            .block("start a private Postgres", || PrivatePostgres::start(options))
            .map_err(|e| StartupError::from(e.to_string()))?;
        let certificate = state.join("certificate.pem");
        let key = state.join("key.pem");
        add_secrets(&mut config)?;
        isolate(&mut config, &state, postgres.url(DATABASE));
        let listen = &config.edge.listen;
        let make = || make_certificate(&certificate, &key, listen);
        steps.block("make a self-signed certificate", make)?;
        config.edge.tls.cert = Some(certificate.clone());
        config.edge.tls.key = Some(key);
        let settings = state.join("rampart.toml");
        Ok(Self { config, certificate, settings, postgres })
    }

    /// Writes the settings with which the other commands reach the edge, whose operators' listener
    /// is at `admin`.
    pub(super) fn write_settings(&self, admin: SocketAddr) -> Result<(), StartupError> {
        // A string of JSON is one of TOML.
        let token = json!(self.config.admin.token.as_ref().map_or("", Secret::expose));
        let text = format!("[admin]\nlisten = \"{admin}\"\ntoken = {token}\n");
        write_private(&self.settings, &text)
    }

    /// Writes `env` beside the settings: what a shell needs to know.
    pub(super) fn write_env(&self, text: &str) -> Result<(), StartupError> {
        write_private(&self.settings.with_file_name("env"), text)
    }

    /// Makes an empty database in the place of the last demo's.
    pub(super) async fn create_database(&self) -> Result<(), StartupError> {
        Ok(db::recreate(&self.postgres.url("postgres"), DATABASE).await?)
    }
}

/// Settings of a demo where the environment has none, as TOML.
fn defaults() -> String {
    let [edge, admin, ops, connectors] = [8443, 9443, 9464, 9465].map(free_or_any);
    // The demo's only operator is the configured token; its use is no emergency here.
    let level = "warn,rampart_api::operate::admin::login=error";
    format!(
        "[edge]\nlisten = '{edge}'\n[admin]\nlisten = '{admin}'\n[ops]\nlisten = '{ops}'\n\
         [connectors]\nlisten = '{connectors}'\n[log]\nlevel = '{level}'\naccess = false\n\
         [pages]\ngallery = true\n"
    )
}

/// Makes the secrets that the environment does not have.
fn add_secrets(config: &mut Config) -> Result<(), StartupError> {
    let clock = Clock::system();
    let no_entropy = "keys cannot be made";
    if config.admin.token.is_none() {
        let token: [u8; 24] = clock.random_bytes().context(no_entropy)?;
        config.admin.token = Some(Secret::new(URL_SAFE_NO_PAD.encode(token)));
    }
    if !config.core.keys.is_configured() {
        let master: [u8; 32] = clock.random_bytes().context(no_entropy)?;
        config.core.keys.master = Some(Secret::new(STANDARD.encode(master)));
    }
    Ok(())
}

/// Sets what a demo has of its own, whatever the environment says: it touches no database, store or
/// socket of an edge that was configured here, is called by no URL of that edge, and reaches itself
/// without another's certificate.
fn isolate(config: &mut Config, state: &Path, database: String) {
    let (edge, core) = (&mut config.edge, &mut config.core);
    edge.public_url = None;
    edge.proxy_protocol = ProxyProtocol::Off;
    edge.tls.certificates.clear();
    edge.upgrade_socket = None;
    let Admin { listen, token, .. } = config.admin.clone();
    config.admin = Admin { listen, token, ..Admin::default() };
    core.acme = Acme::default();
    core.database.url = Some(Secret::new(database));
    core.database.worker_url = None;
    core.database.migrate_url = None;
    core.database.replica_urls.clear();
    core.database.migrate_on_start = true;
    core.documents = Documents { folder: Some(state.join("documents")), ..Documents::default() };
    core.ratelimit.redis_url = None;
    // The demo's receiver of webhooks is a process on this machine.
    core.callbacks.allow_loopback = true;
    // Nobody has signed the policies that it pushes.
    core.policy.require_signature = false;
    core.policy.cache_folder.get_or_insert_with(|| state.join("policies"));
}

/// The usual port, or any other when somebody has it.
fn free_or_any(port: u16) -> SocketAddr {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpListener::bind(usual) {
        Ok(_) => usual,
        Err(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    }
}

/// Makes a certificate for this machine and the addresses that the edge listens on.
fn make_certificate(cert: &Path, key: &Path, listen: &[SocketAddr]) -> Result<(), StartupError> {
    let mut names = BTreeSet::from(["localhost".to_owned(), "127.0.0.1".to_owned()]);
    names.extend(listen.iter().map(|address| address.ip().to_string()));
    let made = rcgen::generate_simple_self_signed(names.into_iter().collect::<Vec<_>>())
        .context("no certificate can be made")?;
    write_private(cert, &made.cert.pem())?;
    write_private(key, &made.signing_key.serialize_pem())
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, text: &str) -> Result<(), StartupError> {
    let write = || {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(path)?.write_all(text.as_bytes())
    };
    write().context(format_args!("'{}' cannot be written", path.display()))
}
