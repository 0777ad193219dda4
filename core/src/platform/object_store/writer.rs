//! Writing of one object.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::{CHUNK_BYTES, HEADER_BYTES, chunk_context, failed};
use crate::platform::clock::Clock;
use crate::platform::crypto::DataKey;
use crate::platform::error::Result;

/// An unfinished object, sealed chunk by chunk. At most one chunk is in memory. Its key is stored
/// nowhere until the header is written, so a file left by a crash cannot be read. Dropping the
/// writer removes the file.
#[derive(Debug)]
pub(crate) struct ObjectWriter {
    id: Uuid,
    key: DataKey,
    file: File,
    path: PathBuf,
    pending: Vec<u8>,
    chunks: u64,
}

impl ObjectWriter {
    /// Creates a file that only this account may read, with space for the header.
    pub(super) fn create(clock: &Clock, id: Uuid, path: PathBuf) -> Result<Self> {
        let key = DataKey::random(clock)?;
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        let reserved = file.write_all(&[0; HEADER_BYTES]);
        let writer = Self { id, key, file, path, pending: Vec::new(), chunks: 0 };
        reserved.map_err(failed)?;
        Ok(writer)
    }

    pub(super) const fn id(&self) -> Uuid {
        self.id
    }

    pub(super) const fn key(&self) -> &DataKey {
        &self.key
    }

    /// Appends bytes. Blocks.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn push(&mut self, clock: &Clock, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.pending.len() == CHUNK_BYTES {
                self.seal(clock, false)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK_BYTES - self.pending.len()));
            self.pending.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Seals the last chunk and syncs the file. Blocks.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn finish(&mut self, clock: &Clock) -> Result<()> {
        self.seal(clock, true)?;
        self.pending = Vec::new();
        self.file.sync_all().map_err(failed)
    }

    fn seal(&mut self, clock: &Clock, last: bool) -> Result<()> {
        let sealed = self.key.seal(clock, &chunk_context(self.chunks, last), &self.pending)?;
        self.file.write_all(&sealed).map_err(failed)?;
        self.chunks += 1;
        self.pending.clear();
        Ok(())
    }

    /// Writes the header and renames the finished file.
    pub(super) fn complete(mut self, header: &[u8], path: &Path) -> io::Result<()> {
        self.file.write_all_at(header, 0)?;
        self.file.sync_all()?;
        fs::rename(&self.path, path)?;
        // The unfinished file is gone, so `drop` has nothing to remove.
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // A file that stays is swept later.
            let _ = fs::remove_file(&self.path);
        }
    }
}
