//! Bought orders are written in batches, by one statement (`statement.rs`): confirms wait for the
//! disk, and the disk writes sixty-four orders in the time of one.
//!
//! A batch with orders of users locks those users first, in the same transaction, so that each
//! order counts the ones before it towards the limit for a day; for that no batch has two orders of
//! one user. An order that cannot be made leaves nothing behind and costs the others nothing.

mod new_buy_order;
mod statement;

use uuid::Uuid;

use self::statement::insert;
pub(crate) use self::statement::{Bounded, InsertOutcome, NewOrderRow, created_payload};
use crate::platform::batch::{BatchJob, Batcher, RunSingly};
use crate::platform::db::{Connection, HeldConnection, Pool, retrying_statement};
use crate::platform::error::Result;
use crate::platform::error::sqlstate::{
    Retryable, is_lost_connection, is_outcome_unknown, is_unavailable,
};
use crate::trading::limits::{self, Bounds};
use crate::trading::quotes::Side;
use rampart_types::ClientId;

/// Most numbers that are tried for one order. Two of one client meet once in 10^15.
pub(crate) const ORDER_ID_TRIES_MAX: u32 = 4;

/// The queue of orders that are about to be made.
#[derive(Debug)]
pub struct OrderInserts(Batcher<OrderInsert>);

impl OrderInserts {
    /// Inserts into this database.
    pub(crate) fn start(db: &Pool) -> Self {
        Self(Batcher::start(db, OrderInsert))
    }

    /// Items that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.0.waiting()
    }

    /// Makes the order, in one commit with others that come at the same time.
    ///
    /// # Errors
    /// 503 when the queue is full.
    pub(crate) async fn submit(&self, order: NewOrderRow) -> Result<InsertOutcome> {
        self.0.submit(order).await
    }
}

/// Makes the order in the caller's transaction. No limit holds it back.
///
/// # Errors
/// When the database refuses or cannot be reached.
pub(crate) async fn insert_one(
    conn: &mut Connection,
    order: &NewOrderRow,
) -> Result<InsertOutcome, sqlx::Error> {
    let row = Bounded { order, bounds: None };
    let mut outcomes = insert(conn, &[row]).await?;
    let outcome = outcomes.remove(&(order.client_id, order.order_id));
    Ok(outcome.unwrap_or(InsertOutcome::Forbidden))
}

/// Inserts batches of orders.
struct OrderInsert;

impl BatchJob for OrderInsert {
    type Item = NewOrderRow;
    type Output = InsertOutcome;
    const BATCH_MAX: usize = 64;
    /// While a tenant's one waits for the disk its other one runs; more would only make its batches
    /// smaller.
    const TENANT_BATCHES_MAX: usize = 2;
    /// One more, for other tenants: it idles without a connection.
    const WORKERS: usize = Self::TENANT_BATCHES_MAX + 1;
    const NAME: &'static str = "place an order";

    fn tenant(order: &NewOrderRow) -> ClientId {
        order.client_id.into()
    }

    fn exclusive_key(order: &NewOrderRow) -> Option<Uuid> {
        order.user_id
    }

    async fn run(
        &self,
        connection: &mut HeldConnection,
        orders: &[NewOrderRow],
    ) -> Result<Vec<InsertOutcome>, RunSingly> {
        let mut inserted = match connection.get().await {
            Ok(connection) => insert_batch(connection, orders).await,
            Err(error) => Err(InsertError::NotCommitted(error)),
        };
        if let Err(error) = &inserted {
            connection.release();
            if error.is_retryable() {
                inserted = insert_from(connection.pool(), orders).await;
            }
        }
        Ok(match inserted {
            Ok(outcomes) => outcomes,
            Err(InsertError::NotCommitted(error)) if connection.has_waited(&error) => {
                return Err(RunSingly);
            }
            Err(error) if error.is_of_one_order() && orders.len() > 1 => return Err(RunSingly),
            Err(error) if orders.len() == 1 => vec![error.outcome()],
            Err(error) => {
                tracing::error!(%error, orders = orders.len(), "orders could not be placed");
                orders.iter().map(|_| error.shared_outcome()).collect()
            }
        })
    }
}

/// Why a batch was not inserted, as far as that is known.
#[derive(Debug)]
pub(crate) enum InsertError {
    /// Nothing happened.
    NotCommitted(sqlx::Error),
    /// The connection was lost at the commit.
    OutcomeUnknown(sqlx::Error),
}

impl InsertError {
    /// An error of the statement that commits.
    pub(crate) fn at_commit(error: sqlx::Error) -> Self {
        if is_outcome_unknown(&error) {
            Self::OutcomeUnknown(error)
        } else {
            Self::NotCommitted(error)
        }
    }

