//! A private Postgres server: created in a folder, started and stopped with this process.
//!
//! `rampart demo` and the tests use it; production configures a server in `database.url`.
//!
//! The server ends soon after its owner, even if the owner is killed. Its parent is a small shell
//! that holds the reading end of a pipe whose only writing end is here.
//! The kernel closes that end when this process ends, also by SIGKILL, and the shell then stops the
//! server. A parent-death signal would be shorter but belongs to the *thread* that started the
//! child, and threads of a test end early.

mod account;
mod cluster;
mod installation;
mod supervisor;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use account::Account;
use cluster::Cluster;
use installation::Installation;
use supervisor::{Server, SpawnError};

use crate::platform::clock::Clock;
use crate::platform::crypto::sha256;

/// The superuser, and the owner of everything in the cluster.
const USER: &str = "rampart";

/// Attempts of a start when the port or the cluster turns out not to be free.
const ATTEMPTS: u32 = 8;

/// Folder of root's clusters when the unprivileged account cannot reach the state folder.
const REACHABLE_HOME: &str = "/var/lib/rampart";

/// The durability and size of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Durable, as in production: an acknowledged commit survives a power cut.
    Demo,
    /// As `Demo`, with memory for some millions of orders, like a dedicated server.
    Benchmark,
    /// Fast and small: data survive the death of this process, not that of the machine.
    Test,
    /// As `Test`, and its data are removed when this process ends, even if it is killed.
    Ephemeral,
}

/// Options of a private server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster's folder; created if missing, reused if it holds a cluster.
    pub state: PathBuf,
    /// The folder with `postgres` and `initdb` (`RAMPART_PG_BIN`); searched for when `None`.
    pub bin: Option<PathBuf>,
    /// Durability and size.
    pub profile: Profile,
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct PrivatePostgres {
    server: Server,
    cluster: Cluster,
    password: String,
    /// Held for as long as the server runs: one process per folder.
    lock: File,
}

impl PrivatePostgres {
    /// Starts a server on the cluster in `options.state`, which is created if missing.
    /// Blocks for about two seconds the first time and a fraction of one later; at most
    /// 60 s plus the time that `initdb` takes.
    ///
    /// Started by root, the server runs as `postgres`, or else `nobody`. Where that account cannot
    /// reach the state folder, the cluster lives in a folder of its own below `/var/lib/rampart`.
    ///
    /// # Errors
    /// One sentence that names the cause and its location.
    pub fn start(options: Options) -> Result<Self, StartError> {
        let account = Account::for_server()?;
        let home = home(&options.state, account.as_ref())?;
        let lock = lock(&home)?;
        let cluster = Cluster::new(&home);
        let installation = Installation::find(options.bin.as_deref(), cluster.version())?;
        let password = cluster.create(&installation, account.as_ref(), options.profile)?;
        let server = start_server(&installation, &cluster, account.as_ref(), options.profile)?;
        Ok(Self { server, cluster, password, lock })
    }

    /// A URL of `database` over the Unix socket, for processes of this account or root.
    /// The socket requires no password: its folder is closed to all other accounts.
    pub fn url(&self, database: &str) -> String {
        let (port, socket) = (self.server.port(), self.server.socket().display());
        format!("postgres://{USER}@localhost:{port}/{database}?host={socket}")
    }

    /// A URL of `database` over loopback TCP, with the password.
    pub fn tcp_url(&self, database: &str) -> String {
        let port = self.server.port();
        format!("postgres://{USER}:{}@127.0.0.1:{port}/{database}", self.password)
    }

    /// The folder that holds the cluster and the server's log.
    pub fn home(&self) -> &Path {
        self.cluster.home()
    }

    /// Stops the server: connections end, committed data stay. Dropping does the same.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        self.server.stop();
        // A server is left only if the supervisor was killed.
        if let Err(error) = self.cluster.end_orphan() {
            tracing::warn!(%error, "the private Postgres did not stop");
        }
        // A forked child that has not called exec yet holds a copy of every open file: closing the
        // lock file would not free the folder, unlocking it does.
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, "the private Postgres keeps its folder until the process ends");
        }
    }
}

/// The reason the server could not start: one sentence.
#[derive(Debug, Clone)]
pub struct StartError(String);

impl StartError {
    fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    fn io(what: &str, path: &Path, error: &io::Error) -> Self {
        Self(format!("cannot {what} {}: {error}", path.display()))
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// The cluster's folder: the state folder, or one that the server's account can reach.
fn home(state: &Path, account: Option<&Account>) -> Result<PathBuf, StartError> {
    create_folder(state)?;
    let state = fs::canonicalize(state).map_err(|e| StartError::io("open", state, &e))?;
    if account.is_none_or(|account| account.reaches(&state)) {
        return Ok(state);
    }
    let digest = sha256(state.as_os_str().as_encoded_bytes());
    let home = Path::new(REACHABLE_HOME).join(hex::encode(&digest[..8]));
    create_folder(&home)?;
    Ok(home)
}

/// Creates a folder that others can traverse but not list; the server's account owns its content.
fn create_folder(path: &Path) -> Result<(), StartError> {
    let created = DirBuilder::new().recursive(true).mode(0o711).create(path);
    created.map_err(|e| StartError::io("make the folder", path, &e))
}

fn lock(home: &Path) -> Result<File, StartError> {
    let path = home.join("lock");
    let file = File::create(&path).map_err(|e| StartError::io("open", &path, &e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StartError::new(format!(
            "the private Postgres in {} belongs to another running process",
            home.display()
        ))),
        Err(TryLockError::Error(e)) => Err(StartError::io("lock", &path, &e)),
    }
}

fn start_server(
    installation: &Installation,
    cluster: &Cluster,
    account: Option<&Account>,
    profile: Profile,
) -> Result<Server, StartError> {
    for _ in 0..ATTEMPTS {
        cluster.end_orphan()?;
        match Server::spawn(installation, cluster, account, profile) {
            Ok(server) => return Ok(server),
            Err(SpawnError::Conflict) => {}
            Err(SpawnError::Other(error)) => return Err(error),
        }
    }
    Err(StartError::new(format!("others took the port or the cluster {ATTEMPTS} times")))
}

/// A random hexadecimal name, two digits per byte.
fn random_hex<const N: usize>() -> Result<String, StartError> {
    let bytes = Clock::system().random_bytes::<N>();
    let bytes = bytes.map_err(|e| StartError::new(e.to_string()))?;
    Ok(hex::encode(bytes))
}
