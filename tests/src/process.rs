//! Processes beside this one: the binary, which ends with it whatever happens, and a shell that
//! then removes folders.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::deadline::{SOON, until};

/// The guard's script: kills process `$1` once its standard input is at its end, which the kernel
/// sees to when this process is gone.
const GUARD: &str = r#"read -r line; kill -KILL "$1" 2>/dev/null"#;

/// The binary as cargo built it: beside the folder of the test that runs, of the same profile. With
/// `RAMPART_TEST_BINARY` set, that one.
///
/// # Panics
/// When it was not built: no `cargo test` does so.
#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
pub fn binary() -> PathBuf {
    if let Some(binary) = std::env::var_os("RAMPART_TEST_BINARY") {
        return binary.into();
    }
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).unwrap();
    let binary = profile.join("rampart");
    assert!(
        binary.is_file(),
        "{} is missing: run `cargo build --bin rampart` first",
        binary.display()
    );
    binary
}

/// A shell that removes these folders when this process has ended, however it does.
pub(crate) fn remove_in_the_end(folders: &[&Path]) -> Child {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "read -r end; exec rm -rf \"$@\"", "remove"]).args(folders);
    // In a group of its own: an interrupt from the terminal is for this process.
    shell.process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A running process. Dropping it ends it at once.
pub struct Process {
    child: Mutex<Child>,
    guard: Child,
    /// Open as long as the guard has nothing to do.
    _open: Option<ChildStdin>,
    out: Lines,
    err: Lines,
}

impl Process {
    /// Runs `command` without an environment but the one it sets, and gathers what it prints.
    pub fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "guard", &child.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let open = guard.stdin.take();
        let out = Lines::of(child.stdout.take().unwrap());
        let err = Lines::of(child.stderr.take().unwrap());
        Self { child: Mutex::new(child), guard, _open: open, out, err }
    }

    /// Lines of standard output so far.
    pub fn out(&self) -> Vec<String> {
        self.out.so_far()
    }

    /// Lines of standard error so far.
    pub fn err(&self) -> Vec<String> {
        self.err.so_far()
    }

    /// The rest of the first line of standard output that begins with `start`, once it is there.
    pub async fn prints(&self, start: &str) -> String {
        until(&format!("it prints {start:?}"), SOON * 4, async || {
            assert!(self.status().is_none(), "it has ended: {:?}", self.err());
            self.out().iter().find_map(|line| Some(line.strip_prefix(start)?.to_owned()))
        })
        .await
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child().id()
    }

    /// Files that it has open.
    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.id())).unwrap().count()
    }

    /// Its limit of them.
    pub fn open_files_max(&self) -> String {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.id())).unwrap();
        let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
        files.split_whitespace().next().unwrap().to_owned()
    }

    /// Sets that limit from outside; the hard one stays.
    pub fn set_open_files_max(&self, limit: &str) {
        let mut command = Command::new("prlimit");
        command.args(["--pid", &self.id().to_string(), &format!("--nofile={limit}:")]);
        assert!(command.status().unwrap().success(), "prlimit of util-linux sets the limit");
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child().id()).unwrap();
        signal::kill(Pid::from_raw(id), signal).unwrap();
    }

    /// Sends SIGKILL and waits until the process is gone.
    pub fn kill(&self) {
        let mut child = self.child();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// The status, once the process has ended.
    pub fn status(&self) -> Option<ExitStatus> {
        self.child().try_wait().unwrap()
    }

    /// Waits until the process has ended and everything that it printed was read.
    pub async fn ended(&self) -> ExitStatus {
        self.ended_within(SOON * 2).await
    }

    /// The same for a process that has much to do.
    pub async fn ended_within(&self, time: Duration) -> ExitStatus {
        until("the process ends", time, async || {
            self.status().filter(|_| self.out.is_whole() && self.err.is_whole())
        })
        .await
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The guard first: afterwards the number may belong to somebody else. It is gone already
        // at worst, and so is the process.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        let mut child = self.child();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Lines that a thread of its own reads, so that nobody who prints ever waits.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<(Vec<String>, bool)>>);

impl Lines {
    fn of(from: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let reader = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                reader.lock().0.push(line);
            }
            reader.lock().1 = true;
        });
        lines
    }

    fn lock(&self) -> MutexGuard<'_, (Vec<String>, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn so_far(&self) -> Vec<String> {
        self.lock().0.clone()
    }

    fn is_whole(&self) -> bool {
        self.lock().1
    }
}
