//! Connections on which every statement has a deadline.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{
    AssertSqlSafe, Describe, Either, Error, Execute, Executor, PgConnection, Postgres, SqlStr,
};
use tokio::runtime::Handle;

use super::availability::Availability;
use super::session::{Session, Statement};
use super::share_holder::ShareHolder;
use super::summary::spans;
use crate::platform::error::sqlstate::is_read_only;
use crate::platform::keyed_shares::Share;
use crate::platform::metrics::PoolMeters;
use crate::platform::telemetry::Spans;

/// A connection to Postgres. A statement on it ends within its deadline; one that does not answer
/// closes the connection, which can then be used no more.
#[derive(Debug)]
pub struct Connection {
    /// `None` only while it is dropped.
    raw: Option<PoolConnection<Postgres>>,
    session: Session,
    deadline: Duration,
    /// A statement was given up, whose answer may still come, or the server only reads.
    broken: bool,
    availability: Arc<Availability>,
    transaction: TransactionState,
    meters: Option<PoolMeters>,
    /// Longest wait for a lock, where it is not that of a statement.
    lock_wait_max: Option<Duration>,
    /// Its permit of the share of its partner, operator or connector.
    share: Option<Share<ShareHolder>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransactionState {
    /// There is none.
    None,
    /// Begun.
    Open,
    /// Dropped: it is rolled back before anything else.
    Abandoned,
}

impl Connection {
    /// A connection of the pool, with this deadline for every statement.
    pub(super) fn new(
        raw: PoolConnection<Postgres>,
        session: Session,
        deadline: Duration,
        availability: &Arc<Availability>,
        meters: Option<&PoolMeters>,
    ) -> Self {
        let availability = Arc::clone(availability);
        let transaction = TransactionState::None;
        let meters = meters.cloned();
        Self {
            raw: Some(raw),
            session,
            deadline,
            broken: false,
            availability,
            transaction,
            meters,
            lock_wait_max: None,
            share: None,
        }
    }

    /// Gives the share back when the connection is back in the pool.
    pub(super) fn hold(&mut self, share: Option<Share<ShareHolder>>) {
        self.share = share;
    }

    /// Statements wait no longer than this for a lock: 55P03. Those that need no transaction wait
    /// for none.
    pub(super) fn set_lock_wait_max(&mut self, most: Duration) {
        self.lock_wait_max = Some(most);
    }

    /// Begins a transaction. It is rolled back unless it is committed.
    ///
    /// # Errors
    /// The database's.
    pub async fn begin(&mut self) -> Result<Transaction<'_>, Error> {
        self.open_transaction().await?;
        Ok(Transaction { connection: Held::Borrowed(self) })
    }

    async fn open_transaction(&mut self) -> Result<(), Error> {
        let mut begin = self.session.begin();
        if let Some(most) = self.lock_wait_max {
            begin.push_str(&format!("; set local lock_timeout = {}", most.as_millis()));
        }
        // That of `rampart_now()` in the statements.
        let offset = self.availability.time_offset();
        if !offset.is_zero() {
            let ms = offset.num_milliseconds();
            begin.push_str(&format!("; set local rampart.time_offset = '{ms} ms'"));
        }
        if self.transaction == TransactionState::Abandoned {
            begin.insert_str(0, "rollback; ");
        }
        // Should this be given up half way.
        self.transaction = TransactionState::Abandoned;
        let spans = spans(|| "begin".into());
        self.limited(spans, |raw| raw.execute(AssertSqlSafe(begin))).await?;
        self.transaction = TransactionState::Open;
        Ok(())
    }

    async fn end_transaction(&mut self, statement: &'static str) -> Result<(), Error> {
        self.limited(spans(|| statement.into()), |raw| raw.execute(statement)).await?;
        self.transaction = TransactionState::None;
        Ok(())
    }

    async fn end_abandoned(&mut self) -> Result<(), Error> {
        match self.transaction {
            TransactionState::Abandoned => self.end_transaction("rollback").await,
            TransactionState::None | TransactionState::Open => Ok(()),
        }
    }

    /// Runs a statement in the transaction that was begun, or else alone: in a transaction of its
    /// own where it needs settings. That of a read is ended by whatever comes next on the
    /// connection, so that nobody waits for it.
    async fn statement<T>(
        &mut self,
        statement: Result<Statement, Error>,
        run: impl for<'r> FnOnce(&'r mut PgConnection, Statement) -> BoxFuture<'r, Result<T, Error>>,
    ) -> Result<T, Error> {
        let statement = statement?;
        let wants_transaction =
            self.session.wants_transaction() || !self.availability.time_offset().is_zero();
        if self.transaction == TransactionState::Open || !wants_transaction {
            self.end_abandoned().await?;
            return self.limited(statement.spans(), |raw| run(raw, statement)).await;
        }
        let is_read = statement.is_read();
        // On the heap, which keeps the futures of everything that reads or writes small.
        Box::pin(self.open_transaction()).await?;
        // Should this be given up, or fail.
        self.transaction = TransactionState::Abandoned;
        let output = self.limited(statement.spans(), |raw| run(raw, statement)).await?;
        if !is_read {
            self.end_transaction("commit").await?;
        }
        Ok(output)
    }

    /// Runs what is no statement, outside of a transaction.
    async fn preparation<'c, T>(
        &'c mut self,
        run: impl FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Error>>,
    ) -> Result<T, Error> {
        self.end_abandoned().await?;
        self.limited(spans(|| "prepare".into()), run).await
    }

    /// Runs one statement within its deadline.
    async fn limited<'c, T>(
        &'c mut self,
        mut spans: Spans,
        run: impl FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Error>>,
    ) -> Result<T, Error> {
        let Self { raw: Some(raw), deadline, broken, availability, meters, .. } = self else {
            return Err(no_answer());
        };
        if *broken {
            return Err(no_answer());
        }
        let began = availability.now_ns();
        let ended = availability.limit(*deadline, run(raw)).await;
        if let Some(meters) = meters {
            meters.ran(availability.since(began));
        }
        spans.describe(|span| match &ended {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => span.fail("the database refused it, or the connection was lost"),
            Err(_) => span.fail("it was given up without an answer"),
        });
        if let Ok(result) = ended {
            // Another connection may lead to the server that writes.
            *broken |= result.as_ref().is_err_and(is_read_only);
            return result;
        }
        *broken = true;
        Err(no_answer())
    }
}

