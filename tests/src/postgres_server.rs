//! A Postgres of its own, durable as in production, that is killed, stopped and started again
//! behind one address, over a [`Link`] that can break.

use std::fs::{self, DirBuilder};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use rampart_core::platform::private_postgres::{Options, PrivatePostgres, Profile};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};
use tokio::process::Command;
use tokio::sync::OnceCell;
use url::Url;

use crate::account::Account;
use crate::certificate::Certificate;
use crate::cluster::{self, postgres_programs};
use crate::deadline::{SOON, until};
use crate::link::Link;
use crate::process::remove_in_the_end;

/// Migrated; every database is a copy of it.
const TEMPLATE: &str = "rampart_template";

static NUMBER: AtomicU32 = AtomicU32::new(0);
/// Made by the first server of a process: initialising a cluster and migrating it takes seconds, copying
/// one a moment.
static PREPARED: OnceCell<Prepared> = OnceCell::const_new();

/// The server. Dropping it stops it and removes its data.
pub struct PostgresServer {
    /// The link that its URLs lead over.
    pub link: Link,
    /// Folder of its programs; `None`: they are searched for.
    programs: Option<PathBuf>,
    state: PathBuf,
    running: Mutex<Option<PrivatePostgres>>,
    databases: AtomicU32,
    /// Memory is not left to whoever removes temporary files.
    _removal: Child,
}

impl PostgresServer {
    /// A server in memory, where there is room: who ends its processes loses no more there than on a
    /// disk, and waits for none.
    pub async fn start() -> Self {
        Self::start_in(new_folder(&cluster::folder())).await
    }

    /// A server whose commits wait for a disk, as in production.
    pub async fn start_on_disk() -> Self {
        Self::start_in(new_folder(&std::env::temp_dir())).await
    }

    /// A server in this folder, which is made if it is missing.
    pub async fn start_in(state: PathBuf) -> Self {
        Self::start_of(postgres_programs(), state).await
    }

    /// The same of the programs in another folder, of the version that is found without it.
    pub async fn start_of(programs: Option<PathBuf>, state: PathBuf) -> Self {
        PREPARED.get_or_init(Prepared::make).await.copy_to(&state).await;
        let server = Self::over(programs, state).await;
        // In a folder that its account cannot reach it has made a cluster elsewhere.
        let elsewhere =
            server.with(|running| running.home() != fs::canonicalize(&server.state).unwrap());
        if elsewhere {
            make_template(&server.direct("postgres"), &server.direct(TEMPLATE)).await;
        }
        server
    }

    /// The server on the cluster in this folder.
    async fn over(programs: Option<PathBuf>, state: PathBuf) -> Self {
        let server = launch(programs.clone(), state.clone()).await;
        let link = Link::to(address(&server)).await;
        let (running, removal) = (Mutex::new(Some(server)), remove_in_the_end(&[&state]));
        let databases = AtomicU32::new(0);
        Self { link, programs, state, running, databases, _removal: removal }
    }

    /// A replica, which follows this server until either ends.
    pub async fn replica(&self) -> Self {
        let state = new_folder(&cluster::folder());
        let cluster = state.join("cluster");
        DirBuilder::new().recursive(true).mode(0o711).create(&state).unwrap();
        DirBuilder::new().mode(0o700).create(&cluster).unwrap();
        let program = Path::new("pg_basebackup");
        let program = postgres_programs().map_or(program.to_owned(), |bin| bin.join(program));
        let mut command = Command::new(program);
        command.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--dbname"]);
        command.arg(self.tcp_url("postgres")).arg("--pgdata").arg(&cluster).current_dir("/");
        if let Some(account) = Account::for_servers() {
            account.own(&cluster);
            account.run(command.as_std_mut());
        }
        let copied = command.output().await.unwrap();
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let home = self.with(|server| server.home().to_owned());
        fs::copy(home.join("password"), state.join("password")).unwrap();
        Self::over(self.programs.clone(), state).await
    }

