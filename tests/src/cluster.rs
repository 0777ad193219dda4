//! One private Postgres for all tests of a process; a database for each test, made from a migrated
//! template. Those whose tests are over are dropped when the next one is made, all others end with the
//! process.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::sys::statvfs::statvfs;
use rampart_core::platform::crypto::Secret;
use rampart_core::platform::private_postgres::{Options, PrivatePostgres, Profile};
use rampart_core::platform::schema;
use rampart_core::platform::settings::Database;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, Postgres, Transaction};
use tokio::sync::OnceCell;

use crate::deadline::{SOON, until};
use crate::pgbouncer::PgBouncer;
use crate::prices;

const TEMPLATE: &str = "rampart_template";
/// The roles of edges: for requests, and for workers and operators.
const ROLES: [&str; 2] = ["rampart_edge", "rampart_worker"];

static CLUSTER: Mutex<Option<PrivatePostgres>> = Mutex::new(None);
/// Held while a database is made: Postgres copies a template only while nobody is connected to it.
static MAKING: tokio::sync::Mutex<bool> = tokio::sync::Mutex::const_new(false);
/// In front of the cluster where a test's edges are to go through it.
static POOLER: OnceCell<PgBouncer> = OnceCell::const_new();
/// Connections of the pooler to the server for each database and user: as many as an edge opens, so
/// that a partner whose rows are locked leaves some to the others.
const SERVERS: u32 = 24;
static NUMBER: AtomicU32 = AtomicU32::new(0);
/// Databases whose tests are over.
static OVER: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// A file system in memory. On a disk, ext4 spends more time on the 800 files of each database than
/// the test that uses it, most of it looking for inodes that were not removed lately.
const MEMORY: &str = "/dev/shm";
/// Bytes that must be free there.
const ROOM: u64 = 4 << 30;

/// A database that is removed after its test.
pub struct OwnDatabase(String);

impl OwnDatabase {
    /// A fresh, migrated database with prices.
    pub async fn make() -> Self {
        Self(database().await)
    }

    /// Its URL, for the role that owns it.
    pub fn url(&self) -> &str {
        &self.0
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        OVER.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.0));
    }
}

/// The URL of a fresh, migrated database with prices.
pub async fn database() -> String {
    let mut template_is_ready = MAKING.lock().await;
    if !*template_is_ready {
        run(&url("postgres").await, [format!("create database {TEMPLATE}")]).await;
        migrate(&url(TEMPLATE).await).await;
        let logins = ROLES.map(|role| format!("alter role {role} login"));
        run(&url("postgres").await, logins).await;
        *template_is_ready = true;
    }
    let over = std::mem::take(&mut *OVER.lock().unwrap_or_else(PoisonError::into_inner));
    let over = over.iter().filter_map(|url| database_of(url));
    let drops = over.map(|name| format!("drop database {name} with (force)"));
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let create = format!("create database {name} template {TEMPLATE} strategy file_copy");
    let statements: Vec<String> = drops.chain([create]).collect();
    run(&url("postgres").await, statements).await;
    url(&name).await
}

/// Migrates a database as its owner does before an edge serves it, partitions and roles included, and sets
/// prices.
pub(crate) async fn migrate(url: &str) {
    let settings = Database { url: Some(Secret::new(url.to_owned())), ..Default::default() };
    schema::migrate(&settings, |_| ()).await.unwrap();
    prices::set(url).await;
}

/// The name of the database that a URL leads to.
fn database_of(url: &str) -> Option<&str> {
    url.split(['/', '?']).nth(3)
}

/// The URL of a fresh, empty database.
pub async fn empty_database() -> String {
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    run(&url("postgres").await, [format!("create database {name}")]).await;
    url(&name).await
}

/// The URLs under which an edge uses a database of this cluster: for requests, and for workers and
/// operators. With `RAMPART_TEST_PGBOUNCER` set, they lead through PgBouncer in transaction mode. A
/// URL of another database stands for itself.
pub async fn edge_urls(owner: &str) -> [String; 2] {
    let other = url("").await;
    let socket = |url: &str| url.split_once("?host=").map(|(_, socket)| socket.to_owned());
    if socket(owner) != socket(&other) {
        return [owner, owner].map(str::to_owned);
    }
    if !through_pgbouncer() {
        return ROLES.map(|role| owner.replacen("//rampart@", &format!("//{role}@"), 1));
    }
    let pooler = POOLER.get_or_init(|| pgbouncer(owner, SERVERS)).await;
    urls_through(pooler, owner)
}

