//! An object that is being written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::{HEAD_BYTES, PIECE_BYTES, failed, piece};
use crate::platform::clock::Clock;
use crate::platform::crypto::DataKey;
use crate::platform::error::Result;

/// An object that is being written, sealed piece by piece. At most one piece of it is in memory.
/// Its key is nowhere else until it has a head: what a crash leaves cannot be read. Dropping it
/// removes it.
#[derive(Debug)]
pub(crate) struct Part {
    id: Uuid,
    key: DataKey,
    file: File,
    path: PathBuf,
    pending: Vec<u8>,
    pieces: u64,
}

impl Part {
    /// A new file that nobody else may read, with room for the head.
    pub(super) fn create(clock: &Clock, id: Uuid, path: PathBuf) -> Result<Self> {
        let key = DataKey::random(clock)?;
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        let head = file.write_all(&[0; HEAD_BYTES]);
        let part = Self { id, key, file, path, pending: Vec::new(), pieces: 0 };
        head.map_err(failed)?;
        Ok(part)
    }

    pub(super) const fn id(&self) -> Uuid {
        self.id
    }

    pub(super) const fn key(&self) -> &DataKey {
        &self.key
    }

    /// Appends. Blocks.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn push(&mut self, clock: &Clock, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.pending.len() == PIECE_BYTES {
                self.seal(clock, false)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.pending.len()));
            self.pending.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Seals the last piece and waits until all of it is on the disk. Blocks.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn finish(&mut self, clock: &Clock) -> Result<()> {
        self.seal(clock, true)?;
        self.pending = Vec::new();
        self.file.sync_all().map_err(failed)
    }

    fn seal(&mut self, clock: &Clock, last: bool) -> Result<()> {
        let sealed = self.key.seal(clock, &piece(self.pieces, last), &self.pending)?;
        self.file.write_all(&sealed).map_err(failed)?;
        self.pieces += 1;
        self.pending.clear();
        Ok(())
    }

    /// Writes the head and gives the finished object its name.
    pub(super) fn complete(mut self, head: &[u8], path: &Path) -> io::Result<()> {
        self.file.write_all_at(head, 0)?;
        self.file.sync_all()?;
        fs::rename(&self.path, path)?;
        // Nothing is left to be removed.
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // What stays is swept later.
            let _ = fs::remove_file(&self.path);
        }
    }
}