    /// The name of a fresh, migrated database with prices.
    pub async fn database(&self) -> String {
        let name = format!("chaos_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let statement = format!("create database {name} template {TEMPLATE}");
        execute(&self.direct("postgres"), &statement).await;
        name
    }

    /// The URL of a database over the link: it stays the same whatever happens to the server.
    pub fn url(&self, database: &str) -> String {
        let mut url = Url::parse(&self.tcp_url(database)).unwrap();
        url.set_port(Some(self.link.address().port())).unwrap();
        url.set_query(Some("sslmode=disable"));
        url.into()
    }

    /// A look at a database that does not go over the link.
    pub async fn pool(&self, database: &str) -> PgPool {
        cluster::pool(&self.direct(database)).await
    }

    /// From soon on it offers TLS, with this certificate.
    pub async fn offer_tls(&self, certificate: &Certificate) {
        let url = self.direct("postgres");
        for (file, pem) in
            [("server.crt", certificate.pem()), ("server.key", certificate.key_pem())]
        {
            let lines: Vec<_> = pem.lines().map(|line| format!("('{line}')")).collect();
            // The server takes a key only if nobody but its own account may read it.
            let program = format!("umask 077; cat > {file}");
            let statement = format!("copy (values {}) to program '{program}'", lines.join(", "));
            execute(&url, &statement).await;
        }
        execute(&url, "alter system set ssl = on").await;
        execute(&url, "select pg_reload_conf()").await;
    }

    /// Sends SIGKILL to every process of the server.
    pub fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Sends a signal to every process of the server: SIGSTOP hangs it, SIGCONT goes on.
    pub fn signal(&self, signal: Signal) {
        for process in self.processes() {
            // One that has just ended needs no signal.
            let _ = signal::kill(process, signal);
        }
    }

    /// Starts the server again after it was killed, and leads the link to it.
    pub async fn restart(&self) {
        let before = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        tokio::task::spawn_blocking(move || drop(before)).await.unwrap();
        let server = launch(self.programs.clone(), self.state.clone()).await;
        self.link.lead_to(address(&server));
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
    }

    fn with<T>(&self, look: impl FnOnce(&PrivatePostgres) -> T) -> T {
        look(self.running.lock().unwrap_or_else(PoisonError::into_inner).as_ref().unwrap())
    }

    /// The URL of a database that does not lead over the link.
    pub fn tcp_url(&self, database: &str) -> String {
        self.with(|server| server.tcp_url(database))
    }

    fn direct(&self, database: &str) -> String {
        self.with(|server| server.url(database))
    }

    /// The folder of its cluster, in which its processes work.
    pub fn cluster_folder(&self) -> PathBuf {
        self.with(|server| server.home().join("cluster"))
    }

    /// Its log since it was started.
    pub fn log(&self) -> String {
        fs::read_to_string(self.with(|server| server.home().join("postgres.log"))).unwrap()
    }

    /// The postmaster and its children.
    fn processes(&self) -> Vec<Pid> {
        let file = self.cluster_folder().join("postmaster.pid");
        let text = fs::read_to_string(file).unwrap_or_default();
        let Some(postmaster) = text.lines().next().and_then(|line| line.trim().parse().ok()) else {
            return Vec::new();
        };
        let children = fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children"));
        let children = children.unwrap_or_default();
        let numbers = children.split_whitespace().filter_map(|number| number.parse().ok());
        std::iter::once(postmaster).chain(numbers).map(Pid::from_raw).collect()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let home = self.with(|server| server.home().to_owned());
        self.kill();
        drop(self.running.lock().unwrap_or_else(PoisonError::into_inner).take());
        remove(&home);
        remove(&self.state);
    }
}

/// A cluster with the template that no server runs on. It goes with the process.
struct Prepared {
    home: PathBuf,
    _removal: Child,
}

impl Prepared {
    async fn make() -> Self {
        let state = new_folder(&cluster::folder());
        let server = launch(postgres_programs(), state.clone()).await;
        let home = server.home().to_owned();
        let removal = remove_in_the_end(&[&state, &home]);
        make_template(&server.url("postgres"), &server.url(TEMPLATE)).await;
        tokio::task::spawn_blocking(move || drop(server)).await.unwrap();
        Self { home, _removal: removal }
    }

    /// Copies the cluster and its password into a folder, which is made if it is missing.
    async fn copy_to(&self, state: &Path) {
        DirBuilder::new().recursive(true).mode(0o711).create(state).unwrap();
        let mut command = Command::new("cp");
        command.arg("--archive").args(["cluster", "password"].map(|name| self.home.join(name)));
        let copied = command.arg(state).output().await.unwrap();
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    }
}

/// Makes the template in the server of these URLs.
async fn make_template(server: &str, template: &str) {
    execute(server, &format!("create database {TEMPLATE}")).await;
    cluster::migrate(template).await;
}

async fn execute(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// A folder in this one that nothing is in yet.
fn new_folder(place: &Path) -> PathBuf {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    place.join(format!("rampart-postgres-{}-{number}", std::process::id()))
}

/// Removes a folder; what stays among temporary files does no harm.
fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}

/// Starts a server on the cluster in a folder. A process of one that was killed a moment ago may still
/// hold its memory.
async fn launch(programs: Option<PathBuf>, state: PathBuf) -> PrivatePostgres {
    until("the processes of the server before have ended", SOON, async || {
        let (state, bin) = (state.clone(), programs.clone());
        let options = Options { state, bin, profile: Profile::Demo };
        let started = tokio::task::spawn_blocking(move || PrivatePostgres::start(options)).await;
        match started.unwrap() {
            Err(error) if error.to_string().contains("shared memory block") => None,
            started => Some(started.unwrap()),
        }
    })
    .await
}

fn address(server: &PrivatePostgres) -> SocketAddr {
    let url = Url::parse(&server.tcp_url("postgres")).unwrap();
    SocketAddr::from(([127, 0, 0, 1], url.port().unwrap()))
}
