//! The state that must outlive the process: count of deposit addresses, blocks that were looked at; and
//! the locks that keep a key, and this state, to one process.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Name of the file in the state folder.
const FILE: &str = "deposits.json";

/// The state of deposits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct State {
    /// Index of the next address to be made.
    pub(crate) next_index: u32,
    /// Number of the next block to be looked at; `None` before the first.
    pub(crate) next_block: Option<u64>,
}

/// The file that holds it.
#[derive(Clone, Debug)]
pub(crate) struct StateFile(PathBuf);

impl StateFile {
    pub(crate) fn new(folder: &Path) -> Self {
        Self(folder.join(FILE))
    }

    /// The state; the first one without a file.
    ///
    /// # Errors
    /// When there is a file and it cannot be read.
    pub(crate) fn read(&self) -> io::Result<State> {
        match fs::read(&self.0) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(State::default()),
            Err(error) => Err(error),
        }
    }

    /// Writes the state whole, or not at all: it is on the disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written; the earlier one stands.
    pub(crate) fn write(&self, state: State) -> io::Result<()> {
        let fresh = self.0.with_extension("new");
        let mut file = File::create(&fresh)?;
        file.write_all(&serde_json::to_vec(&state)?)?;
        file.sync_all()?;
        fs::rename(&fresh, &self.0)?;
        let folder = self.0.parent().unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    }
}

/// Locks a file until the process ends, however it does. `what` is what it guards.
///
/// # Errors
/// One sentence, such as that another process holds it.
pub(crate) fn lock(folder: &Path, name: &str, what: &str) -> Result<File, String> {
    let path = folder.join(name);
    let wrong = |error: io::Error| format!("cannot lock {}: {error}", path.display());
    fs::create_dir_all(folder).map_err(wrong)?;
    let file = File::options().create(true).append(true).open(&path).map_err(wrong)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(format!("another process has {what}: it holds {}", path.display()))
        }
        Err(TryLockError::Error(error)) => Err(wrong(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_read_as_it_was_written() {
        let folder = std::env::temp_dir().join(format!("rampart-state-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = StateFile::new(&folder);
        assert_eq!(file.read().unwrap(), State::default());
        let state = State { next_index: 7, next_block: Some(9) };
        file.write(state).unwrap();
        assert_eq!(file.read().unwrap(), state);
        fs::write(folder.join(FILE), "{").unwrap();
        assert!(file.read().is_err(), "a broken file is not an empty one");
        fs::remove_dir_all(&folder).unwrap();
    }
}
