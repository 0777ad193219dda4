//! One private Postgres for all tests of a process; a database for each test, made from a migrated
//! template. All of them end with the process.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rampart_core::platform::crypto::Secret;
use rampart_core::platform::private_postgres::{Options, PrivatePostgres, Profile};
use rampart_core::platform::schema;
use rampart_core::platform::settings::Database;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};

const TEMPLATE: &str = "rampart_template";

static CLUSTER: Mutex<Option<PrivatePostgres>> = Mutex::new(None);
/// Held while a database is made: Postgres copies a template only while nobody is connected to it.
static MAKING: tokio::sync::Mutex<bool> = tokio::sync::Mutex::const_new(false);
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The URL of a fresh, migrated database.
pub async fn database() -> String {
    let mut template_is_ready = MAKING.lock().await;
    if !*template_is_ready {
        run(&url("postgres").await, &format!("create database {TEMPLATE}")).await;
        let settings =
            Database { url: Some(Secret::new(url(TEMPLATE).await)), ..Default::default() };
        schema::migrate(&settings, |_| ()).await.unwrap();
        *template_is_ready = true;
    }
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    run(&url("postgres").await, &format!("create database {name} template {TEMPLATE}")).await;
    url(&name).await
}

/// The URL of a fresh, empty database.
pub async fn empty_database() -> String {
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    run(&url("postgres").await, &format!("create database {name}")).await;
    url(&name).await
}

/// A small pool for a test's own look at the database.
pub async fn pool(url: &str) -> PgPool {
    PgPoolOptions::new().max_connections(2).connect(url).await.unwrap()
}

async fn run(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
pub(crate) fn postgres_programs() -> Option<PathBuf> {
    std::env::var_os("RAMPART_PG_BIN").map(Into::into)
}

/// The URL of a database of this process's cluster, which is started on first use.
async fn url(database: &str) -> String {
    let database = database.to_owned();
    let start = move || {
        let mut cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = cluster.get_or_insert_with(|| {
            let name = format!("rampart-tests-{}", std::process::id());
            let options = Options {
                state: std::env::temp_dir().join(name),
                bin: postgres_programs(),
                profile: Profile::Ephemeral,
            };
            PrivatePostgres::start(options).unwrap()
        });
        cluster.url(&database)
    };
    tokio::task::spawn_blocking(start).await.unwrap()
}
