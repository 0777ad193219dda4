//! The account of the server's process: Postgres refuses to run as root.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::{User, geteuid};

use super::StartError;

/// Candidates in order. Debian's package creates the first; the second exists everywhere.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// An unprivileged account of this machine.
#[derive(Debug)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// The account to switch to, or `None` when this process is unprivileged already.
    pub(super) fn for_server() -> Result<Option<Self>, StartError> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        for name in CANDIDATES {
            if let Ok(Some(user)) = User::from_name(name) {
                return Ok(Some(Self { uid: user.uid.as_raw(), gid: user.gid.as_raw() }));
            }
        }
        let [first, second] = CANDIDATES;
        Err(StartError::new(format!(
            "Postgres does not run as root, and there is neither an account {first} nor {second}"
        )))
    }

    /// True if this account may traverse every folder on the path, including `path` itself.
    pub(super) fn reaches(&self, path: &Path) -> bool {
        path.ancestors().all(|folder| fs::metadata(folder).is_ok_and(|data| self.enters(&data)))
    }

    fn enters(&self, folder: &fs::Metadata) -> bool {
        let bit = if folder.uid() == self.uid {
            0o100
        } else if folder.gid() == self.gid {
            0o010
        } else {
            0o001
        };
        folder.mode() & bit != 0
    }

    /// Makes the account the owner of `path`.
    pub(super) fn give(&self, path: &Path) -> Result<(), StartError> {
        chown(path, Some(self.uid), Some(self.gid))
            .map_err(|e| StartError::io("change the owner of", path, &e))
    }

    /// Makes `command` run as this account. The standard library drops root's supplementary groups too.
    pub(super) fn apply(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }
}
