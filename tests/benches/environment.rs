//! The environment of a run: a folder, a durable Postgres, and databases with partners and orders
//! in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use http::Method;
use rampart_core::platform::db;
use rampart_core::platform::private_postgres::{Options, PrivatePostgres, Profile};
use rampart_tests::certificate::CERTIFICATE;
use rampart_tests::cluster;
use rampart_tests::edge::{Edge, Setup, UNLIMITED};
use rampart_tests::guests::component;
use rampart_tests::prices;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};
use tokio::runtime::Runtime;

use crate::processes;

/// The number of the first order of a database; the others follow one by one.
pub(crate) const FIRST_ORDER: u64 = 1_000_000_000;
/// Orders that one statement makes.
const ORDERS_AT_ONCE: u64 = 250_000;
/// Longest that an edge may take to start: one of them compiles a thousand policies first.
const START_TIME_MAX: Duration = Duration::from_secs(120);

/// Folder of results and state, beside the programs that cargo built.
pub(crate) fn folder() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let target = program.ancestors().nth(3).expect("cargo put the benchmark below its folder");
    target.join("bench")
}

/// A folder, a Postgres, a runtime for the driver.
pub(crate) struct Environment {
    /// Drives what speaks over the network.
    pub(crate) runtime: Runtime,
    /// Certificate, settings of peers, scripts.
    pub(crate) folder: PathBuf,
    postgres: PrivatePostgres,
}

impl Environment {
    /// Makes the folder and starts Postgres, durable as in production.
    pub(crate) fn prepare() -> Self {
        let folder = folder();
        fs::create_dir_all(&folder).unwrap();
        CERTIFICATE.write(&folder);
        let both = [fs::read(folder.join("cert.pem")), fs::read(folder.join("key.pem"))];
        fs::write(folder.join("both.pem"), both.map(Result::unwrap).concat()).unwrap();
        let bin = std::env::var_os("RAMPART_PG_BIN").map(Into::into);
        let state = folder.join("postgres");
        let options = Options { state, bin, profile: Profile::Benchmark };
        let postgres = PrivatePostgres::start(options).unwrap();
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        Self { runtime, folder, postgres }
    }

    /// The process of Postgres, for its CPU time.
    pub(crate) fn postgres(&self) -> u32 {
        processes::child_with("rampart-postgres").expect("Postgres runs below this process")
    }

    /// A file of `peers/`, its `@names@` filled in, in the folder.
    pub(crate) fn write(&self, name: &str, text: &str, values: &[(&str, &str)]) -> PathBuf {
        let filled = values
            .iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value));
        let path = self.folder.join(name);
        fs::write(&path, filled).unwrap();
        path
    }
}

/// Contents of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Its name.
    pub(crate) name: &'static str,
    /// Clients beside the two partners.
    pub(crate) clients: u64,
    /// Orders of the partner without policies.
    pub(crate) orders: u64,
    /// True when each of the clients has a policy of its own.
    pub(crate) policies: bool,
    /// True when it is kept for the next run, because it takes long to make.
    pub(crate) kept: bool,
}

/// The database of most paths.
pub(crate) const SMALL: Size =
    Size { name: "bench_small", clients: 10, orders: 10_000, policies: true, kept: false };
/// The database in which many partners have a policy.
pub(crate) const RULED: Size =
    Size { name: "bench_ruled", clients: 1_000, orders: 0, policies: true, kept: false };
/// The database over which a start is measured.
pub(crate) const CROWDED: Size =
    Size { name: "bench_crowded", clients: 10_000, orders: 0, policies: true, kept: false };
/// The database on which growth is measured.
pub(crate) const LARGE: Size =
    Size { name: "bench_large", clients: 100_000, orders: 20_000_000, policies: false, kept: true };

/// The database of the other binary.
pub(crate) const OTHER: Size = Size { name: "bench_other", ..SMALL };

