//! The connection pool with its limits and timeouts.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Postgres};

use crate::platform::crypto::Secret;
use crate::platform::error::sqlstate::Retryable;
use crate::platform::settings;

/// Oldest Postgres that the statements are tested with.
const SERVER_VERSION_MIN: i32 = 150_000;

/// Lifetime of a connection; bounds the time until a failover by address takes effect.
const CONNECTION_LIFETIME: Duration = Duration::from_secs(30 * 60);

/// Idle time up to which a connection is used without a ping. The pool checks a connection when it
/// is returned; another check costs a round trip before every statement.
const PING_AFTER_IDLE: Duration = Duration::from_millis(100);

/// The migrations, embedded; `platform::schema` applies them.
pub static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../migrations");

/// The reason the database cannot be used: one sentence for the operator, without the password.
#[derive(Debug)]
pub struct DatabaseError(String);

impl DatabaseError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl std::fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DatabaseError {}

/// Connects and checks the server's version.
///
/// The pool belongs to the runtime that awaits this; it must outlive every use.
///
/// # Errors
/// One sentence: no URL, unreachable, or too old.
pub async fn open(settings: &settings::Database) -> Result<PgPool, DatabaseError> {
    let options = connect_options("database.url", settings.url.as_ref())?;
    let at = format!("{}:{}", options.get_host(), options.get_port());
    let wait = Duration::from_millis(settings.acquire_timeout_ms);
    check_server(&options, wait)
        .await
        .map_err(|reason| DatabaseError(format!("Postgres at {at} cannot be used: {reason}")))?;
    let timeout = settings.statement_timeout_ms.to_string();
    let pool = PgPoolOptions::new()
        .max_connections(settings.connections_max)
        .acquire_timeout(wait)
        .max_lifetime(CONNECTION_LIFETIME)
        .test_before_acquire(false)
        .before_acquire(|connection, metadata| {
            Box::pin(async move {
                if metadata.idle_for > PING_AFTER_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_with(options.options([
            // Hides notices, such as those of a migration that finds an object in place.
            ("client_min_messages", "warning"),
            ("statement_timeout", timeout.as_str()),
            ("idle_in_transaction_session_timeout", "10000"),
        ]))
        .await
        .map_err(|error| DatabaseError(format!("Postgres at {at} cannot be used: {error}")))?;
    Ok(pool)
}

/// The options in the URL of the setting `key`.
///
/// # Errors
/// One sentence: not set, or no URL of Postgres.
pub(crate) fn connect_options(
    key: &str,
    url: Option<&Secret>,
) -> Result<PgConnectOptions, DatabaseError> {
    let url = url.ok_or_else(|| {
        DatabaseError("database.url is not set (RAMPART__DATABASE__URL or the file)".to_owned())
    })?;
    // The parser accepts any scheme.
    let scheme = url.expose().split_once("://").map(|(scheme, _)| scheme);
    scheme
        .filter(|scheme| ["postgres", "postgresql"].contains(scheme))
        .and_then(|_| url.expose().parse::<PgConnectOptions>().ok())
        .map(|options| options.application_name("rampart"))
        .ok_or_else(|| DatabaseError(format!("{key} is not a postgres:// URL")))
}

/// Checks the server on a separate connection, because the pool retries until its timeout and then
/// hides the cause.
///
/// # Errors
/// The reason it cannot be used.
async fn check_server(options: &PgConnectOptions, wait: Duration) -> Result<(), String> {
    let check = async {
        let mut server = PgConnection::connect_with(options).await?;
        let version = sqlx::query_scalar("select current_setting('server_version_num')")
            .fetch_one(&mut server)
            .await?;
        server.close().await?;
        Ok::<String, sqlx::Error>(version)
    };
    let version = match tokio::time::timeout(wait, check).await {
        Ok(checked) => checked.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("it does not answer within {} ms", wait.as_millis())),
    };
    if version.parse().unwrap_or(0) < SERVER_VERSION_MIN {
        return Err(format!("it is too old: 15 or later is needed, it is {version}"));
    }
    Ok(())
}

/// Drops a database of this name and creates an empty one, on the server behind `url`.
///
/// # Errors
/// One sentence.
pub async fn recreate(url: &str, name: &str) -> Result<(), DatabaseError> {
    let failed = |error| DatabaseError(format!("database {name} cannot be made: {error}"));
    let mut server = PgConnection::connect(url).await.map_err(failed)?;
    for statement in ["drop database if exists", "create database"] {
        // A name cannot be a bind parameter, so it is quoted.
        let statement = format!("{statement} \"{}\"", name.replace('"', "\"\""));
        sqlx::query(AssertSqlSafe(statement)).execute(&mut server).await.map_err(failed)?;
    }
    Ok(())
}

/// A connection of the pool that a worker keeps from one statement to the next. The pool checks its
/// connections when it takes one back and before it gives an old one out: round trips that a
/// statement on a hot path does not need.
#[derive(Debug)]
pub(crate) struct HeldConnection {
    db: PgPool,
    connection: Option<PoolConnection<Postgres>>,
}

impl HeldConnection {
    /// Holds none yet.
    pub(crate) fn new(db: PgPool) -> Self {
        Self { db, connection: None }
    }

    /// The pool that it comes from.
    pub(crate) fn pool(&self) -> &PgPool {
        &self.db
    }

    /// The connection; one of the pool when none is held.
    ///
    /// # Errors
    /// When the pool has none.
    pub(crate) async fn get(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
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
pub(crate) async fn retrying_statement<T, E, F, Fut>(mut transaction: F) -> Result<T, E>
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
