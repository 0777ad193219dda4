//! The server's process, and the shell that ends it when its owner has died.

use std::fs::{self, DirBuilder, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::account::Account;
use super::cluster::Cluster;
use super::installation::Installation;
use super::{Profile, StartError, random_hex};

/// Timeout until a server accepts connections, recovery after a power cut included.
pub(super) const READY_SECONDS: u32 = 60;

/// Timeout of a stop: the script's own 20 s and a margin.
const STOP_SECONDS: u32 = 25;

/// Polling interval for processes that provide no event.
const POLL: Duration = Duration::from_millis(10);

/// Messages of Postgres when another process has taken the port, or when the server of a killed
/// owner had not written its pid file yet when it was looked for.
const CONFLICTS: [&str; 2] =
    ["could not create any TCP/IP sockets", "lock file \"postmaster.pid\" already exists"];

/// The shell's script. `$1` is the socket's folder, `$2` the data to be removed after the server
/// ended or nothing, the rest the server's command line.
///
/// Standard input is the pipe from the owner; nothing is ever written to it, so `read` returns when
/// the owner has died. Then: fast shutdown, after 10 s immediate shutdown, after 10 s more SIGKILL.
/// The server does not inherit the pipe; the shell exits with the server.
const SCRIPT: &str = r#"
socket=$1
data=$2
shift 2
exec 3<&0
"$@" 3<&- </dev/null &
server=$!
{
    read -r owner <&3
    kill -INT "$server"
    sleep 10
    kill -QUIT "$server"
    sleep 10
    kill -KILL "$server"
} &
watch=$!
exec 3<&-
wait "$server"
status=$?
kill "$watch"
rm -rf "$socket" "$data"
exit "$status"
"#;

/// Settings of every private server. Failed statements are not logged, because they quote data.
const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "log_min_messages=log",
    "log_min_error_statement=panic",
    "log_error_verbosity=terse",
    "log_checkpoints=off",
    "logging_collector=off",
    "jit=off",
    "timezone=UTC",
];

const DURABLE: &[&str] = &["max_connections=200", "shared_buffers=128MB"];

const LARGE: &[&str] = &["max_connections=200"];
/// The part of the machine's memory for the pages of a large server, in percent: it has the machine for
/// itself, and pages are allocated on use.
const LARGE_BUFFERS_PERCENT: u64 = 60;

const FAST: &[&str] = &[
    "max_connections=500",
    "shared_buffers=64MB",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "autovacuum=off",
    "max_parallel_workers_per_gather=0",
];

/// Memory for the pages of a large server, in MiB.
fn large_buffers_mib() -> u64 {
    let machine = rustix::system::sysinfo();
    let bytes = machine.totalram.saturating_mul(u64::from(machine.mem_unit));
    bytes / 100 * LARGE_BUFFERS_PERCENT / (1024 * 1024)
}

/// A running server and its supervisor.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) shell: Child,
    port: u16,
    socket: PathBuf,
}

/// The reason a server did not start.
pub(super) enum SpawnError {
    /// Another process has the port or the cluster; another attempt may succeed.
    Conflict,
    Other(StartError),
}

impl From<StartError> for SpawnError {
    fn from(error: StartError) -> Self {
        Self::Other(error)
    }
}

