//! The schema: its migrations, and whether an edge of this version can work with what the database
//! holds.
//!
//! `rampart migrate` applies migrations, an edge only reads which ones have been. An edge needs
//! every migration that it knows and that does not say [`OPTIONAL`]; it serves beside migrations
//! of later versions until one of them raises `edge_migration_min()`.

mod archive;
pub(crate) mod partitions;
mod roles;
mod turn;

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::migrate::{Migrate as _, MigrateError, Migration};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor, PgConnection, Postgres, Row as _};

pub use self::archive::maintain_partitions;
use crate::platform::clock::Clock;
use crate::platform::db::{
    DatabaseError, MIGRATIONS, Pool, PoolKind, connect_options, connect_with_keepalives,
};
use crate::platform::error::database_message;
use crate::platform::error::sqlstate::is_lock_timeout;
use crate::platform::settings;

/// The line of a migration without which edges that know it serve as well, such as a new index.
const OPTIONAL: &str = "-- optional: edges serve without it";
/// The line of a migration that makes a table, or makes one anew, which edges use before the last
/// migration is applied: their roles are granted what they need in its transaction.
const GRANTED: &str = "-- granted: edges use a table that is made anew";

/// The state of a database's schema beside the migrations of this version.
#[derive(Debug)]
pub struct Schema {
    /// Applied migrations and their checksums.
    applied: BTreeMap<i64, Vec<u8>>,
    /// The oldest last migration that an edge must know; zero if the schema does not say.
    edge_min: i64,
}

impl Schema {
    /// Reads it; changes nothing.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn read(db: &Pool) -> Result<Self, DatabaseError> {
        let mut connection = db.acquire().await.map_err(unreadable)?;
        Self::of(&mut *connection).await.map_err(unreadable)
    }

    /// Prepares no statement: a pooler may not keep it.
    async fn of<C>(connection: &mut C) -> Result<Self, sqlx::Error>
    where
        for<'c> &'c mut C: Executor<'c, Database = Postgres>,
    {
        let exist = sqlx::raw_sql(
            "select to_regclass('_sqlx_migrations') is not null, \
             to_regprocedure('edge_migration_min()') is not null",
        );
        let exist = exist.fetch_one(&mut *connection).await?;
        let mut schema = Self { applied: BTreeMap::new(), edge_min: 0 };
        if exist.try_get(0)? {
            let applied = "select version, checksum from _sqlx_migrations where success";
            for row in sqlx::raw_sql(applied).fetch_all(&mut *connection).await? {
                schema.applied.insert(row.try_get(0)?, row.try_get(1)?);
            }
        }
        if exist.try_get(1)? {
            let edge_min = sqlx::raw_sql("select edge_migration_min()");
            schema.edge_min = edge_min.fetch_one(&mut *connection).await?.try_get(0)?;
        }
        Ok(schema)
    }

    /// The last applied migration, `0017`; `none` of an empty database.
    pub fn version(&self) -> String {
        self.applied.keys().next_back().map_or_else(|| "none".to_owned(), |last| number(*last))
    }

    /// The known migrations that have not been applied, oldest first.
    fn missing(&self) -> impl Iterator<Item = &'static Migration> {
        MIGRATIONS.iter().filter(|known| !self.applied.contains_key(&known.version))
    }

    /// The missing migrations without which an edge serves, as `0021, 0022`; empty if there are none.
    pub fn missing_optional(&self) -> String {
        numbers(self.missing().filter(|missing| is_optional(missing)))
    }

    /// The reason an edge of this version cannot serve, in one sentence.
    pub fn refusal(&self) -> Option<String> {
        let required = numbers(self.missing().filter(|missing| !is_optional(missing)));
        if self.applied.is_empty() {
            return Some("the database has no schema: run `rampart migrate`".to_owned());
        }
        let missing = !required.is_empty();
        self.mismatch().or_else(|| {
            missing.then(|| format!("the schema lacks {required}: run `rampart migrate`"))
        })
    }

    /// True if an edge cannot serve, and migrating would mend that.
    pub fn is_behind(&self) -> bool {
        self.refusal().is_some() && self.mismatch().is_none()
    }

    /// Refuses what migrating does not mend.
    fn check_match(&self) -> Result<(), DatabaseError> {
        self.mismatch().map_or(Ok(()), |reason| Err(DatabaseError::new(reason)))
    }

    /// The reason that migrating does not mend.
    fn mismatch(&self) -> Option<String> {
        if let Some(changed) = self.changed() {
            return Some(format!(
                "migration {} was applied with another text than this version knows",
                number(changed)
            ));
        }
        let known = last_known();
        (known < self.edge_min).then(|| {
            format!(
                "the schema is too new: it needs an edge that knows migration {}, this one knows \
                 them up to {}",
                number(self.edge_min),
                number(known)
            )
        })
    }

    /// True if a later version has migrated it.
    fn is_ahead(&self) -> bool {
        self.applied.keys().next_back().is_some_and(|last| *last > last_known())
    }

    /// The first known migration whose text was another when it was applied.
    fn changed(&self) -> Option<i64> {
        let mut known = MIGRATIONS.iter();
        let differs = |known: &&Migration| {
            self.applied.get(&known.version).is_some_and(|applied| **applied != *known.checksum)
        };
        known.find(differs).map(|changed| changed.version)
    }
}

