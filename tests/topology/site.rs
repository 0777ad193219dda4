//! The folder of a run, and the processes in it.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use rampart_tests::account::Account;
use rampart_tests::cluster;
use rampart_tests::process::Process;

/// Kills everything that works in a folder below `$1` and removes `$1`, once its standard input is at its
/// end: this process is gone. Servers that Patroni leaves behind have no other guard.
const GUARD: &str = r#"read -r line
for round in 1 2 3; do
    for entry in /proc/[0-9]*; do
        case "$(readlink "$entry/cwd")" in
            "$1"/*) kill -KILL "${entry#/proc/}" ;;
        esac
    done
    sleep 1
done
rm -rf "$1""#;

/// A folder of this run's own. Dropping it ends what works in it and removes it.
pub(crate) struct Site {
    folder: PathBuf,
    account: Option<Account>,
    guard: Child,
    /// Open as long as the guard has nothing to do.
    _open: Option<ChildStdin>,
}

impl Site {
    /// A new one, in memory where there is room.
    pub(crate) fn make() -> Self {
        let name = format!("rampart-topology-{}", std::process::id());
        let folder = cluster::folder().join(name);
        // Servers of another account go through it.
        DirBuilder::new().mode(0o711).create(&folder).unwrap();
        let mut guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "guard"])
            .arg(&folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let open = guard.stdin.take();
        Self { folder, account: Account::for_servers(), guard, _open: open }
    }

    /// A folder for one server, which its account alone enters.
    pub(crate) fn room(&self, name: &str) -> PathBuf {
        let room = self.folder.join(name);
        DirBuilder::new().mode(0o700).create(&room).unwrap();
        self.give(&room);
        room
    }

    /// A file of a server.
    pub(crate) fn write(&self, path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        self.give(path);
    }

    fn give(&self, path: &Path) {
        if let Some(account) = &self.account {
            account.own(path);
        }
    }

    /// Runs a server in its room, under the account of servers.
    pub(crate) fn run(&self, room: &Path, mut command: Command) -> Process {
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
        command.current_dir(room);
        if let Some(account) = &self.account {
            account.run(&mut command);
        }
        Process::spawn(command)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        kill_below(&self.folder);
        // It would do the same again. What stays in the folder does no harm.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Sends SIGKILL to everything that works in this folder, until nothing is left.
pub(crate) fn kill_below(folder: &Path) {
    loop {
        let processes = processes(folder);
        if processes.is_empty() {
            return;
        }
        for process in processes {
            // One that has just ended needs no signal.
            let _ = signal::kill(process, Signal::SIGKILL);
        }
    }
}

fn processes(folder: &Path) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let working = entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        // One that has ended, or is another user's, shows none.
        let works_in = fs::read_link(entry.path().join("cwd")).ok()?;
        works_in.starts_with(folder).then(|| Pid::from_raw(number))
    });
    working.collect()
}
