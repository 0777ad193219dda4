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
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{Connection as _, Error, Postgres, Row as _};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::availability::Availability;
use super::connection::{Connection, no_answer};
use super::open::connect_with_keepalives;
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
    /// Set once its pool asks for keepalives, or has been refused them.
    asked: OnceCell<()>,
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
                asked: OnceCell::new(),
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
    /// Reads the mark. A replica that has not answered within this time is left, unless others have
    /// all of its connections.
    async fn look(&self, patience: Duration) {
        let mut held = None;
        let looked = timeout(patience, self.mark(&mut held)).await;
        match looked.unwrap_or(Err(Error::PoolTimedOut)) {
            Ok(marked) => {
                let before = self.marked_ms.swap(marked.timestamp_millis(), Ordering::Relaxed);
                if before == UNKNOWN {
                    tracing::info!(replica = self.at, "a replica answers");
                }
            }
            Err(Error::PoolTimedOut) => match held.take() {
                Some(silent) => {
                    // Closed hard: it would wait for an answer in the pool.
                    drop(silent.detach());
                    self.leave(&no_answer());
                }
                // What it last said bounds what it has.
                None if self.is_busy() => {}
                None => self.leave(&no_answer()),
            },
            Err(error) => self.leave(&error),
        }
    }

    /// The newest mark; `held` is the connection that it is read on.
    async fn mark(
        &self,
        held: &mut Option<PoolConnection<Postgres>>,
    ) -> Result<DateTime<Utc>, Error> {
        self.asked.get_or_try_init(|| self.ask_for_keepalives()).await?;
        let connection = held.insert(self.pool.acquire().await?);
        // Not prepared: a pooler may not keep it.
        let row = sqlx::raw_sql("select marked_at from replication_mark")
            .fetch_one(&mut **connection)
            .await?;
        row.try_get(0)
    }

    /// True if all of its connections are in use.
    fn is_busy(&self) -> bool {
        let most = self.pool.options().get_max_connections();
        self.pool.num_idle() == 0 && self.pool.size() >= most
    }

    /// Has the connections to come ask for keepalives, unless it is a pooler that refuses them:
    /// nobody knows before it is there.
    async fn ask_for_keepalives(&self) -> Result<(), Error> {
        let options = (*self.pool.connect_options()).clone();
        let (options, connection) = connect_with_keepalives(options).await?;
        self.pool.set_connect_options(options);
        connection.close().await
    }

    /// Uses it no more until it answers again.
    fn leave(&self, error: &Error) {
        if self.marked_ms.swap(UNKNOWN, Ordering::Relaxed) != UNKNOWN {
            tracing::warn!(replica = self.at, %error, "a replica cannot be read");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use sqlx::postgres::PgSslMode;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// A server's word that a connection may begin.
    const READY: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
    /// A pooler's that it does not know a setting.
    const REFUSED: &[u8] = b"E\0\0\0\x1eSFATAL\0VFATAL\0C08P01\0Mno\0\0";

    /// Lets the next connection begin, unless it asks for keepalives that this server refuses; true
    /// if it asks.
    async fn begin(server: &TcpListener, refuses: bool) -> (TcpStream, bool) {
        let (mut stream, _) = server.accept().await.unwrap();
        let length = stream.read_u32().await.unwrap();
        let mut startup = vec![0; usize::try_from(length).unwrap() - 4];
        stream.read_exact(&mut startup).await.unwrap();
        let asks = String::from_utf8_lossy(&startup).contains("tcp_keepalives_idle=10");
        stream.write_all(if asks && refuses { REFUSED } else { READY }).await.unwrap();
        (stream, asks)
    }

    /// One replica, this server, for which so long is waited.
    fn replicas(server: &TcpListener, settings: &settings::Database) -> Replicas {
        let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1");
        let options = options.port(server.local_addr().unwrap().port());
        let options = options.username("edge").ssl_mode(PgSslMode::Disable);
        let servers = vec![(options, Session::default())];
        Replicas::new(settings, &Clock::system(), servers, Duration::from_secs(10))
    }

    #[tokio::test]
    async fn connections_to_a_replica_ask_for_keepalives_unless_a_pooler_refuses_them() {
        for (refuses, expected) in [(false, &[true, true][..]), (true, &[true, false, false])] {
            let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let settings =
                settings::Database { acquire_timeout_ms: 20_000, ..settings::Database::default() };
            let replicas = replicas(&server, &settings);
            let beginning = async {
                let mut begun = Vec::new();
                while begun.len() < expected.len() {
                    begun.push(begin(&server, refuses).await);
                }
                begun
            };
            let begun = tokio::select! {
                begun = beginning => begun,
                () = replicas.look() => panic!("the last connection is not answered"),
            };
            let asked: Vec<_> = begun.iter().map(|(_, asks)| *asks).collect();
            assert_eq!(asked, expected);
        }
    }

    #[tokio::test]
    async fn a_replica_that_hangs_is_left_and_a_busy_one_is_not() {
        for (begins, is_held, is_up) in
            [(false, false, false), (true, false, false), (true, true, true)]
        {
            let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let settings = settings::Database {
                acquire_timeout_ms: 2_000,
                operator_connections_max: 1,
                ..settings::Database::default()
            };
            let replicas = replicas(&server, &settings);
            let now_ms = replicas.clock.now().timestamp_millis();
            replicas.replicas[0].marked_ms.store(now_ms, Ordering::Relaxed);
            // It lets connections begin, and answers nothing.
            let serving = tokio::spawn(async move {
                if !begins {
                    return pending::<()>().await;
                }
                let mut begun = Vec::new();
                loop {
                    begun.push(begin(&server, false).await);
                }
            });
            let held = if is_held { replicas.connection(None).await } else { None };
            assert_eq!(held.is_some(), is_held);
            replicas.look().await;
            assert_eq!(replicas.lags().all(|(_, lag)| lag.is_some()), is_up, "{begins} {is_held}");
            serving.abort();
        }
    }
}
