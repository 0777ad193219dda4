//! The units for systemd: read by systemd-analyze, and the messages and the hand-over they rely on.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Folder};
use rampart_tests::process::{Process, binary};

use crate::{read, root};

/// The units, with the most exposure that systemd-analyze may find, in tenths.
const UNITS: [(&str, &str); 2] = [("rampart.service", "20"), ("rampart-migrate.service", "15")];

/// Runs systemd-analyze and gives what it prints; what it finds fails the test.
fn analyze(arguments: &[&str]) -> String {
    let output = Command::new("systemd-analyze").args(arguments).output();
    let output = output.expect("`deploy/setup --test` installs systemd");
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert!(output.status.success(), "{arguments:?}: {printed}");
    printed
}

#[test]
fn the_units_are_valid_and_hardened() {
    let folder = Folder::make();
    for (unit, exposure) in UNITS {
        // It looks for the programs that a unit starts.
        let text = read(&format!("systemd/{unit}"));
        let text = text.replace("/usr/bin/rampart ", &format!("{} ", binary().display()));
        let hand_over = root().join("deploy/systemd/hand-over").display().to_string();
        let path = folder.path().join(unit);
        fs::write(&path, text.replace("/usr/lib/rampart/hand-over", &hand_over)).unwrap();
        let path = path.to_str().unwrap();
        let found = analyze(&["verify", "--man=no", path]);
        assert!(!found.contains(unit), "{found}");
        analyze(&["security", "--offline=true", &format!("--threshold={exposure}"), path]);
    }
}

/// A service manager's end of the messages.
struct Manager {
    socket: UnixDatagram,
    folder: Folder,
}

impl Manager {
    fn new() -> Self {
        let folder = Folder::make();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, folder }
    }

    /// Variables that it sets in the environment of a service.
    fn environment(&self) -> [String; 2] {
        let socket = self.folder.path().join("notify");
        [format!("NOTIFY_SOCKET={}", socket.display()), "WATCHDOG_USEC=200000".to_owned()]
    }

    /// The next message that is no pulse.
    async fn told(&self) -> String {
        until("the edge tells its manager", SOON, async || {
            self.message().filter(|message| !message.contains("WATCHDOG=1"))
        })
        .await
    }

    /// Waits for a pulse.
    async fn pulse(&self) {
        until("the edge has a pulse", SOON, async || {
            self.message().filter(|message| message.contains("WATCHDOG=1"))
        })
        .await;
    }

    fn message(&self) -> Option<String> {
        let mut message = [0; 512];
        let length = self.socket.recv(&mut message).ok()?;
        Some(String::from_utf8_lossy(&message[..length]).into_owned())
    }
}

fn ready(id: u32) -> String {
    format!("MAINPID={id}\nREADY=1\n")
}

#[tokio::test]
async fn the_manager_is_told_of_start_pulse_and_stop() {
    let manager = Manager::new();
    let [socket, watchdog] = manager.environment();
    let edge = Edge::with(|setup| _ = setup.under(&["env", &socket, &watchdog])).await;
    assert_eq!(manager.told().await, ready(edge.process.id()));
    manager.pulse().await;
    manager.pulse().await;
    edge.process.signal(Signal::SIGTERM);
    assert_eq!(manager.told().await, "STOPPING=1\n");
    assert_eq!(edge.process.ended().await.code(), Some(0));
}

/// The unit's hand-over, for the main process `main`, whose settings are in the environment.
fn hand_over(edge: &Edge, manager: &Manager, program: &Path) -> Process {
    let setup = edge.setup();
    fs::write(setup.folder().join("rampart.toml"), "").unwrap();
    let mut command = Command::new("env");
    command.args(manager.environment()).arg(root().join("deploy/systemd/hand-over"));
    command.env_clear().env("PATH", "/usr/bin:/bin").envs(setup.environment());
    command.env("MAINPID", edge.process.id().to_string()).env("RAMPART", program);
    command.env("RAMPART_CONFIG", "rampart.toml").current_dir(setup.folder());
    Process::spawn(command)
}

/// A process that no [`Process`] started. Dropping it ends it.
struct Successor(Pid);

impl Successor {
    fn id(&self) -> u32 {
        u32::try_from(self.0.as_raw()).unwrap()
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        // It has ended by itself where nothing failed.
        let _ = signal::kill(self.0, Signal::SIGKILL);
    }
}

#[tokio::test]
async fn a_reload_hands_over_to_a_new_main_process() {
    let manager = Manager::new();
    let [socket, watchdog] = manager.environment();
    let edge = Edge::with(|setup| _ = setup.under(&["env", &socket, &watchdog])).await;
    assert_eq!(manager.told().await, ready(edge.process.id()));

    let refused = hand_over(&edge, &manager, Path::new("/bin/false"));
    assert_eq!(refused.ended().await.code(), Some(1), "{:?}", refused.err());
    edge.ops("/readyz").await.assert_status(200);

    let reload = hand_over(&edge, &manager, &binary());
    let told = manager.told().await;
    let new = told.lines().find_map(|line| line.strip_prefix("MAINPID=")).unwrap();
    let new = Successor(Pid::from_raw(new.parse().unwrap()));
    assert_ne!(new.id(), edge.process.id());
    assert_eq!(told, ready(new.id()), "the old process says nothing");
    assert_eq!(edge.process.ended().await.code(), Some(0));
    edge.ops("/readyz").await.assert_status(200);
    manager.pulse().await;

    signal::kill(new.0, Signal::SIGTERM).unwrap();
    assert_eq!(manager.told().await, "STOPPING=1\n");
    // Its output ends with the new process, which holds the same pipe.
    assert_eq!(reload.ended().await.code(), Some(0));
}
