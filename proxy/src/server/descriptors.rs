//! Pingora's accept loop sleeps when the process may open no more files, and every newcomer waits
//! with it: the limit is raised to what the settings need before anything listens.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::PRIVATE_CONNECTIONS_MAX;
use crate::config::Config;
use crate::startup_error::StartupError;

/// Open files besides connections of clients and of the database: listeners, certificates, calls to
/// partners and providers, connections that are being refused.
const OTHERS: usize = 1_024;

/// Raises the limit of open files to what the settings may need.
///
/// # Errors
/// One sentence with both numbers, when this process may not have that many.
pub(super) fn reserve(config: &Config) -> Result<(), StartupError> {
    let needed = u64::try_from(needed(config)).unwrap_or(u64::MAX);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let reaches = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if reaches(current) {
        return Ok(());
    }
    if reaches(maximum) {
        return setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum })
            .map_err(|e| StartupError::new("the limit of open files cannot be raised", &e));
    }
    Err(StartupError::from(format!(
        "'edge.connections_max' = {} needs {needed} open files and this process may have {}: raise \
         its limit (ulimit -n, LimitNOFILE) or lower the setting",
        config.edge.connections_max,
        maximum.unwrap_or_default(),
    )))
}

fn needed(config: &Config) -> usize {
    let (edge, core) = (&config.edge, &config.core);
    let database = usize::try_from(core.database.connections_max).unwrap_or(usize::MAX);
    let upstream = if core.limits.upstream.is_some() { edge.in_flight_max } else { 0 };
    [edge.connections_max, 2 * PRIVATE_CONNECTIONS_MAX, database, upstream, OTHERS]
        .into_iter()
        .fold(0, usize::saturating_add)
}
