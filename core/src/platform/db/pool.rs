//! The pool: connections of every kind, and the watch over Postgres.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::TimeDelta;
use futures::TryStreamExt as _;
use futures::future::{BoxFuture, join_all};
use futures::stream::BoxStream;
use sqlx::postgres::{
    PgConnectOptions, PgPool, PgPoolOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo,
};
use sqlx::{Connection as _, Describe, Either, Error, Execute, Executor, Postgres, SqlStr};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::availability::{Availability, Probe};
use super::connection::{Connection, PooledConnection, Transaction, rows};
use super::pool_kind::PoolKind;
use super::replicas::{MARK_AGE_MS, MARK_INTERVAL, Replicas, may_be_stale};
use super::session::Session;
use super::share_holder::ShareHolder;
use crate::platform::clock::Clock;
use crate::platform::error::sqlstate;
use crate::platform::keyed_shares::{KeyedShares, Share};
use crate::platform::metrics::{Metrics, PoolMeters};
use crate::platform::settings;

/// Lifetime of a connection; bounds the time until a failover by address takes effect.
pub(super) const CONNECTION_LIFETIME: Duration = Duration::from_secs(30 * 60);
/// Idle time up to which a connection is used without a ping. The pool checks a connection when it
/// is returned; another check costs a round trip before every statement.
const PING_AFTER_IDLE: Duration = Duration::from_millis(100);
/// Time beyond a statement's timeout after which its connection is closed: the server ends a slow
/// statement by itself, and its connection can be used again.
const SERVER_GRACE: Duration = Duration::from_millis(250);
/// Longest wait of background work for a lock: the rows of others have their turn then.
const WORKER_LOCK_WAIT_MAX: Duration = Duration::from_secs(2);
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// Part of a request's statement timeout that the probe waits for an answer: numerator and
/// denominator. The requests that wait at the same time are answered before they run into it.
const PROBE_PART: (u32, u32) = (3, 5);

/// Part of a request's statement timeout that a request waits for the end of an outage, from the moment
/// the probe saw it. With the probe's own part and interval that stays below one statement timeout:
/// nobody waits longer beside a server that hangs than beside one that is slow.
const PATIENCE_PART: (u32, u32) = (1, 5);

/// The connections of an edge. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pools: [KindPool; PoolKind::ALL.len()],
    acquire_timeout: Duration,
    availability: Arc<Availability>,
    probe: tokio::sync::Mutex<Probe>,
    meters: OnceLock<[PoolMeters; PoolKind::ALL.len()]>,
    replicas: Replicas,
}

#[derive(Debug)]
struct KindPool {
    pool: PgPool,
    session: Session,
    /// Time after which a statement's connection is closed.
    deadline: Duration,
    /// Shares of the partners, the operators or the connectors, where their statements run.
    shares: Option<Arc<KeyedShares<ShareHolder>>>,
}

impl Pool {
    /// Connects as needed. `connect` names the options of each kind of connections, and what the server
    /// keeps of them; `replicas` the same for servers that only read.
    pub(crate) fn new(
        settings: &settings::Database,
        clock: &Clock,
        connect: impl Fn(PoolKind) -> (PgConnectOptions, Session),
        replicas: Vec<(PgConnectOptions, Session)>,
    ) -> Self {
        let limit = PoolKind::Requests.statement_timeout(settings);
        let patience = limit * PATIENCE_PART.0 / PATIENCE_PART.1;
        let availability = Arc::new(Availability::new(clock.clone(), patience));
        let acquire_timeout = Duration::from_millis(settings.acquire_timeout_ms);
        let pools = PoolKind::ALL.map(|kind| {
            let limit = kind.statement_timeout(settings);
            let options = pool_options(&availability, acquire_timeout)
                .max_connections(kind.connections_max(settings));
            let (connect, session) = connect(kind);
            let pool = options.connect_lazy_with(connect);
            let shares = kind.share_connections_max(settings);
            let shares = shares.map(|most| Arc::new(KeyedShares::new(most)));
            KindPool { pool, session, deadline: limit + SERVER_GRACE, shares }
        });
        let probe = Probe::new(
            connect(PoolKind::Requests).0,
            clock.clone(),
            limit * PROBE_PART.0 / PROBE_PART.1,
        );
        let probe = tokio::sync::Mutex::new(probe);
        let meters = OnceLock::new();
        let deadline = PoolKind::Operators.statement_timeout(settings) + SERVER_GRACE;
        let replicas = Replicas::new(settings, clock, replicas, deadline);
        Self(Arc::new(Shared { pools, acquire_timeout, availability, probe, meters, replicas }))
    }