    /// The database can be used: one of the orders is in the way of the others.
    fn is_of_one_order(&self) -> bool {
        matches!(self, Self::NotCommitted(error) if !is_unavailable(error))
    }

    /// The outcome of an order that was alone.
    pub(crate) fn outcome(self) -> InsertOutcome {
        match self {
            Self::NotCommitted(error) => InsertOutcome::Failed(error),
            Self::OutcomeUnknown(_) => InsertOutcome::Unknown,
        }
    }

    /// The outcome of each order of a batch.
    const fn shared_outcome(&self) -> InsertOutcome {
        match self {
            Self::NotCommitted(_) => InsertOutcome::Unavailable,
            Self::OutcomeUnknown(_) => InsertOutcome::Unknown,
        }
    }
}

impl std::fmt::Display for InsertError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::NotCommitted(error) | Self::OutcomeUnknown(error)) = self;
        error.fmt(f)
    }
}

impl Retryable for InsertError {
    /// The engine asks for another try, or the connection was lost before the commit.
    fn is_retryable(&self) -> bool {
        match self {
            Self::NotCommitted(error) => error.is_retryable() || is_lost_connection(error),
            Self::OutcomeUnknown(_) => false,
        }
    }
}

/// Inserts a batch on any connection, again while the engine asks for it.
async fn insert_from(db: &Pool, orders: &[NewOrderRow]) -> Result<Vec<InsertOutcome>, InsertError> {
    retrying_statement(async || {
        let mut connection = db.acquire().await.map_err(InsertError::NotCommitted)?;
        insert_batch(&mut connection, orders).await
    })
    .await
}

/// Inserts a batch: the outcomes are those of the orders, in their order.
async fn insert_batch(
    connection: &mut Connection,
    orders: &[NewOrderRow],
) -> Result<Vec<InsertOutcome>, InsertError> {
    let mut outcomes = if orders.iter().all(|order| order.user_id.is_none()) {
        let rows: Vec<_> = orders.iter().map(|order| Bounded { order, bounds: None }).collect();
        insert(connection, &rows).await.map_err(InsertError::at_commit)?
    } else {
        let mut tx = connection.begin().await.map_err(InsertError::NotCommitted)?;
        let rows = bounded(&mut tx, orders).await.map_err(InsertError::NotCommitted)?;
        let outcomes = insert(&mut tx, &rows).await.map_err(InsertError::NotCommitted)?;
        tx.commit().await.map_err(InsertError::at_commit)?;
        outcomes
    };
    // The users of orders that are missing here may not trade.
    let outcomes = orders.iter().map(|order| {
        outcomes.remove(&(order.client_id, order.order_id)).unwrap_or(InsertOutcome::Forbidden)
    });
    Ok(outcomes.collect())
}

/// Locks the users of the orders. Those orders that their users may make, with their bounds.
async fn bounded<'a>(
    conn: &mut Connection,
    orders: &'a [NewOrderRow],
) -> Result<Vec<Bounded<'a, NewOrderRow>>, sqlx::Error> {
    let users = orders.iter().filter_map(|order| Some((order.client_id, order.user_id?)));
    let (clients, users): (Vec<_>, Vec<_>) = users.unzip();
    let rules = limits::hold_traders(conn, &clients, &users).await?;
    let rows = orders.iter().filter_map(|order| {
        let bounds = match order.user_id {
            None => None,
            Some(user) => {
                let rules = rules.get(&(order.client_id, user))?;
                Some(Bounds::new(rules, Side::Buy))
            }
        };
        Some(Bounded { order, bounds })
    });
    Ok(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that broke, and one that carries noise.
    fn broken() -> [sqlx::Error; 2] {
        [
            sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into()),
            sqlx::Error::Protocol("unknown message type".to_owned()),
        ]
    }

    #[test]
    fn a_connection_lost_at_the_commit_is_no_answer_and_before_it_is_tried_again() {
        for error in broken() {
            let at_commit = InsertError::at_commit(error);
            assert!(!at_commit.is_retryable());
            assert!(matches!(at_commit.shared_outcome(), InsertOutcome::Unknown));
            assert!(matches!(at_commit.outcome(), InsertOutcome::Unknown));
        }
        for error in broken() {
            let before = InsertError::NotCommitted(error);
            assert!(before.is_retryable() && !before.is_of_one_order());
            assert!(matches!(before.shared_outcome(), InsertOutcome::Unavailable));
        }
        let unavailable = InsertError::at_commit(sqlx::Error::PoolTimedOut);
        assert!(!unavailable.is_retryable());
        assert!(matches!(unavailable.outcome(), InsertOutcome::Failed(_)));
    }
}