/// The URLs under which an edge uses a database of this cluster through a pooler.
pub fn urls_through(pooler: &PgBouncer, owner: &str) -> [String; 2] {
    let database = database_of(owner).unwrap_or_default();
    ROLES.map(|role| pooler.url(role, database))
}

/// A PgBouncer in front of the server of a URL, with this many connections to it for each database
/// and user.
pub async fn pgbouncer(owner: &str, servers: u32) -> PgBouncer {
    let (place, socket) = owner.split_once("?host=").expect("a URL of this cluster");
    let port = place.split([':', '/']).nth(4).expect("it names the port");
    PgBouncer::start(socket, port, servers).await
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
fn through_pgbouncer() -> bool {
    std::env::var_os("RAMPART_TEST_PGBOUNCER").is_some()
}

/// A small pool for a test's own look at the database.
pub async fn pool(url: &str) -> PgPool {
    PgPoolOptions::new().max_connections(2).connect(url).await.unwrap()
}

async fn run(url: &str, statements: impl IntoIterator<Item = String>) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    for statement in statements {
        sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
pub(crate) fn postgres_programs() -> Option<PathBuf> {
    std::env::var_os("RAMPART_PG_BIN").map(Into::into)
}

/// The folder for clusters: in memory where there is room.
pub fn folder() -> PathBuf {
    let room =
        statvfs(MEMORY).map_or(0, |memory| memory.blocks_available() * memory.fragment_size());
    if room >= ROOM { Path::new(MEMORY).to_owned() } else { std::env::temp_dir() }
}

/// The URL of a database of this process's cluster, which is started on first use.
async fn url(database: &str) -> String {
    let database = database.to_owned();
    let start = move || {
        let mut cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = cluster.get_or_insert_with(|| {
            let name = format!("rampart-tests-{}", std::process::id());
            let options = Options {
                state: folder().join(name),
                bin: postgres_programs(),
                profile: Profile::Ephemeral,
            };
            PrivatePostgres::start(options).unwrap()
        });
        cluster.url(&database)
    };
    tokio::task::spawn_blocking(start).await.unwrap()
}

/// Waits until somebody waits for a lock in this database. The server has those of other tests too.
pub async fn until_a_lock_is_awaited(db: &PgPool) {
    until_locks_are_awaited(db, 1).await;
}

/// Commits the transaction once somebody waits for a lock in this database.
pub async fn commit_once_awaited(db: &PgPool, tx: Transaction<'_, Postgres>) {
    until_a_lock_is_awaited(db).await;
    tx.commit().await.unwrap();
}

/// Waits until so many wait for locks in this database.
pub async fn until_locks_are_awaited(db: &PgPool, by: i64) {
    until("locks are waited for", SOON, async || (locks_awaited(db).await >= by).then_some(()))
        .await;
}

/// Number of this database's statements that wait for a lock.
pub async fn locks_awaited(db: &PgPool) -> i64 {
    let waiting = sqlx::query_scalar(
        "select count(*) from pg_stat_activity \
         where datname = current_database() and wait_event_type = 'Lock'",
    );
    waiting.fetch_one(db).await.unwrap()
}

/// Makes the first change of a row of this table from now on lose to a deadlock.
pub async fn lose_first_change(db: &PgPool, table: &str) {
    let trigger = format!(
        "create sequence changes;
        create function lose_first() returns trigger language plpgsql security definer as $$ begin
            if nextval('changes') = 1 then
                raise exception using errcode = 'deadlock_detected';
            end if;
            return coalesce(new, old);
        end $$;
        create trigger lose_first before update or delete on {table}
            for each row execute function lose_first();"
    );
    sqlx::raw_sql(AssertSqlSafe(trigger)).execute(db).await.unwrap();
}

/// Changes since [`lose_first_change`], the one that lost included.
pub async fn changes(db: &PgPool) -> i64 {
    sqlx::query_scalar("select last_value from changes").fetch_one(db).await.unwrap()
}
