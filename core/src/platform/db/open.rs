//! Opening the database: the options of its connections, and the check of the server.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

use super::availability::ask;
use super::pool::Pool;
use super::pool_kind::PoolKind;
use super::session::{KEEPALIVES, Session};
use crate::platform::clock::Clock;
use crate::platform::crypto::Secret;
use crate::platform::error::database_message;
use crate::platform::error::sqlstate::has_code;
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
    let requests = Link::look("database.url", settings.url.as_ref(), settings, clock).await?;
    let workers = match &settings.worker_url {
        Some(url) => Link::look("database.worker_url", Some(url), settings, clock).await?,
        None => requests.clone(),
    };
    let mut replicas = Vec::with_capacity(settings.replica_urls.len());
    for url in &settings.replica_urls {
        let options = connect_options("database.replica_urls", Some(url))?;
        // One that is away now is used once it is there, with what any server keeps; for keepalives
        // it is asked then.
        let link = Link { options, keeps_settings: false, keeps_statements: false };
        replicas.push(link.session(PoolKind::Operators, settings));
    }
    let connect = |kind: PoolKind| {
        let link = if kind.sees_all_tenants() { &workers } else { &requests };
        link.session(kind, settings)
    };
    Ok(Pool::new(settings, clock, connect, replicas))
}

/// A way to Postgres, and what it keeps of a connection.
#[derive(Clone)]
struct Link {
    options: PgConnectOptions,
    keeps_settings: bool,
    keeps_statements: bool,
}

impl Link {
    /// The options of connections of a kind.
    fn session(
        &self,
        kind: PoolKind,
        settings: &settings::Database,
    ) -> (PgConnectOptions, Session) {
        let session = Session {
            keeps_settings: self.keeps_settings,
            keeps_statements: self.keeps_statements && kind.keeps_plans(),
            statement_timeout: kind.statement_timeout(settings),
        };
        (session.connect_options(&self.options), session)
    }

    /// Checks the server behind a URL, and what is between us and it.
    async fn look(
        key: &str,
        url: Option<&Secret>,
        settings: &settings::Database,
        clock: &Clock,
    ) -> Result<Self, DatabaseError> {
        let options = connect_options(key, url)?.extra_float_digits(None);
        let at = format!("{}:{}", options.get_host(), options.get_port());
        let wait = Duration::from_millis(settings.acquire_timeout_ms);
        let looking = async {
            check_server(&options, clock).await?;
            keeps_settings(&options).await.map_err(|error| database_message(&error).into_owned())
        };
        let looked = match tokio::time::timeout(wait, looking).await {
            Ok(looked) => looked,
            Err(_) => Err(format!("it does not answer within {} ms", wait.as_millis())),
        };
        let keeps_settings = looked.map_err(|reason| {
            DatabaseError(format!("Postgres at {at} cannot be used: {reason}"))
        })?;
        if !keeps_settings {
            tracing::info!(at, "a pooler in transaction mode is in front of Postgres");
        }
        let keeps_statements = settings.prepared_statements.unwrap_or(keeps_settings);
        Ok(Self { options, keeps_settings, keeps_statements })
    }
}

/// A statement timeout that nobody has by chance, in milliseconds.
const UNUSUAL_TIMEOUT_MS: &str = "71237";

/// True if the server keeps what a connection asks for when it begins. A pooler in transaction mode
/// refuses to, or does not pass it on.
async fn keeps_settings(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let unusual = [("statement_timeout", UNUSUAL_TIMEOUT_MS)];
    let options = options.clone().options(unusual).options(KEEPALIVES);
    let mut server = match PgConnection::connect_with(&options).await {
        Ok(server) => server,
        Err(error) if is_protocol_violation(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    let shown = sqlx::raw_sql("select setting from pg_settings where name = 'statement_timeout'")
        .fetch_one(&mut server)
        .await?;
    let kept = shown.try_get::<String, _>(0)? == UNUSUAL_TIMEOUT_MS;
    server.close().await?;
    Ok(kept)
}

/// A connection of its own with keepalives, and the options of a further one like it. A pooler may
/// refuse keepalives, and does without.
///
/// # Errors
/// When the server is away or refuses the connection.
pub(crate) async fn connect_with_keepalives(
    options: PgConnectOptions,
) -> Result<(PgConnectOptions, PgConnection), sqlx::Error> {
    let asking = options.clone().options(KEEPALIVES);
    match PgConnection::connect_with(&asking).await {
        Ok(connection) => Ok((asking, connection)),
        Err(error) if is_protocol_violation(&error) => {
            let connection = PgConnection::connect_with(&options).await?;
            Ok((options, connection))
        }
        Err(error) => Err(error),
    }
}

/// 08P01, with which poolers answer a setting that they do not know.
fn is_protocol_violation(error: &sqlx::Error) -> bool {
    has_code(error, &["08P01"])
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
/// hides the cause. Prepares no statement: a pooler may not keep it.
///
/// # Errors
/// The reason it cannot be used.
async fn check_server(options: &PgConnectOptions, clock: &Clock) -> Result<(), String> {
    let check = async {
        let mut server = PgConnection::connect_with(options).await?;
        let version = sqlx::raw_sql("select current_setting('server_version_num')")
            .fetch_one(&mut server)
            .await?;
        ask(&mut server, clock).await?;
        server.close().await?;
        version.try_get::<String, _>(0)
    };
    let version = check.await.map_err(|error| database_message(&error).into_owned())?;
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
    let failed = |error: sqlx::Error| {
        let reason = database_message(&error);
        DatabaseError(format!("database {name} cannot be made: {reason}"))
    };
    let mut server = PgConnection::connect(url).await.map_err(failed)?;
    for statement in ["drop database if exists", "create database"] {
        // A name cannot be a bind parameter, so it is quoted.
        let statement = format!("{statement} \"{}\"", name.replace('"', "\"\""));
        sqlx::query(AssertSqlSafe(statement)).execute(&mut server).await.map_err(failed)?;
    }
    Ok(())
}
