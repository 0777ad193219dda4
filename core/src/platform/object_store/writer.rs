//! Writing of one object.

use std::env::temp_dir;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::format::{CHUNK_BYTES, HEADER_BYTES, SEALED_BYTES_MAX, chunk_context, failed};
use crate::platform::clock::Clock;
use crate::platform::crypto::DataKey;
use crate::platform::error::{Error, Result};

/// An unfinished object, sealed chunk by chunk. At most one chunk is in memory. Its key is stored
/// nowhere until the header is written, so a file left by a crash cannot be read. Dropping the
/// writer removes the file, if it has a name.
#[derive(Debug)]
pub(crate) struct ObjectWriter {
    id: Uuid,
    key: DataKey,
    file: File,
    /// Name of the file; `None` if it has none, and so ends with its writer.
    path: Option<PathBuf>,
    pending: Vec<u8>,
    chunks: u64,
}

impl ObjectWriter {
    /// Creates a file that only this account may read, with space for the header.
    pub(super) fn create(clock: &Clock, id: Uuid, path: PathBuf) -> Result<Self> {
        let key = DataKey::random(clock)?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let mut file = options.open(&path).map_err(failed)?;
        let reserved = file.write_all(&[0; HEADER_BYTES]);
        let writer = Self { id, key, file, path: Some(path), pending: Vec::new(), chunks: 0 };
        reserved.map_err(failed)?;
        Ok(writer)
    }

    /// The same in the system's folder for temporary files, without a name: nothing is left of it
    /// when this process ends.
    pub(super) fn create_unnamed(clock: &Clock, id: Uuid) -> Result<Self> {
        let mut writer = Self::create(clock, id, temp_dir().join(format!("rampart-{id}")))?;
        let path = writer.path.take();
        path.map_or(Ok(()), fs::remove_file).map_err(failed)?;
        Ok(writer)
    }

    pub(crate) const fn id(&self) -> Uuid {
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
        match self.path {
            Some(_) => self.file.sync_all().map_err(failed),
            None => Ok(()),
        }
    }

    /// Length of the sealed object so far, in bytes.
    pub(super) fn length(&self) -> Result<usize> {
        let length = usize::try_from(self.file.metadata().map_err(failed)?.len());
        let length = length.ok().filter(|length| *length <= SEALED_BYTES_MAX);
        length.ok_or_else(|| Error::invariant("store a document: it is too long"))
    }

    /// Reads the finished object with this header. Blocks.
    pub(super) fn sealed(&self, header: &[u8]) -> Result<Vec<u8>> {
        self.file.write_all_at(header, 0).map_err(failed)?;
        let mut sealed = vec![0; self.length()?];
        self.file.read_exact_at(&mut sealed, 0).map_err(failed)?;
        Ok(sealed)
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
        // Once it is renamed, `drop` has nothing to remove.
        match &self.path {
            Some(unfinished) => fs::rename(unfinished, path)?,
            None => return Err(io::ErrorKind::NotFound.into()),
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that stays is swept later.
            let _ = fs::remove_file(path);
        }
    }
}