impl Drop for Connection {
    /// Returns the connection to the pool, or closes it hard.
    fn drop(&mut self) {
        let Some(mut raw) = self.raw.take() else { return };
        let runtime = match Handle::try_current() {
            Ok(runtime) if !self.broken => runtime,
            // Without a farewell, which the server might never read.
            Ok(_) | Err(_) => return drop(raw.detach()),
        };
        let (deadline, transaction) = (self.deadline, self.transaction);
        let availability = Arc::clone(&self.availability);
        let share = self.share.take();
        runtime.spawn(async move {
            let _share = share;
            let return_it = async {
                if transaction != TransactionState::None {
                    raw.execute("rollback").await?;
                }
                // On the heap: the task, which is moved three times, would have room for all of it.
                Box::pin(raw.return_to_pool()).await;
                Ok::<(), Error>(())
            };
            // An outage ends it early: its place in the pool is wanted as soon as that is over.
            let returned = availability.limit(deadline, return_it).await;
            if !matches!(returned, Ok(Ok(()))) {
                tracing::warn!("a connection did not answer when it was returned to the pool");
                // The future holds the connection, if it is still held: both are dropped here.
                drop(raw.return_to_pool());
            }
        });
    }
}

/// The error of a statement that was given up. Whether it ran is unknown.
pub(super) fn no_answer() -> Error {
    let reason = "Postgres did not answer within the statement's deadline";
    Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, reason))
}

type Step = Either<PgQueryResult, PgRow>;

impl<'c> Executor<'c> for &'c mut Connection {
    type Database = Postgres;

    fn execute<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<PgQueryResult, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let statement = Statement::of(query, self.session);
        Box::pin(self.statement(statement, |raw, statement| raw.execute(statement)))
    }

    /// Reads the whole result before the first row is given out: the deadline is that of the
    /// statement, not of who reads its rows.
    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Step, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let statement = Statement::of(query, self.session);
        rows(self.statement(statement, |raw, statement| {
            Box::pin(raw.fetch_many(statement).try_collect())
        }))
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let statement = Statement::of(query, self.session);
        Box::pin(self.statement(statement, |raw, statement| raw.fetch_optional(statement)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        Box::pin(self.preparation(move |raw| raw.prepare_with(sql, parameters)))
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'c: 'e,
    {
        Box::pin(self.preparation(move |raw| raw.describe(sql)))
    }
}

/// The steps of a result that is read as a whole.
pub(super) fn rows<'e>(
    result: impl Future<Output = Result<Vec<Step>, Error>> + Send + 'e,
) -> BoxStream<'e, Result<Step, Error>> {
    let steps = futures::stream::once(result);
    steps.map_ok(|steps| futures::stream::iter(steps.into_iter().map(Ok))).try_flatten().boxed()
}

/// A transaction. Dropping it rolls it back.
#[derive(Debug)]
pub struct Transaction<'c> {
    connection: Held<'c>,
}

#[derive(Debug)]
enum Held<'c> {
    Owned(Connection),
    Borrowed(&'c mut Connection),
}

impl Transaction<'static> {
    /// Begins a transaction on a connection of its own.
    pub(super) async fn begin(mut connection: Connection) -> Result<Self, Error> {
        connection.open_transaction().await?;
        Ok(Self { connection: Held::Owned(connection) })
    }
}

impl Transaction<'_> {
    /// Commits.
    ///
    /// # Errors
    /// The database's. After an error of the connection the outcome is unknown.
    pub async fn commit(mut self) -> Result<(), Error> {
        self.end_transaction("commit").await
    }

    /// Rolls back.
    ///
    /// # Errors
    /// The database's.
    pub async fn rollback(mut self) -> Result<(), Error> {
        self.end_transaction("rollback").await
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match &self.connection {
            Held::Owned(connection) => connection,
            Held::Borrowed(connection) => connection,
        }
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        match &mut self.connection {
            Held::Owned(connection) => connection,
            Held::Borrowed(connection) => connection,
        }
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.transaction == TransactionState::Open {
            self.transaction = TransactionState::Abandoned;
        }
    }
}

/// A connection that was taken from the pool, and goes back to it.
#[derive(Debug)]
pub struct PooledConnection(pub(super) Connection);

impl Deref for PooledConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}
