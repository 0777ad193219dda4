//! Classification of database errors by SQLSTATE.

/// True if the database is down, full or shedding load, as opposed to a wrong statement.
pub(crate) fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::Io(_)
        | sqlx::Error::Tls(_) => true,
        // Class 53 resources, 57 operator intervention, 58 system error, 08 connection.
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| ["08", "53", "57", "58"].iter().any(|c| code.starts_with(c))),
        _ => false,
    }
}

/// True if a text holds U+0000, which JSON can represent and Postgres cannot store (22021 character
/// not in repertoire, 22P05 untranslatable character).
pub(crate) fn is_unstorable_text(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|e| e.code());
    code.is_some_and(|code| code == "22021" || code == "22P05")
}

/// True for a serialization failure or a deadlock: nothing was committed, the transaction may be
/// retried.
pub(crate) fn is_retryable(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|e| e.code());
    code.is_some_and(|code| code == "40001" || code == "40P01")
}
