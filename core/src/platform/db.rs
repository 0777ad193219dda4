//! The database: connections with limits and deadlines.
//!
//! Every statement of the core passes a [`Connection`], which gives it up when Postgres does not
//! answer in time.

mod availability;
mod broken_rows;
mod connection;
mod open;
mod pool;
mod pool_kind;
mod replicas;
mod session;
pub mod share_holder;
mod summary;
pub(crate) mod tenant;

use std::time::Duration;

pub use self::broken_rows::BrokenRow;
pub(crate) use self::broken_rows::{Readable, readable};
pub use self::connection::{Connection, PooledConnection, Transaction};
pub use self::open::{DatabaseError, MIGRATIONS, open, recreate};
pub(crate) use self::open::{connect_options, connect_with_keepalives};
pub use self::pool::Pool;
pub use self::pool_kind::PoolKind;
pub(crate) use self::replicas::stale;
#[cfg(test)]
pub(crate) use self::session::Session;
use crate::platform::error::sqlstate::{Retryable, is_lock_timeout};

/// Longest wait of a batch for a lock. It holds up those of other partners meanwhile.
const BATCH_LOCK_WAIT_MAX: Duration = Duration::from_millis(25);

/// A connection of the pool that a worker keeps from one statement to the next. The pool checks its
/// connections when it takes one back and before it gives an old one out: round trips that a
/// statement on a hot path does not need.
#[derive(Debug)]
pub(crate) struct HeldConnection {
    db: Pool,
    connection: Option<PooledConnection>,
    /// True if it counts towards no partner's share and waits for no lock for long.
    is_of_batches: bool,
}

impl HeldConnection {
    /// Holds none yet. It will be one for batches: of no partner's share, because those of all
    /// partners take turns on it, so that none may wait on it for a lock.
    pub(crate) fn of_batches(db: Pool) -> Self {
        Self { db, connection: None, is_of_batches: true }
    }

    /// Holds none yet. It will be one of its partner's share.
    pub(crate) fn of_partner(db: Pool) -> Self {
        Self { db, connection: None, is_of_batches: false }
    }

    /// True if a statement of a batch was given up because it had to wait for a lock.
    pub(crate) fn has_waited(&self, error: &sqlx::Error) -> bool {
        self.is_of_batches && is_lock_timeout(error)
    }

    /// The pool that it comes from.
    pub(crate) fn pool(&self) -> &Pool {
        &self.db
    }

    /// The connection; one of the pool when none is held.
    ///
    /// # Errors
    /// When the pool has none.
    pub(crate) async fn get(&mut self) -> Result<&mut Connection, sqlx::Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None if self.is_of_batches => self.db.acquire_for_batches(BATCH_LOCK_WAIT_MAX).await?,
            None => self.db.acquire().await?,
        };
        Ok(self.connection.insert(connection))
    }

    /// Returns it to the pool: after an error, because the pool replaces broken connections.
    pub(crate) fn release(&mut self) {
        self.connection = None;
    }
}

/// Most attempts of a transaction that Postgres reports as retryable.
const TRANSACTION_ATTEMPTS_MAX: u32 = 4;

/// Runs `transaction`, again after 40001 (serialization failure) or 40P01 (deadlock). The closure
/// must hold the whole transaction and have no other effect.
///
/// # Errors
/// The last error.
pub async fn retrying<T, F, Fut>(transaction: F) -> crate::platform::error::Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, sqlx::Error>>,
{
    retrying_statement(transaction).await.map_err(Into::into)
}

/// Like [`retrying`], with the database's own error.
///
/// # Errors
/// The last error.
pub async fn retrying_statement<T, E, F, Fut>(mut transaction: F) -> Result<T, E>
where
    E: Retryable,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let mut attempts = 1;
    loop {
        match transaction().await {
            Err(error) if attempts < TRANSACTION_ATTEMPTS_MAX && error.is_retryable() => {
                attempts += 1
            }
            result => return result,
        }
    }
}
