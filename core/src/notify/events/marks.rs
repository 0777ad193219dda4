//! Marks of transactions: they tell which events a statement sees with all that come before them.
//!
//! An edge draws a transaction id every few seconds and keeps it with the time before. A statement
//! whose oldest running transaction is not older than a mark sees what every transaction wrote that
//! had begun to write by then. Marks stay in memory: the ids of a database that was restored
//! elsewhere begin anew, and an edge takes new ones there.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

use crate::Core;
use crate::platform::error::Result;

/// Longest time for which a transaction that writes an event may run: a worker's run is given up
/// after five minutes, and each statement and pause of a request after seconds. What runs longer
/// writes no event, and holds up no reader.
const TRANSACTION_MAX: TimeDelta = TimeDelta::minutes(10);

/// The marks of an edge.
#[derive(Debug, Default)]
pub struct TransactionMarks(Mutex<Vec<Mark>>);

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The id of a transaction, which began to write no earlier than at `at`.
    transaction: i64,
    at: DateTime<Utc>,
}

impl TransactionMarks {
    /// Keeps a mark. Those of a later time are dropped: the database's clock was put back, and they say
    /// nothing of what begins until it is there again.
    fn add(&self, mark: Mark) {
        let mut marks = self.marks();
        marks.retain(|kept| kept.at > mark.at - TRANSACTION_MAX && kept.at <= mark.at);
        marks.push(mark);
    }

    /// The time by which a transaction that still runs, or commits later, had not begun to write.
    /// `oldest_running` is the `pg_snapshot_xmin` of the statement that reads, and `now` its time.
    pub(super) fn ended_until(&self, oldest_running: i64, now: DateTime<Utc>) -> DateTime<Utc> {
        let marks = self.marks();
        let has_ended = |mark: &&Mark| mark.transaction <= oldest_running && mark.at <= now;
        let ended = marks.iter().filter(has_ended);
        ended.map(|mark| mark.at).fold(now - TRANSACTION_MAX, Ord::max)
    }

    fn marks(&self) -> MutexGuard<'_, Vec<Mark>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Takes a mark: one run of a worker.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn mark_transactions(&self) -> Result<()> {
        let mark = sqlx::query!(
            r#"
            select pg_current_xact_id()::text::bigint as "transaction!", rampart_now() as "at!"
            "#
        )
        .fetch_one(&self.db)
        .await?;
        self.transaction_marks.add(Mark { transaction: mark.transaction, at: mark.at });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn a_transaction_that_runs_holds_back_what_came_after_it_began() {
        let marks = TransactionMarks::default();
        assert_eq!(marks.ended_until(7, at(0)), at(-600), "nothing is known yet");
        for (transaction, seconds) in [(10, 0), (20, 5), (30, 10)] {
            marks.add(Mark { transaction, at: at(seconds) });
        }
        assert_eq!(marks.ended_until(30, at(12)), at(10));
        assert_eq!(marks.ended_until(29, at(12)), at(5));
        assert_eq!(marks.ended_until(9, at(12)), at(-588));
        assert_eq!(marks.ended_until(10, at(700)), at(100), "it runs for too long");
    }

    #[test]
    fn the_ids_of_another_server_may_be_lower() {
        let marks = TransactionMarks::default();
        marks.add(Mark { transaction: 1_000, at: at(0) });
        marks.add(Mark { transaction: 3, at: at(5) });
        assert_eq!(marks.ended_until(4, at(6)), at(5));
        marks.add(Mark { transaction: 5, at: at(600) });
        assert_eq!(marks.marks().len(), 2, "old ones are dropped");
    }

    #[test]
    fn a_mark_from_before_the_clock_was_put_back_ends_nothing() {
        let marks = TransactionMarks::default();
        marks.add(Mark { transaction: 10, at: at(100) });
        assert_eq!(marks.ended_until(10, at(40)), at(-560));
        marks.add(Mark { transaction: 20, at: at(45) });
        assert_eq!(marks.ended_until(30, at(50)), at(45));
        assert_eq!(marks.ended_until(30, at(101)), at(45), "what began at 46 may still run");
    }
}