/// Refuses a schema that an edge of this version cannot serve.
///
/// # Errors
/// One sentence: what is missing or too new, and what to do.
pub async fn check(db: &Pool) -> Result<(), DatabaseError> {
    let schema = Schema::read(db).await?;
    if let Some(reason) = schema.refusal() {
        return Err(DatabaseError::new(reason));
    }
    let optional = schema.missing_optional();
    if !optional.is_empty() {
        tracing::warn!(migrations = optional, "the schema lacks optional migrations");
    }
    let sees = sqlx::query_scalar!(
        r#"select sees_all_tenants() or not row_security_active('client') as "sees!""#
    );
    if !PoolKind::Workers.run(sees.fetch_one(db)).await.map_err(unreadable)? {
        return Err(DatabaseError::new(
            "workers cannot see every tenant: set database.worker_url to a member of \
             rampart_worker that is none of rampart_edge",
        ));
    }
    Ok(())
}

/// A migration that was applied.
#[derive(Debug)]
pub struct Applied {
    /// Its number and subject: `0017 trade rules`.
    pub name: String,
    /// The time that it took.
    pub took: Duration,
}

/// Grants the roles of edges what they need, and makes them where they are missing. Logs a warning
/// where this role may not make them.
async fn grant_roles(connection: &mut PgConnection) -> Result<(), DatabaseError> {
    let granted = roles::grant(connection)
        .await
        .map_err(|error| refused("the roles cannot be granted", &error))?;
    if !granted {
        tracing::warn!(
            "rampart_edge and rampart_worker do not exist, and the role that migrates may not \
             create roles: edges must run as the schema's owner"
        );
    }
    Ok(())
}

/// Applies the missing migrations, oldest first, each in a transaction of its own unless its first
/// line is `-- no-transaction`, and grants the roles of edges what they need. Processes that migrate at once take turns. Connects to
/// `database.migrate_url`, or to `database.url` without one.
///
/// A migration waits for a lock at most `database.lock_timeout_ms`, so that statements that queue
/// behind it wait no longer; one without a transaction blocks nobody and waits for as long as it
/// takes.
///
/// # Errors
/// One sentence. Migrations before the one that failed stay applied.
pub async fn migrate(
    settings: &settings::Database,
    mut report: impl FnMut(&Applied),
) -> Result<Schema, DatabaseError> {
    let (options, mut connection) = connect_to_migrate(settings).await?;
    let schema = Schema::of(&mut connection).await.map_err(unreadable)?;
    schema.check_match()?;
    if schema.missing().next().is_none()
        && roles::are_granted(&mut connection).await.map_err(unreadable)?
        && partitions::are_made(&mut connection).await.map_err(unreadable)?
    {
        return Ok(schema);
    }
    let failed = |error: sqlx::Error| refused("the database cannot be migrated", &error);
    let mut turn = PgConnection::connect_with(&options).await.map_err(failed)?;
    let turn = turn::take(&mut turn).await.map_err(failed)?;
    let table = &MIGRATIONS.table_name;
    connection.ensure_migrations_table(table).await.map_err(|error| match error {
        MigrateError::Execute(error) => failed(error),
        other => failed(other.into()),
    })?;
    // Another process may have migrated while this one waited.
    let schema = Schema::of(&mut connection).await.map_err(unreadable)?;
    schema.check_match()?;
    let clock = Clock::system();
    for migration in schema.missing() {
        let begun_ns = clock.monotonic_ns();
        apply(&mut connection, migration, settings.lock_timeout_ms).await?;
        report(&Applied {
            name: name(migration),
            took: Duration::from_nanos(clock.monotonic_ns() - begun_ns),
        });
    }
    partitions::create(&mut connection, settings.lock_timeout_ms).await.map_err(failed)?;
    // Which of a later version's tables are append-only, that version knows, and has granted.
    if !schema.is_ahead() {
        grant_roles(&mut connection).await?;
    }
    turn.commit().await.map_err(failed)?;
    Schema::of(&mut connection).await.map_err(unreadable)
}