/// A database with two partners, one with policies and one without.
pub(crate) struct Database {
    /// Its contents.
    pub(crate) size: Size,
    /// The binary whose schema it has, where that is not the one that cargo built.
    pub(crate) binary: Option<PathBuf>,
    /// Its URL.
    pub(crate) url: String,
    /// A pool for a look of our own.
    pub(crate) pool: PgPool,
    /// Response of the admin listener to the creation of the partner without policies.
    pub(crate) plain: Value,
    /// The same of the one with policies.
    pub(crate) ruled: Value,
}

impl Database {
    /// A database of this size: the one of the last run where it is kept and whole.
    pub(crate) fn open(environment: &Environment, size: Size) -> Self {
        Self::open_for(environment, size, None)
    }

    /// The same for this binary.
    pub(crate) fn open_for(environment: &Environment, size: Size, binary: Option<&Path>) -> Self {
        let url = environment.postgres.url(size.name);
        let note = environment.folder.join(format!("{}.json", size.name));
        let partners = known(&note).filter(|_| size.kept).unwrap_or_else(|| {
            let admin = environment.postgres.url("postgres");
            let _ = fs::remove_file(&note);
            let made = environment.runtime.block_on(fill(&admin, size, &setup(&url, binary)));
            fs::write(&note, made.to_string()).unwrap();
            made
        });
        let pool = environment.runtime.block_on(cluster::pool(&url));
        let [plain, ruled] = ["plain", "ruled"].map(|name| partners[name].clone());
        Self { size, binary: binary.map(Path::to_owned), url, pool, plain, ruled }
    }

    /// An edge over it.
    pub(crate) fn setup(&self) -> Setup {
        setup(&self.url, self.binary.as_deref())
    }

    /// The id of the partner without policies.
    pub(crate) fn client(&self) -> &str {
        self.plain["id"].as_str().expect("a partner has an id")
    }
}

/// The partners of a database that an earlier run has finished.
fn known(note: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(note).ok()?).ok()
}

/// Makes the database, and its partners as an operator would. Its binary migrates it.
async fn fill(admin: &str, size: Size, setup: &Setup) -> Value {
    eprintln!("making {}: {} clients, {} orders", size.name, size.clients, size.orders);
    db::recreate(admin, size.name).await.unwrap();
    migrate(setup);
    let edge = Edge::of(setup.clone()).await;
    // For the edges to come: one of an earlier version has migrated only now.
    prices::set(setup.database()).await;
    let pool = cluster::pool(setup.database()).await;
    let clients = include_str!("peers/clients.sql")
        .replace("@count@", &size.clients.to_string())
        .replace("@rate@", UNLIMITED);
    sqlx::raw_sql(AssertSqlSafe(clients)).execute(&pool).await.unwrap();
    let plain = partner(&edge, "plain").await;
    let ruled = partner(&edge, "ruled").await;
    for (kind, guest) in [("fee", "tiered-fee"), ("method-order", "country-order")] {
        let path = format!("/admin/v1/partners/ruled/policies/{kind}");
        edge.admin_bytes(Method::PUT, &path, component(guest)).await.assert_status(200);
    }
    if size.policies {
        sqlx::raw_sql(include_str!("peers/policies.sql")).execute(&pool).await.unwrap();
    }
    let client = plain["id"].as_str().expect("a partner has an id");
    load_orders(&pool, client, size.orders).await;
    sqlx::raw_sql("vacuum analyze").execute(&pool).await.unwrap();
    json!({ "plain": plain, "ruled": ruled })
}

