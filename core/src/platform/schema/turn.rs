//! The turn of a process that changes the schema: one at a time.

use std::time::Duration;

use sqlx::{
    AssertSqlSafe, Connection as _, Executor as _, PgConnection, Postgres, Row as _, Transaction,
};

/// The key of the lock that one migrating process holds at a time: "rampart" in ASCII.
const LOCK_KEY: i64 = 0x0072_616d_7061_7274;

/// Begins the transaction that holds the lock, however long nothing is asked in it.
const BEGIN: &str = "begin; set local idle_in_transaction_session_timeout = 0";

/// Interval at which a process asks whether another one still migrates.
const TURN_POLL: Duration = Duration::from_millis(100);

/// Waits until no other process migrates. The transaction holds the lock, which a session would leave
/// behind on a pooler's connection.
///
/// It asks again and again, each time in a transaction of its own: an index that the other process
/// creates concurrently waits for the end of every transaction that it has seen with a snapshot.
#[expect(
    clippy::disallowed_methods,
    reason = "a lock of Postgres that is waited for holds a snapshot"
)]
pub(super) async fn take(
    connection: &mut PgConnection,
) -> Result<Transaction<'_, Postgres>, sqlx::Error> {
    let mut turn = begin(connection).await?;
    while !try_take(&mut turn).await? {
        turn.execute("rollback").await?;
        tokio::time::sleep(TURN_POLL).await;
        turn.execute(BEGIN).await?;
    }
    Ok(turn)
}

/// Begins the transaction that is to hold the lock.
pub(super) async fn begin(
    connection: &mut PgConnection,
) -> Result<Transaction<'_, Postgres>, sqlx::Error> {
    connection.begin_with(BEGIN).await
}

/// Takes the lock of migrating processes; `false` if another one has it.
pub(super) async fn try_take(turn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let lock = format!("select pg_try_advisory_xact_lock({LOCK_KEY})");
    turn.fetch_one(AssertSqlSafe(lock)).await?.try_get(0)
}
