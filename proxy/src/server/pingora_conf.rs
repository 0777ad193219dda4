//! Pingora's configuration, and the file of authorities that it would only panic about.

use pingora_core::server::configuration::ServerConf;

use super::tls::read_chain;
use crate::config::Config;
use crate::gateway::UPSTREAM_ADDRESSES_MAX;
use crate::startup_error::{Context as _, StartupError};

/// Attempts to send a request to an upstream: one for each address, and one more. It is sent again
/// only when an address takes no connection, or when the upstream has closed a kept connection
/// meanwhile, and it only reads.
const UPSTREAM_TRIES: usize = UPSTREAM_ADDRESSES_MAX + 1;
/// Seconds that runtimes wait for threads that still block when everything else has ended.
const RUNTIME_END_SECONDS: u64 = 1;

/// Pingora's configuration. Its grace period is none: `Watch` returns when everything has ended.
///
/// # Errors
/// One sentence: the file of `limits.upstream_ca` holds no certificates.
pub(super) fn of(config: &Config) -> Result<ServerConf, StartupError> {
    Ok(ServerConf {
        threads: config.edge.threads,
        max_retries: UPSTREAM_TRIES,
        ca_file: upstream_ca(config)?,
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(RUNTIME_END_SECONDS),
        ..ServerConf::default()
    })
}

/// The file with the upstream's authorities, once it is seen to hold some.
fn upstream_ca(config: &Config) -> Result<Option<String>, StartupError> {
    let Some(path) = &config.core.limits.upstream_ca else { return Ok(None) };
    let shown = path.display();
    read_chain(path).context(format_args!("'limits.upstream_ca' is not usable: '{shown}'"))?;
    Ok(Some(shown.to_string()))
}
