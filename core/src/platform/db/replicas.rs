//! Read replicas: reads that may be a little old cost the primary nothing.
//!
//! Edges write the time into a row of the primary (`replication_mark`). The row that a replica has
//! says up to when it has seen everything, whatever holds it up: a slow replay, a cut line, a primary
//! that is no longer one. One that is too far behind is left out, and the primary reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{Error, Row as _};
use tokio::time::timeout;

use super::availability::Availability;
use super::connection::Connection;
use super::pool::CONNECTION_LIFETIME;
use super::session::Session;
use crate::platform::clock::Clock;
use crate::platform::metrics::PoolMeters;
use crate::platform::settings;

/// Interval of writing the mark, and of reading it on every replica.
pub(super) const MARK_INTERVAL: Duration = Duration::from_millis(500);
/// Age from which the mark is written anew; one edge's is enough.
pub(super) const MARK_AGE_MS: i32 = 400;
/// Time of a replica's mark while it answers nothing.
const UNKNOWN: i64 = i64::MIN;

tokio::task_local! {
    static MAY_BE_STALE: ();
}

/// Runs work that only reads and may see what was true `database.replica_lag_max_ms` ago. Its
/// statements go to a replica where one is near enough to the primary.
pub(crate) fn stale<F: Future>(work: F) -> impl Future<Output = F::Output> {
    MAY_BE_STALE.scope((), work)
}

/// True if this task's statements may go to a replica.
pub(super) fn may_be_stale() -> bool {
    MAY_BE_STALE.try_with(|()| ()).is_ok()
}

/// The replicas of an edge.
#[derive(Debug)]
pub(super) struct Replicas {
    replicas: Vec<Replica>,
    clock: Clock,
    lag_max: TimeDelta,
    /// Longest wait for a connection: there is the primary besides.
    patience: Duration,
    /// Turns.
    next: AtomicUsize,
}

#[derive(Debug)]
struct Replica {
    /// Host and port.
    at: String,
    pool: PgPool,
    session: Session,
    deadline: Duration,
    /// Of its own: it answers while the primary is away.
    availability: Arc<Availability>,
    /// The newest mark that it has, in milliseconds since 1970.
    marked_ms: AtomicI64,
}

impl Replicas {
    /// Connects as needed. `deadline` is the time after which a statement's connection is closed.
    pub(super) fn new(
        settings: &settings::Database,
        clock: &Clock,
        servers: Vec<(PgConnectOptions, Session)>,
        deadline: Duration,
    ) -> Self {
        let patience = Duration::from_millis(settings.acquire_timeout_ms) / 2;
        let replicas = servers.into_iter().map(|(options, session)| {
            let availability = Arc::new(Availability::new(clock.clone(), Duration::ZERO));
            // Each connection is tried before it is used: there is another way.
            let pool = PgPoolOptions::new()
                .acquire_timeout(patience)
                .max_lifetime(CONNECTION_LIFETIME)
                .max_connections(settings.operator_connections_max);
            Replica {
                at: format!("{}:{}", options.get_host(), options.get_port()),
                pool: pool.connect_lazy_with(options),
                session,
                deadline,
                availability,
                marked_ms: AtomicI64::new(UNKNOWN),
            }
        });
        let lag_max = i64::try_from(settings.replica_lag_max_ms).unwrap_or(i64::MAX);
        Self {
            replicas: replicas.collect(),
            clock: clock.clone(),
            lag_max: TimeDelta::milliseconds(lag_max),
            patience,
            next: AtomicUsize::new(0),
        }
    }

    /// True if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.replicas.is_empty()
    }

    /// A connection to a replica that is near enough to the primary, if one has one free. They take
    /// turns.
    pub(super) async fn connection(&self, meters: Option<&PoolMeters>) -> Option<Connection> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let (before, after) = self.replicas.split_at(first.checked_rem(self.replicas.len())?);
        let near = |replica: &&Replica| self.lag(replica).is_some_and(|lag| lag <= self.lag_max);
        for replica in after.iter().chain(before).filter(near) {
            // On the heap: its large state would be part of everything that begins with it.
            let acquiring = Box::pin(replica.pool.acquire());
            match timeout(self.patience, acquiring).await {
                Ok(Ok(raw)) => {
                    let Replica { session, deadline, availability, .. } = replica;
                    return Some(Connection::new(raw, *session, *deadline, availability, meters));
                }
                Ok(Err(Error::PoolTimedOut)) | Err(_) => {}
                Ok(Err(error)) => replica.leave(&error),
            }
        }
        None
    }

    /// Reads the mark on every replica, at once.
    pub(super) async fn look(&self) {
        join_all(self.replicas.iter().map(|replica| replica.look(self.patience))).await;
    }

    /// Counts those that have this mark, the primary's own, as up to date.
    pub(super) fn trust(&self, marked: DateTime<Utc>) {
        let now = (self.clock.now() - self.clock.offset()).timestamp_millis();
        let has_it = |known: i64| (known >= marked.timestamp_millis()).then_some(now);
        for Replica { marked_ms, .. } in &self.replicas {
            // It stays as it is where the mark is older.
            let _ = marked_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, has_it);
        }
    }

    /// Host and port of each replica with the time by which it is behind the primary, if that is
    /// known.
    pub(super) fn lags(&self) -> impl Iterator<Item = (&str, Option<TimeDelta>)> {
        self.replicas.iter().map(|replica| (&*replica.at, self.lag(replica)))
    }

    fn lag(&self, replica: &Replica) -> Option<TimeDelta> {
        let marked = replica.marked_ms.load(Ordering::Relaxed);
        let marked = (marked != UNKNOWN).then(|| DateTime::from_timestamp_millis(marked))??;
        // Of the database's clock, and not of one that a test has moved.
        let now = self.clock.now() - self.clock.offset();
        Some((now - marked).max(TimeDelta::zero()))
    }

    /// Closes every connection.
    pub(super) async fn close(&self) {
        join_all(self.replicas.iter().map(|replica| replica.pool.close())).await;
    }
}

impl Replica {
    async fn look(&self, patience: Duration) {
        match timeout(patience, self.mark()).await {
            Ok(Ok(marked)) => {
                let before = self.marked_ms.swap(marked.timestamp_millis(), Ordering::Relaxed);
                if before == UNKNOWN {
                    tracing::info!(replica = self.at, "a replica answers");
                }
            }
            // All of its connections are busy: what it last said bounds what it has.
            Ok(Err(Error::PoolTimedOut)) | Err(_) => {}
            Ok(Err(error)) => self.leave(&error),
        }
    }

    async fn mark(&self) -> Result<DateTime<Utc>, Error> {
        let mut connection = self.pool.acquire().await?;
        // Not prepared: a pooler may not keep it.
        let row = sqlx::raw_sql("select marked_at from replication_mark")
            .fetch_one(&mut *connection)
            .await?;
        row.try_get(0)
    }

    /// Uses it no more until it answers again.
    fn leave(&self, error: &Error) {
        if self.marked_ms.swap(UNKNOWN, Ordering::Relaxed) != UNKNOWN {
            tracing::warn!(replica = self.at, %error, "a replica cannot be read");
        }
    }
}