/// Connects as the role that migrates.
async fn connect_to_migrate(
    settings: &settings::Database,
) -> Result<(PgConnectOptions, PgConnection), DatabaseError> {
    let (key, url) = match &settings.migrate_url {
        Some(url) => ("database.migrate_url", Some(url)),
        None => ("database.url", settings.url.as_ref()),
    };
    let options = connect_options(key, url)?;
    let at = format!("{}:{}", options.get_host(), options.get_port());
    let wait = Duration::from_millis(settings.acquire_timeout_ms);
    let connected = match tokio::time::timeout(wait, connect_with_keepalives(options)).await {
        Ok(connected) => connected.map_err(|error| database_message(&error).into_owned()),
        Err(_) => Err(format!("it does not answer within {} ms", wait.as_millis())),
    };
    connected
        .map_err(|reason| DatabaseError::new(format!("Postgres at {at} cannot be used: {reason}")))
}

/// Applies one migration and notes that it was.
async fn apply(
    connection: &mut PgConnection,
    migration: &Migration,
    lock_timeout_ms: u64,
) -> Result<(), DatabaseError> {
    let failed = |error: sqlx::Error| {
        let reason = match is_lock_timeout(&error) {
            true => format!(
                "a lock was not free within {lock_timeout_ms} ms; run it again when the \
                 transaction that holds the lock has ended"
            ),
            false => database_message(&error).into_owned(),
        };
        DatabaseError::new(format!("migration {} failed: {reason}", name(migration)))
    };
    if migration.no_tx {
        apply_alone(connection, migration).await.map_err(failed)?;
        if let Some(index) = unfinished_index(connection).await.map_err(failed)? {
            return Err(DatabaseError::new(format!(
                "migration {} failed: an earlier attempt left the index {index} unfinished; \
                 `drop index concurrently {index}` and run this again",
                name(migration)
            )));
        }
        return note(connection, migration).await.map_err(failed);
    }
    let begin = format!(
        "begin; set local statement_timeout = 0; set local lock_timeout = {lock_timeout_ms}; \
         set local client_min_messages = warning"
    );
    let mut tx = connection.begin_with(AssertSqlSafe(begin)).await.map_err(failed)?;
    tx.execute(migration.sql.clone()).await.map_err(failed)?;
    if has_line(migration, GRANTED) {
        roles::grant_again(&mut tx).await.map_err(failed)?;
    }
    note(&mut tx, migration).await.map_err(failed)?;
    tx.commit().await.map_err(failed)
}

/// Applies a migration that cannot run in a transaction. It must be one statement that does no harm
/// when it is run again, because it may have run without being noted.
async fn apply_alone(
    connection: &mut PgConnection,
    migration: &Migration,
) -> Result<(), sqlx::Error> {
    for setting in ["set statement_timeout = 0", "set lock_timeout = 0"] {
        sqlx::query(setting).execute(&mut *connection).await?;
    }
    connection.execute(migration.sql.clone()).await?;
    for setting in ["reset statement_timeout", "reset lock_timeout"] {
        sqlx::query(setting).execute(&mut *connection).await?;
    }
    Ok(())
}

/// An index that an interrupted attempt has left unfinished: `if not exists` is content with it.
async fn unfinished_index(connection: &mut PgConnection) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar(
        "select indexrelid::regclass::text from pg_index join pg_class on oid = indexrelid \
         where not indisvalid and relnamespace = current_schema()::regnamespace limit 1",
    )
    .fetch_optional(connection)
    .await
}

/// Notes a migration in the table that sqlx uses.
async fn note(connection: &mut PgConnection, migration: &Migration) -> Result<(), sqlx::Error> {
    sqlx::query(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time) \
         values ($1, $2, true, $3, -1)",
    )
    .bind(migration.version)
    .bind(&*migration.description)
    .bind(&*migration.checksum)
    .execute(connection)
    .await?;
    Ok(())
}

/// The last migration that this version knows.
fn last_known() -> i64 {
    MIGRATIONS.iter().map(|known| known.version).max().unwrap_or(0)
}

fn is_optional(migration: &Migration) -> bool {
    has_line(migration, OPTIONAL)
}

fn has_line(migration: &Migration, line: &str) -> bool {
    migration.sql.as_str().lines().any(|one| one == line)
}

fn number(version: i64) -> String {
    format!("{version:04}")
}

fn name(migration: &Migration) -> String {
    format!("{} {}", number(migration.version), migration.description)
}

/// `migration 0018` or `migrations 0018, 0019`; empty for none.
fn numbers<'a>(migrations: impl Iterator<Item = &'a Migration>) -> String {
    let all: Vec<String> = migrations.map(|migration| number(migration.version)).collect();
    match all.len() {
        0 => String::new(),
        1 => format!("migration {}", all.concat()),
        _ => format!("migrations {}", all.join(", ")),
    }
}

fn unreadable(error: sqlx::Error) -> DatabaseError {
    refused("the schema cannot be read", &error)
}

fn refused(what: &str, error: &sqlx::Error) -> DatabaseError {
    DatabaseError::new(format!("{what}: {}", database_message(error)))
}
