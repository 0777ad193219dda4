//! The cluster on disk: its creation, and the end of an orphaned server on it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::account::Account;
use super::installation::Installation;
use super::supervisor;
use super::{Profile, StartError, USER, random_hex};

/// Timeout of an orphan's shutdown per signal.
const ORPHAN_SECONDS: u32 = 20;

/// The folders and files of one cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    home: PathBuf,
    data: PathBuf,
}

impl Cluster {
    pub(super) fn new(home: &Path) -> Self {
        Self { home: home.to_path_buf(), data: home.join("cluster") }
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    pub(super) fn log(&self) -> PathBuf {
        self.home.join("postgres.log")
    }

    /// The major version of the cluster; `None` when there is no cluster yet.
    pub(super) fn version(&self) -> Option<u32> {
        fs::read_to_string(self.data.join("PG_VERSION")).ok()?.trim().parse().ok()
    }

    /// Creates the cluster unless it exists, and returns the superuser's password.
    ///
    /// It is created under a temporary name and renamed when complete, so that an existing cluster is
    /// always complete.
    pub(super) fn create(
        &self,
        installation: &Installation,
        account: Option<&Account>,
        profile: Profile,
    ) -> Result<String, StartError> {
        let secret = self.home.join("password");
        if self.version().is_some() {
            return fs::read_to_string(&secret).map_err(|e| StartError::io("read", &secret, &e));
        }
        let unfinished = self.home.join("cluster.unfinished");
        let password = random_hex::<16>()?;
        self.initdb(installation, account, profile, &unfinished, &password)?;
        write_secret(&secret, &password)?;
        fs::rename(&unfinished, &self.data)
            .map_err(|e| StartError::io("finish", &self.data, &e))?;
        Ok(password)
    }

    fn initdb(
        &self,
        installation: &Installation,
        account: Option<&Account>,
        profile: Profile,
        folder: &Path,
        password: &str,
    ) -> Result<(), StartError> {
        // initdb reads the password from a file that the server's account can open.
        let handed_over = self.home.join("password.initdb");
        remove(folder).map_err(|e| StartError::io("remove", folder, &e))?;
        DirBuilder::new()
            .mode(0o700)
            .create(folder)
            .map_err(|e| StartError::io("make the folder", folder, &e))?;
        write_secret(&handed_over, password)?;
        if let Some(account) = account {
            account.give(folder)?;
            account.give(&handed_over)?;
        }
        let mut command = Command::new(installation.program("initdb"));
        command.env_clear().env("LC_ALL", "C").current_dir("/").arg("-D").arg(folder);
        command.args(["-U", USER, "--encoding=UTF8", "--locale=C", "--no-instructions"]);
        command.args(["--auth-local=trust", "--auth-host=scram-sha-256"]);
        command.arg(format!("--pwfile={}", handed_over.display()));
        if matches!(profile, Profile::Test | Profile::Ephemeral) {
            command.arg("--no-sync");
        }
        if let Some(account) = account {
            account.apply(&mut command);
        }
        let output = command.output();
        remove(&handed_over).map_err(|e| StartError::io("remove", &handed_over, &e))?;
        let output = output.map_err(|e| StartError::new(format!("cannot run initdb: {e}")))?;
        if output.status.success() {
            return Ok(());
        }
        let output = String::from_utf8_lossy(&output.stderr);
        let last = output.lines().rfind(|line| line.contains("error") || line.contains("FATAL"));
        Err(StartError::new(format!(
            "initdb failed in {}: {}",
            folder.display(),
            last.unwrap_or("it gave no reason")
        )))
    }

    /// Ends an orphaned server of this cluster and waits for its exit. The caller holds the folder's
    /// lock, so a running server has lost its owner.
    ///
    /// A pid file with a reused process id, which is no server of this cluster, is removed: Postgres
    /// itself would refuse to start.
    pub(super) fn end_orphan(&self) -> Result<(), StartError> {
        let file = self.data.join("postmaster.pid");
        let Some(pid) = first_number(&file) else { return Ok(()) };
        if !alive(pid) {
            return Ok(());
        }
        if !self.is_server(pid) {
            return remove(&file).map_err(|e| StartError::io("remove", &file, &e));
        }
        for signal in [Signal::SIGINT, Signal::SIGQUIT] {
            match kill(pid, signal) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => return Err(self.not_ours(pid, error.desc())),
            }
            if supervisor::within(ORPHAN_SECONDS, || !alive(pid) || !self.is_server(pid)) {
                return Ok(());
            }
        }
        Err(self.not_ours(pid, "it does not stop"))
    }

    fn not_ours(&self, pid: Pid, why: &str) -> StartError {
        let data = self.data.display();
        StartError::new(format!("process {pid} serves {data} and cannot be ended: {why}"))
    }

    /// True if `pid` is a server of this cluster, by its arguments. Without `/proc` the pid file is
    /// trusted.
    fn is_server(&self, pid: Pid) -> bool {
        let data = self.data.as_os_str().as_encoded_bytes();
        match fs::read(format!("/proc/{pid}/cmdline")) {
            Ok(arguments) => arguments.split(|byte| *byte == 0).any(|argument| argument == data),
            Err(_) => !Path::new("/proc/self").exists(),
        }
    }

    /// True if the server that listens in `socket` accepts connections.
    pub(super) fn is_ready(&self, socket: &Path) -> bool {
        // Its lines: pid, data folder, start, port, socket folder, address, memory key, status.
        let text = fs::read_to_string(self.data.join("postmaster.pid")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        lines.get(4).is_some_and(|folder| Path::new(folder) == socket)
            && lines.get(7) == Some(&"ready")
    }
}

fn first_number(file: &Path) -> Option<Pid> {
    let text = fs::read_to_string(file).ok()?;
    let pid: i32 = text.lines().next()?.trim().parse().ok()?;
    (pid > 1).then(|| Pid::from_raw(pid))
}

fn alive(pid: Pid) -> bool {
    !matches!(kill(pid, None), Err(Errno::ESRCH))
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Replaces the file, readable by its owner alone.
fn write_secret(path: &Path, secret: &str) -> Result<(), StartError> {
    let written = remove(path).and_then(|()| {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        file.and_then(|mut file| file.write_all(secret.as_bytes()))
    });
    written.map_err(|e| StartError::io("write", path, &e))
}
