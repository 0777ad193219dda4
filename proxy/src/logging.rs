//! The diagnostic log, on standard error. The access log is `access_log.rs`.

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};
use crate::startup_error::{Context as _, StartupError};

/// Libraries that log what callers do wrong as errors of ours.
const QUIET: &str = "pingora_core=off,pingora_proxy=off,rustls=off,h2=off,tokio_rustls=off";

/// Starts the log of this process.
///
/// # Errors
/// When `log.level` is not a filter, or there is a log already.
pub(crate) fn start(log: &Log) -> Result<(), StartupError> {
    let Log { level, .. } = log;
    let filter = EnvFilter::try_new(format!("{QUIET},{level}"))
        .context(format_args!("log.level = '{level}' is not a level or a list of filters"))?;
    let base = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match log.format {
        LogFormat::Json => base.json().try_init(),
        LogFormat::Text => base.with_ansi(false).try_init(),
    };
    started.context("the log cannot be started")
}
