//! Classification of database errors by SQLSTATE.

use sqlx::postgres::PgDatabaseError;

/// A write to a server that only reads.
const READ_ONLY: &str = "25006";
/// A database that takes no connections, while it is maintained or restored.
const CLOSED: &str = "55000";

/// True if the server has given the error one of these codes.
pub(crate) fn has_code(error: &sqlx::Error, codes: &[&str]) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| codes.contains(&&*code))
}

/// True if the database is down, full or shedding load, as opposed to a wrong statement.
pub(crate) fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        // Whoever took the connection does not speak as a server that is up.
        | sqlx::Error::Protocol(_) => true,
        // Class 53 resources, 57 operator intervention, 58 system error, 08 connection.
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| {
                [READ_ONLY, CLOSED].contains(&&*code)
                    || ["08", "53", "57", "58"].iter().any(|class| code.starts_with(class))
            }),
        other => is_share_used_up(other),
    }
}

/// A partner or an operator holds all connections of its share, and none came free in time.
#[derive(Debug)]
struct ShareUsedUp;

impl std::fmt::Display for ShareUsedUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("all connections of the caller's share are in use")
    }
}

impl std::error::Error for ShareUsedUp {}

/// The error of a partner or an operator that holds all connections of its share while the database is well.
pub(crate) fn share_used_up() -> sqlx::Error {
    // The one kind that holds an error of ours and that nothing here gives otherwise.
    sqlx::Error::AnyDriverError(Box::new(ShareUsedUp))
}

/// True for [`share_used_up`].
pub(crate) fn is_share_used_up(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::AnyDriverError(cause) if cause.is::<ShareUsedUp>())
}

/// True if a text holds U+0000, which JSON can represent and Postgres cannot store (22021 character
/// not in repertoire, 22P05 untranslatable character).
pub(crate) fn is_unstorable_text(error: &sqlx::Error) -> bool {
    has_code(error, &["22021", "22P05"])
}

/// True if a parameter is a time that Postgres does not have (22008 datetime field overflow), such as
/// one of before 4713 BC. The routine that receives parameters of a type (`timestamptz_recv`) says so;
/// where a statement's own arithmetic overflows, another one does.
pub(crate) fn is_unstorable_time(error: &sqlx::Error) -> bool {
    let error = error.as_database_error().and_then(|e| e.try_downcast_ref::<PgDatabaseError>());
    error.is_some_and(|error| {
        error.code() == "22008" && error.routine().is_some_and(|routine| routine.ends_with("_recv"))
    })
}

/// True if the server only reads: it was the leader when the connection was made, and is no more.
pub(crate) fn is_read_only(error: &sqlx::Error) -> bool {
    has_code(error, &[READ_ONLY])
}

/// Reports that the statement may have run although its answer is an error: the connection broke or
/// carries what is no answer, the server ended it (class 57P, which can strike behind the commit), or a
/// pooler lost the server (class 08, in which PgBouncer says so).
pub(crate) fn is_outcome_unknown(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(error) => {
            error.code().is_some_and(|code| code.starts_with("57P") || code.starts_with("08"))
        }
        _ => false,
    }
}

/// True if the connection was lost or leads to no leader, and another one may do better. A statement
/// that was given up at its deadline has had its time.
pub(crate) fn is_lost_connection(error: &sqlx::Error) -> bool {
    let timed_out = std::io::ErrorKind::TimedOut;
    is_read_only(error)
        || is_outcome_unknown(error)
            && !matches!(error, sqlx::Error::Io(io) if io.kind() == timed_out)
}

/// True if the server has no such function, does not support it, or lets this role not call it.
pub(crate) fn is_refused_function(error: &sqlx::Error) -> bool {
    has_code(error, &["42883", "0A000", "42501"])
}

/// True if the statement was given up because a lock was not free in time.
pub(crate) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    has_code(error, &["55P03"])
}

/// True if the server ended the statement at its timeout, or somebody had it do so.
pub(crate) fn is_canceled(error: &sqlx::Error) -> bool {
    has_code(error, &["57014"])
}

/// An error that may say that nothing happened, and that the same may be tried again.
pub trait Retryable {
    /// Nothing happened, and another try may succeed.
    fn is_retryable(&self) -> bool;
}

impl Retryable for sqlx::Error {
    /// The engine asks for another try.
    fn is_retryable(&self) -> bool {
        has_code(self, &["40001", "40P01"])
    }
}

impl Retryable for super::Error {
    /// The engine asks for another try, and nobody has given the error another meaning.
    fn is_retryable(&self) -> bool {
        self.database_error().is_some_and(|error| error.is_retryable())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::error::Error;

    #[test]
    fn a_partner_without_a_connection_of_its_share_has_caused_its_own_503() {
        for (error, by_sender) in [(share_used_up(), true), (sqlx::Error::PoolTimedOut, false)] {
            let reply = Error::from(error).reply("1");
            assert_eq!((reply.status.as_u16(), reply.by_sender), (503, by_sender));
        }
    }
}