/// Writes orders of one client. Their indexes are made once all are there, in place of being kept up to
/// date with each row.
async fn load_orders(pool: &PgPool, client: &str, count: u64) {
    let indexes: Vec<(String, String)> = sqlx::query_as(
        "select indexname::text, indexdef from pg_indexes where tablename = 'buy_order' \
             and indexname not in (select conname from pg_constraint)",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    let mut conn = pool.acquire().await.unwrap();
    let drops = indexes.iter().map(|(name, _)| format!("drop index {name}"));
    // The client is there: no foreign key need be looked up.
    let settings = ["set session_replication_role = replica", "set maintenance_work_mem = '1GB'"];
    let mut statements: Vec<_> = drops.chain(settings.map(str::to_owned)).collect();
    let mut first = FIRST_ORDER;
    while first < FIRST_ORDER + count {
        let last = (first + ORDERS_AT_ONCE).min(FIRST_ORDER + count) - 1;
        let statement = include_str!("peers/orders.sql")
            .replace("@client@", client)
            .replace("@first@", &first.to_string())
            .replace("@last@", &last.to_string());
        statements.push(statement);
        first = last + 1;
    }
    statements.extend(indexes.into_iter().map(|(_, definition)| definition));
    for statement in statements {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *conn).await.unwrap();
    }
    // With its settings.
    conn.close().await.unwrap();
}

/// Migrates the database with the edge's binary. One of an earlier version has no such command: it
/// migrates when it starts.
fn migrate(setup: &Setup) {
    let mut command = Command::new(setup.program());
    command.env_clear().arg("migrate").envs(setup.environment());
    let migrated = command.output().unwrap();
    let error = String::from_utf8_lossy(&migrated.stderr);
    assert!(migrated.status.success() || error.contains("unrecognized subcommand"), "{error}");
}

/// A test client whose rates nobody reaches; what the admin listener answered.
pub(crate) async fn partner(edge: &Edge, slug: &str) -> Value {
    let body = json!({"slug": slug, "name": slug, "mode": "test"});
    let made = edge.admin(Method::POST, "/admin/v1/partners", body).await;
    made.assert_status(201);
    let rates = json!({"rateLimits": {"client": UNLIMITED, "quotes": UNLIMITED}});
    let path = format!("/admin/v1/partners/{slug}");
    edge.admin(Method::PATCH, &path, rates).await.assert_status(200);
    made.json()
}

/// An edge as in production, but for its rates and its access log: no peer writes one either.
fn setup(database: &str, binary: Option<&Path>) -> Setup {
    let mut setup = Setup::over(database);
    if let Some(binary) = binary {
        setup.binary(binary);
    }
    let native_code = if binary.is_some() { "native-code-other" } else { "native-code" };
    for rate in ["ratelimit.login", "ratelimit.uploads"] {
        setup.set(rate, UNLIMITED);
    }
    setup.set("log.access", "false");
    setup.set("log.level", "warn");
    setup.set("database.connections_max", "16");
    setup.set("policy.cache_folder", folder().join(native_code).display().to_string());
    setup.start_within(START_TIME_MAX);
    if binary.is_some() {
        unset_unknown(&mut setup);
    }
    setup
}

/// Takes away the settings that the edge's binary does not know.
fn unset_unknown(setup: &mut Setup) {
    while let Some(unknown) = unknown_setting(setup) {
        let before = setup.environment().count();
        setup.unset_all(&unknown);
        assert!(setup.environment().count() < before, "{unknown} was not set");
    }
}

/// The first setting, or section, that the edge's binary does not know: one of an earlier version has
/// fewer. It reads its settings and ends, because it has no database.
fn unknown_setting(setup: &Setup) -> Option<String> {
    let mut command = Command::new(setup.program());
    let settings = setup.environment().filter(|(name, _)| name != "RAMPART__DATABASE__URL");
    let ended = command.env_clear().arg("serve").envs(settings).output().unwrap();
    let sentence = String::from_utf8_lossy(&ended.stderr);
    // Earlier versions put a name between backticks, later ones between quotes.
    let sentence = sentence.replace('`', "'");
    let (_, named) = ["unknown field '", "there is no setting '"]
        .iter()
        .find_map(|unknown| sentence.split_once(unknown))?;
    let name = named.split('\'').next()?;
    let section = sentence.split_once("in section '").and_then(|(_, it)| it.split('\'').next());
    Some(section.map_or(name.to_owned(), |section| format!("{section}.{name}")))
}