    /// Measures waits and statements from now on.
    pub(crate) fn measure(&self, metrics: &Metrics) {
        // A pool belongs to one edge, which has one set of metrics.
        let _ = self.0.meters.set(PoolKind::ALL.map(|kind| metrics.pool(kind.as_str())));
    }

    /// A connection of this task's kind, and of the share of its partner, operator or connector.
    ///
    /// # Errors
    /// When none is free in time, or Postgres is away.
    pub async fn acquire(&self) -> Result<PooledConnection, Error> {
        self.connection().await.map(PooledConnection)
    }

    /// A connection of this task's kind, whatever its partner holds. Its statements give up when a
    /// lock is not free in time.
    ///
    /// # Errors
    /// As [`Pool::acquire`].
    pub(super) async fn acquire_for_batches(
        &self,
        lock_wait_max: Duration,
    ) -> Result<PooledConnection, Error> {
        let mut connection = self.free_connection(self.0.acquire_timeout).await?;
        connection.set_lock_wait_max(lock_wait_max);
        Ok(PooledConnection(connection))
    }

    /// A transaction on a connection of this task's kind.
    ///
    /// # Errors
    /// As [`Pool::acquire`], and the database's.
    pub async fn begin(&self) -> Result<Transaction<'static>, Error> {
        Transaction::begin(self.connection().await?).await
    }

    async fn connection(&self) -> Result<Connection, Error> {
        let began = self.now_ns();
        let share = self.share().await?;
        let spent = self.0.availability.since(began);
        let mut connection =
            self.free_connection(self.0.acquire_timeout.saturating_sub(spent)).await?;
        connection.hold(share);
        Ok(connection)
    }

    /// A place in the share of this task's partner, operator or connector, if it has one.
    async fn share(&self) -> Result<Option<Share<ShareHolder>>, Error> {
        let Shared { pools, acquire_timeout, availability, meters, .. } = &*self.0;
        let number = PoolKind::current().number();
        let meters = meters.get().map(|meters| &meters[number]);
        let Some((shares, holder)) = pools[number].shares.as_ref().zip(ShareHolder::current())
        else {
            return Ok(None);
        };
        let is_partner = matches!(holder, ShareHolder::Partner(_));
        let began = availability.now_ns();
        let taken = timeout(*acquire_timeout, shares.take(holder, 1)).await;
        let taken = taken.map(|taken| taken.map_err(|_| Error::PoolClosed));
        if let Some(meters) = meters
            && is_partner
            && !matches!(taken, Ok(Ok((_, false))))
        {
            meters.waited_for_share(availability.since(began), taken.is_ok());
        }
        // In an outage all wait, whatever their shares.
        let (share, _) = taken.unwrap_or_else(|_| {
            Err(if self.is_away() { Error::PoolTimedOut } else { sqlstate::share_used_up() })
        })?;
        Ok(Some(share))
    }

    /// A connection of this task's kind, when one is free within this time.
    async fn free_connection(&self, patience: Duration) -> Result<Connection, Error> {
        let Shared { pools, availability, meters, replicas, .. } = &*self.0;
        let kind = PoolKind::current();
        let number = kind.number();
        let (pool, meters) = (&pools[number], meters.get().map(|meters| &meters[number]));
        // The role of their URLs sees every tenant.
        if may_be_stale()
            && kind.sees_all_tenants()
            && let Some(connection) = replicas.connection(meters).await
        {
            return Ok(connection);
        }
        let began = availability.now_ns();
        let acquired = timeout(patience, async {
            while availability.wait(patience).await {
                // On the heap: its large state would be part of everything that begins with it.
                let acquiring = Box::pin(pool.pool.acquire());
                let acquired = availability.limit(patience, acquiring).await;
                // Otherwise Postgres went away meanwhile, and may soon be back.
                if let Ok(acquired) = acquired {
                    return acquired;
                }
            }
            Err(Error::PoolTimedOut)
        });
        let acquired = acquired.await.unwrap_or(Err(Error::PoolTimedOut));
        if let Some(meters) = meters {
            meters.waited(availability.since(began));
        }
        let mut connection =
            Connection::new(acquired?, pool.session, pool.deadline, availability, meters);
        if kind.is_background() {
            connection.set_lock_wait_max(WORKER_LOCK_WAIT_MAX);
        }
        Ok(connection)
    }

    /// Monotonic nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        self.0.availability.now_ns()
    }

    /// Watches Postgres until `stop` is true. Without it an outage is found out by each statement.
    pub async fn watch(&self, mut stop: watch::Receiver<bool>) {
        let mut ticks = interval(PROBE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let watching = async {
            loop {
                ticks.tick().await;
                self.probe().await;
            }
        };
        let stopped = async { _ = stop.wait_for(|stop| *stop).await };
        tokio::select! {
            () = watching => {}
            () = self.watch_replicas() => {}
            () = stopped => {}
        }
    }

    /// Keeps the mark new by which replicas are judged, and reads theirs.
    async fn watch_replicas(&self) {
        let replicas = &self.0.replicas;
        if replicas.is_empty() {
            return std::future::pending().await;
        }
        let mut ticks = interval(MARK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let marked = sqlx::query!(
                "update replication_mark set marked_at = clock_timestamp() \
                 where marked_at < clock_timestamp() - make_interval(secs => $1::int / 1000.0)",
                MARK_AGE_MS,
            );
            let (marked, ()) = tokio::join!(marked.execute(self), replicas.look());
            if let Err(error) = marked {
                tracing::debug!(%error, "the replicas' mark was not written");
            }
        }
    }

    /// Host and port of each replica with the time by which it is behind the primary, if that is
    /// known.
    pub fn replica_lags(&self) -> impl Iterator<Item = (&str, Option<TimeDelta>)> {
        self.0.replicas.lags()
    }

    /// Reads the replicas' marks once, for a look from outside of a running edge. One that has the
    /// primary's own mark is up to date, however old that is: without an edge nobody renews it.
    ///
    /// # Errors
    /// When the primary cannot be read.
    pub(crate) async fn look_at_replicas(&self) -> Result<(), Error> {
        let replicas = &self.0.replicas;
        if replicas.is_empty() {
            return Ok(());
        }
        let marked = sqlx::query_scalar!("select marked_at from replication_mark");
        let marked = marked.fetch_one(self).await?;
        replicas.look().await;
        replicas.trust(marked);
        Ok(())
    }

    async fn probe(&self) {
        let answers = self.0.probe.lock().await.answers().await;
        self.0.availability.record(answers);
    }

    /// True while Postgres does not answer, as far as [`Pool::watch`] knows.
    pub fn is_away(&self) -> bool {
        self.0.availability.is_away()
    }

    /// Connections of every kind: idle and busy ones.
    pub fn connections(&self) -> impl Iterator<Item = (PoolKind, u32, u32)> + '_ {
        PoolKind::ALL.into_iter().zip(&self.0.pools).map(|(kind, KindPool { pool, .. })| {
            let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX);
            // The two are not read atomically.
            (kind, idle, pool.size().saturating_sub(idle))
        })
    }

    /// Closes every connection; further ones are refused.
    pub async fn close(&self) {
        self.0.replicas.close().await;
        join_all(self.0.pools.iter().map(|pool| pool.pool.close())).await;
    }
}

