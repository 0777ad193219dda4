//! The demo's environment: a folder, a certificate, a Postgres of its own, settings.

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

use super::steps::Steps;
use crate::config::Config;
use crate::startup_error::StartupError;

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
    ///
    /// # Errors
    /// One sentence.
    pub(super) fn prepare(
        state: &Path,
        bin: Option<PathBuf>,
        steps: &mut Steps,
    ) -> Result<Self, StartupError> {
        let place = format!("'{}' cannot be used", state.display());
        fs::create_dir_all(state).map_err(|e| StartupError::new(&place, &e))?;
        let state = state.canonicalize().map_err(|e| StartupError::new(&place, &e))?;
        let options = Options { state: state.join("postgres"), bin, profile: Profile::Demo };
        let postgres = steps
            .block("start a private Postgres", || PrivatePostgres::start(options))
            .map_err(|e| StartupError::from(e.to_string()))?;
        let certificate = state.join("certificate.pem");
        let key = state.join("key.pem");
        steps.block("make a self-signed certificate", || make_certificate(&certificate, &key))?;
        let mut config = config(&postgres, &certificate, &key)?;
        config.core.documents.folder = Some(state.join("documents"));
        // The demo's receiver of webhooks is a process on this machine.
        config.core.callbacks.allow_loopback = true;
        config.core.pages.gallery = true;
        config.core.policy.cache_folder = Some(state.join("policies"));
        let settings = state.join("rampart.toml");
        Ok(Self { config, certificate, settings, postgres })
    }

    /// Writes the settings with which the other commands reach the edge, whose operators' listener
    /// is at `admin`.
    ///
    /// # Errors
    /// One sentence.
    pub(super) fn write_settings(&self, admin: SocketAddr) -> Result<(), StartupError> {
        let token = self.config.admin.token.as_ref().map_or("", Secret::expose);
        let text = format!("[admin]\nlisten = \"{admin}\"\ntoken = \"{token}\"\n");
        write_private(&self.settings, &text)
    }

    /// Writes `env` beside the settings: what a shell needs to know.
    ///
    /// # Errors
    /// One sentence.
    pub(super) fn write_env(&self, text: &str) -> Result<(), StartupError> {
        write_private(&self.settings.with_file_name("env"), text)
    }

    /// Makes an empty database in the place of the last demo's.
    ///
    /// # Errors
    /// One sentence.
    pub(super) async fn create_database(&self) -> Result<(), StartupError> {
        Ok(db::recreate(&self.postgres.url("postgres"), DATABASE).await?)
    }
}

fn config(postgres: &PrivatePostgres, cert: &Path, key: &Path) -> Result<Config, StartupError> {
    let clock = Clock::system();
    let no_entropy = |e| StartupError::new("keys cannot be made", &e);
    let mut config = Config::default();
    config.edge.listen = vec![free_or_any(8443)];
    config.admin.listen = free_or_any(9443);
    config.ops.listen = free_or_any(9464);
    config.connectors.listen = Some(free_or_any(9465));
    config.edge.tls.cert = Some(cert.to_owned());
    config.edge.tls.key = Some(key.to_owned());
    let token: [u8; 24] = clock.random_bytes().map_err(no_entropy)?;
    config.admin.token = Some(Secret::new(URL_SAFE_NO_PAD.encode(token)));
    let master: [u8; 32] = clock.random_bytes().map_err(no_entropy)?;
    config.core.keys.master = Some(Secret::new(STANDARD.encode(master)));
    config.core.database.url = Some(Secret::new(postgres.url(DATABASE)));
    config.core.database.migrate_on_start = true;
    // The demo's only operator is the configured token; its use is no emergency here.
    config.log.level = "warn,rampart_core::operate::admin::login=error".to_owned();
    config.log.access = false;
    Ok(config)
}

/// The usual port, or any other when somebody has it.
fn free_or_any(port: u16) -> SocketAddr {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpListener::bind(usual) {
        Ok(_) => usual,
        Err(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    }
}

fn make_certificate(cert: &Path, key: &Path) -> Result<(), StartupError> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|e| StartupError::new("no certificate can be made", &e))?;
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
    write().map_err(|e| StartupError::new(&format!("'{}' cannot be written", path.display()), &e))
}
