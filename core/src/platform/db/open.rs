//! Opening the database: the options of its connections, and the check of the server.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::availability::ask;
use super::pool::Pool;
use crate::platform::clock::Clock;
use crate::platform::crypto::Secret;
use crate::platform::settings;

/// Oldest Postgres that the statements are tested with.
const SERVER_VERSION_MIN: i32 = 150_000;

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
pub async fn open(settings: &settings::Database, clock: &Clock) -> Result<Pool, DatabaseError> {
    let options = connect_options("database.url", settings.url.as_ref())?;
    let at = format!("{}:{}", options.get_host(), options.get_port());
    let wait = Duration::from_millis(settings.acquire_timeout_ms);
    check_server(&options, clock, wait)
        .await
        .map_err(|reason| DatabaseError(format!("Postgres at {at} cannot be used: {reason}")))?;
    Ok(Pool::new(settings, clock, |limit| session_options(&options, limit)))
}

/// The options of every connection. `statement_timeout` is what the server keeps by itself; the
/// edge's own deadline is a little longer.
fn session_options(options: &PgConnectOptions, statement_timeout: Duration) -> PgConnectOptions {
    let timeout = statement_timeout.as_millis().to_string();
    options.clone().options([
        // Hides notices, such as those of a migration that finds an object in place.
        ("client_min_messages", "warning"),
        ("statement_timeout", timeout.as_str()),
        ("idle_in_transaction_session_timeout", "10000"),
    ])
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
async fn check_server(
    options: &PgConnectOptions,
    clock: &Clock,
    wait: Duration,
) -> Result<(), String> {
    let check = async {
        let mut server = PgConnection::connect_with(options).await?;
        let version = sqlx::query_scalar("select current_setting('server_version_num')")
            .fetch_one(&mut server)
            .await?;
        ask(&mut server, clock).await?;
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