fn pool_options(availability: &Arc<Availability>, acquire_timeout: Duration) -> PgPoolOptions {
    let availability = Arc::clone(availability);
    let ping_max = acquire_timeout / 2;
    PgPoolOptions::new()
        .acquire_timeout(acquire_timeout)
        .max_lifetime(CONNECTION_LIFETIME)
        .test_before_acquire(false)
        .before_acquire(move |connection, metadata| {
            let availability = Arc::clone(&availability);
            Box::pin(async move {
                if availability.has_outlived_outage(metadata.age) {
                    return Ok(false);
                }
                if metadata.idle_for > PING_AFTER_IDLE {
                    let pinged = timeout(ping_max, connection.ping()).await;
                    pinged.unwrap_or(Err(Error::PoolTimedOut))?;
                }
                Ok(true)
            })
        })
}

impl<'c> Executor<'c> for &Pool {
    type Database = Postgres;

    fn execute<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<PgQueryResult, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let pool = self.clone();
        Box::pin(async move { pool.connection().await?.execute(query).await })
    }

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let pool = self.clone();
        rows(async move { pool.connection().await?.fetch_many(query).try_collect().await })
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let pool = self.clone();
        Box::pin(async move { pool.connection().await?.fetch_optional(query).await })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        let pool = self.clone();
        Box::pin(async move { pool.connection().await?.prepare_with(sql, parameters).await })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'c: 'e,
    {
        let pool = self.clone();
        Box::pin(async move { pool.connection().await?.describe(sql).await })
    }
}
