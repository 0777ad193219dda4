//! PgBouncer in transaction mode, in front of the tests' Postgres.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};

use crate::account::Account;
use crate::deadline::{SOON, until};
use crate::edge::Folder;
use crate::process::Process;

/// The number in the socket's name. The socket is in a folder of its own: nobody else has it.
const PORT: u16 = 6432;

/// Seconds until it tries a server again that it could not reach; by itself it waits for 15.
const LOGIN_RETRY_SECONDS: u32 = 1;

/// Seconds until it closes a connection to the server that nobody uses; by itself it waits for 600,
/// and the databases of tests that are over would keep theirs.
const SERVER_IDLE_SECONDS: u32 = 2;

/// A running PgBouncer. Dropping it ends it.
pub struct PgBouncer {
    process: Process,
    folder: Folder,
    /// Of every user; empty where they are trusted.
    password: String,
}

impl PgBouncer {
    /// Starts one in front of the server that listens in the folder `socket` on `port`, with
    /// `servers` connections to it for each database and user.
    ///
    /// # Panics
    /// When it is not installed: `deploy/setup --test` does so.
    pub async fn start(socket: &str, port: &str, servers: u32) -> Self {
        Self::over(&format!("host={socket} port={port}"), "", servers).await
    }

    /// The same in front of a server at this address of loopback, where every user has this password.
    ///
    /// # Panics
    /// As [`PgBouncer::start`].
    pub async fn before(server: SocketAddr, password: &str, servers: u32) -> Self {
        let place = format!("host={} port={}", server.ip(), server.port());
        Self::over(&place, password, servers).await
    }

    async fn over(server: &str, password: &str, servers: u32) -> Self {
        let folder = Folder::make();
        // It refuses to run as root, and must enter the folder as somebody else.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let users = folder.path().join("users.txt");
        let names = ["rampart", "rampart_edge", "rampart_worker"];
        let lines = names.map(|name| format!("\"{name}\" \"{password}\"\n"));
        fs::write(&users, lines.concat()).unwrap();
        let how = if password.is_empty() { "trust" } else { "scram-sha-256" };
        let settings = folder.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = {server}\n\
             [pgbouncer]\npool_mode = transaction\nlisten_addr =\nlisten_port = {PORT}\n\
             unix_socket_dir = {folder}\nauth_type = {how}\nauth_file = {users}\n\
             server_login_retry = {LOGIN_RETRY_SECONDS}\n\
             server_idle_timeout = {SERVER_IDLE_SECONDS}\n\
             default_pool_size = {servers}\nmax_client_conn = 2000\nlogfile = {folder}/log\n",
            folder = folder.path().display(),
            users = users.display(),
        );
        fs::write(&settings, text).unwrap();
        let mut command = Command::new(program());
        if let Some(account) = Account::for_servers() {
            // Nobody else may read the password.
            account.own(&users);
            command.args(["-u", account.name()]);
        }
        fs::set_permissions(&users, fs::Permissions::from_mode(0o600)).unwrap();
        command.arg(&settings);
        let process = Process::spawn(command);
        let pooler = Self { process, folder, password: password.to_owned() };
        let url = pooler.url("rampart", "postgres");
        until("PgBouncer answers", SOON, async || {
            assert!(pooler.process.status().is_none(), "{:?}", pooler.process.err());
            connect(&url).await.ok()
        })
        .await;
        pooler
    }

    /// A URL of `database` through it.
    pub fn url(&self, user: &str, database: &str) -> String {
        let folder = self.folder.path().display();
        let password = &self.password;
        format!("postgres://{user}:{password}@localhost:{PORT}/{database}?host={folder}")
    }
}

/// A connection through a pooler, which does not know what sqlx asks for by itself.
///
/// # Errors
/// When it cannot be made.
pub async fn connect(url: &str) -> Result<PgConnection, sqlx::Error> {
    let options: PgConnectOptions = url.parse()?;
    PgConnection::connect_with(&options.extra_float_digits(None)).await
}

/// The program; Debian has it in a folder that not everybody searches.
fn program() -> PathBuf {
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/bin"];
    let mut programs = folders.iter().map(|folder| Path::new(folder).join("pgbouncer"));
    programs.find(|program| program.is_file()).expect("`deploy/setup --test` installs PgBouncer")
}
