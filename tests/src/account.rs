//! The account of servers that refuse to run as root.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use nix::unistd::{User, geteuid};

/// Made by Debian's package of PostgreSQL.
const NAME: &str = "postgres";

/// An unprivileged account of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// The account of servers; `None` where this process is unprivileged itself.
    ///
    /// # Panics
    /// When root has no such account: `deploy/setup` installs PostgreSQL, which makes it.
    pub fn for_servers() -> Option<Self> {
        if !geteuid().is_root() {
            return None;
        }
        let user = User::from_name(NAME).unwrap().expect("`deploy/setup` installs PostgreSQL");
        Some(Self { uid: user.uid.as_raw(), gid: user.gid.as_raw() })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        NAME
    }

    /// Makes it the owner of a file or folder.
    pub fn own(&self, path: &Path) {
        chown(path, Some(self.uid), Some(self.gid)).unwrap();
    }

    /// Has it run a command. Root's supplementary groups are dropped.
    pub fn run(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }
}