impl Server {
    /// Starts a server on a free port and waits until it accepts connections.
    pub(super) fn spawn(
        installation: &Installation,
        cluster: &Cluster,
        account: Option<&Account>,
        profile: Profile,
    ) -> Result<Self, SpawnError> {
        let port = free_port()?;
        let socket = socket_folder(account)?;
        let log = cluster.log();
        let out = File::create(&log).map_err(|e| StartError::io("open", &log, &e))?;
        let errors = out.try_clone().map_err(|e| StartError::io("open", &log, &e))?;
        let mut command = Command::new("/bin/sh");
        let removed = if profile == Profile::Ephemeral { cluster.data() } else { Path::new("") };
        command.args(["-c", SCRIPT, "rampart-postgres"]).arg(&socket).arg(removed);
        command.arg(installation.program("postgres")).arg("-D").arg(cluster.data());
        command.arg("-k").arg(&socket).arg("-p").arg(port.to_string());
        let settings = match profile {
            Profile::Demo => DURABLE,
            Profile::Benchmark => LARGE,
            Profile::Test | Profile::Ephemeral => FAST,
        };
        command.args(SETTINGS.iter().chain(settings).flat_map(|setting| ["-c", setting]));
        if profile == Profile::Benchmark {
            command.arg("-c").arg(format!("shared_buffers={}MB", large_buffers_mib()));
        }
        command.env_clear().env("LC_ALL", "C").env("PATH", "/usr/bin:/bin").current_dir("/");
        command.stdin(Stdio::piped()).stdout(out).stderr(errors);
        // A separate process group: Ctrl-C in the terminal must reach the owner only, which drains.
        command.process_group(0);
        if let Some(account) = account {
            account.apply(&mut command);
        }
        let shell = command.spawn().map_err(|e| {
            remove_folder(&socket);
            StartError::new(format!("cannot run /bin/sh: {e}"))
        })?;
        let mut server = Self { shell, port, socket };
        server.await_ready(cluster)?;
        Ok(server)
    }

    fn await_ready(&mut self, cluster: &Cluster) -> Result<(), SpawnError> {
        let mut ended = None;
        let settled = within(READY_SECONDS, || {
            ended = self.ended();
            ended.is_some() || cluster.is_ready(&self.socket)
        });
        if settled && ended.is_none() {
            return Ok(());
        }
        self.stop();
        let log = fs::read_to_string(cluster.log()).unwrap_or_default();
        if CONFLICTS.iter().any(|sentence| log.contains(sentence)) {
            return Err(SpawnError::Conflict);
        }
        let why = log.lines().rfind(|line| line.contains("FATAL") || line.contains("PANIC"));
        let why = why.or(log.lines().next_back()).unwrap_or("it gave no reason");
        let file = cluster.log();
        Err(SpawnError::Other(StartError::new(match ended {
            Some(status) => format!("Postgres ended ({status}): {why} (see {})", file.display()),
            None => format!(
                "Postgres was not ready after {READY_SECONDS} s: {why} (see {})",
                file.display()
            ),
        })))
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.shell.try_wait().ok().flatten()
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Ends the server as the owner's death would, and waits for its exit.
    pub(super) fn stop(&mut self) {
        drop(self.shell.stdin.take());
        if !within(STOP_SECONDS, || self.ended().is_some()) {
            // The script has failed; the shell must not become a zombie.
            let _ = self.shell.kill();
            let _ = self.shell.wait();
        }
        remove_folder(&self.socket);
    }
}

/// Polls `done` every 10 ms for up to `seconds`; returns its last value.
#[expect(clippy::disallowed_methods, reason = "no thread serves meanwhile: start and stop block")]
pub(super) fn within(seconds: u32, mut done: impl FnMut() -> bool) -> bool {
    let looks = u128::from(seconds) * 1000 / POLL.as_millis();
    for _ in 0..looks {
        if done() {
            return true;
        }
        std::thread::sleep(POLL);
    }
    done()
}

/// A port that is probably free. Postgres cannot choose one itself.
fn free_port() -> Result<u16, StartError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address
        .map(|address| address.port())
        .map_err(|e| StartError::new(format!("no loopback port is free: {e}")))
}

/// Creates a folder that only the server's account (and root) can enter. In `/tmp` because a
/// socket's path is at most 107 bytes long, which a state folder may exceed.
fn socket_folder(account: Option<&Account>) -> Result<PathBuf, StartError> {
    let folder = PathBuf::from(format!("/tmp/rampart-{}", random_hex::<8>()?));
    let created = DirBuilder::new().mode(0o700).create(&folder);
    created.map_err(|e| StartError::io("make the folder", &folder, &e))?;
    if let Some(account) = account {
        account.give(&folder)?;
    }
    Ok(folder)
}

/// Removes the folder in case the shell was killed before its script did.
fn remove_folder(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}
