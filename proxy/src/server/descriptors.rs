//! Pingora's accept loop sleeps when the process may open no more files, and every newcomer waits
//! with it: the limit is raised to what the settings need before anything listens. Should it fall
//! later on, descriptors that were held back let newcomers be accepted, and closed at once.

use std::fs::{self, File};
use std::io;
use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rampart_core::platform::db::PoolKind;
use rampart_core::platform::settings::Database;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::time::interval;

use super::PRIVATE_CONNECTIONS_MAX;
use crate::config::Config;
use crate::startup_error::{Context as _, StartupError};

/// Private listeners: operators', connectors' and operations'.
const PRIVATE_LISTENERS: usize = 3;
/// Open files besides connections of clients and of the database: listeners, certificates, calls to
/// partners and providers, connections that are being refused.
const OTHERS: usize = 1_024;
/// Descriptors that are held back.
const HELD: usize = 32;
/// Descriptors that must be free before they are held back again.
const FREE_MIN: usize = 2 * HELD;
/// Interval of looking for a free descriptor.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

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
            .context("the limit of open files cannot be raised");
    }
    Err(format!(
        "'edge.connections_max' = {} needs {needed} open files and this process may have {}: raise \
         its limit (ulimit -n, LimitNOFILE) or lower the setting",
        config.edge.connections_max,
        maximum.unwrap_or_default(),
    )
    .into())
}

fn needed(config: &Config) -> usize {
    let (edge, core) = (&config.edge, &config.core);
    let upstream = if core.limits.upstream.is_some() { edge.in_flight_max } else { 0 };
    let private = PRIVATE_LISTENERS * PRIVATE_CONNECTIONS_MAX;
    [edge.connections_max, private, of_database(&core.database), upstream, OTHERS]
        .into_iter()
        .fold(0, usize::saturating_add)
}

/// Connections of all pools; each replica has one as large as the operators'.
fn of_database(database: &Database) -> usize {
    let pools = PoolKind::ALL.map(|kind| kind.connections_max(database));
    let of_replicas =
        iter::repeat_n(database.operator_connections_max, database.replica_urls.len());
    let all: u64 = pools.into_iter().chain(of_replicas).map(u64::from).sum();
    usize::try_from(all).unwrap_or(usize::MAX)
}

/// Descriptors held back for when there are no others.
#[derive(Debug, Default)]
pub(super) struct HeldDescriptors {
    held: Mutex<Vec<File>>,
    given_up: AtomicBool,
}

impl HeldDescriptors {
    /// Takes them, the earlier the better: a limit that falls spares low numbers.
    pub(super) fn take() -> Arc<Self> {
        let held = take().inspect_err(|error| {
            tracing::warn!(%error, "no descriptors are held back");
        });
        Arc::new(Self { held: Mutex::new(held.unwrap_or_default()), ..Self::default() })
    }

    /// True while there are no others: newcomers are to be refused.
    pub(super) fn are_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// Gives them up when there are no others, and holds them back again when there are.
    pub(super) async fn watch(self: Arc<Self>) {
        let mut ticks = interval(LOOK_INTERVAL);
        loop {
            ticks.tick().await;
            self.look();
        }
    }

    fn look(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.are_given_up() {
            if none_is_free() {
                tracing::error!("no more files can be opened: newcomers are refused");
                // Before the first of them can be accepted.
                self.given_up.store(true, Ordering::Release);
                held.clear();
            }
        } else if are_free(FREE_MIN)
            && let Ok(taken) = take()
        {
            tracing::info!("files can be opened again: newcomers are served");
            *held = taken;
            self.given_up.store(false, Ordering::Release);
        }
    }
}

fn take() -> io::Result<Vec<File>> {
    (0..HELD).map(|_| nothing()).collect()
}

fn nothing() -> io::Result<File> {
    File::open("/dev/null")
}

fn none_is_free() -> bool {
    nothing().is_err_and(|error| error.raw_os_error() == Some(Errno::MFILE.raw_os_error()))
}

/// True if this many more files can be opened. Those above a limit that has fallen count as well.
fn are_free(count: usize) -> bool {
    let open = fs::read_dir("/proc/self/fd").map_or(usize::MAX, Iterator::count);
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    open.saturating_add(count) <= limit
}

#[cfg(test)]
mod tests {
    use rampart_core::platform::crypto::Secret;

    use super::*;

    #[test]
    fn every_pool_and_replica_has_its_files() {
        let mut database = Database {
            connections_max: 1,
            login_connections_max: 20,
            worker_connections_max: 300,
            operator_connections_max: 4_000,
            connector_connections_max: 50_000,
            ..Database::default()
        };
        assert_eq!(of_database(&database), 54_324, "three are the snapshot's");
        database.replica_urls = vec![Secret::new("postgres://replica/rampart")];
        assert_eq!(of_database(&database), 58_324);
        assert_eq!(of_database(&Database::default()), 37, "as deploy/OPERATING.md says");
    }

    #[test]
    fn every_listener_has_its_files_and_the_upstream_if_there_is_one() {
        let mut config = Config::default();
        (config.edge.connections_max, config.edge.in_flight_max) = (10_000_000, 200_000_000);
        // Three times 256 of private listeners, 37 of the database, 1,024 others.
        assert_eq!(needed(&config), 10_001_829);
        config.core.limits.upstream = Some("https://limits.example.com".to_owned());
        assert_eq!(needed(&config), 210_001_829);
    }
}
