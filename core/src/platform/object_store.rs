//! The object store of documents and proofs: a folder of sealed objects.
//!
//! Every object has its own key, so that it can be sealed while it arrives, before its user is known
//! ([`ObjectWriter`]). The object's header holds that key, sealed with the user's key: without the
//! user's key the object cannot be read. Chunks follow, each sealed with its number and a flag for
//! the last one: none can be removed, added or moved.
//!
//! Edges that share a database must share the folder.

mod removal;
mod writer;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

pub(crate) use self::removal::remove_later;
pub(crate) use self::writer::ObjectWriter;
use crate::platform::clock::Clock;
use crate::platform::crypto::DataKey;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::error::{Error, Result};
use crate::platform::settings;

/// Default of `documents.folder`, relative to the working folder.
const FOLDER: &str = "documents";
/// Plaintext bytes of a chunk.
const CHUNK_BYTES: usize = 64 * 1024;
/// Overhead of sealing: nonce and tag.
const SEAL_BYTES: usize = 12 + 16;
/// Length of the header: the sealed key of the object.
const HEADER_BYTES: usize = crate::platform::crypto::KEY_BYTES + SEAL_BYTES;
/// Largest object, in bytes: that of the largest request body.
pub(crate) const OBJECT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// File extension of an unfinished object.
const UNFINISHED: &str = "part";
/// Age since the last write above which an unfinished file is removed: its edge has died. A body
/// slower than 1 kB/s is refused, so a chunk takes about a minute at most.
const ABANDONED: Duration = Duration::from_secs(3_600);

/// The store of sealed objects.
#[derive(Clone, Debug)]
pub struct DocumentStore {
    folder: PathBuf,
}

impl DocumentStore {
    /// A store in the configured folder, by default [`FOLDER`]. It is created with the first object.
    pub fn new(settings: &settings::Documents) -> Self {
        Self { folder: settings.folder.clone().unwrap_or_else(|| FOLDER.into()) }
    }

    /// Opens a writer for a new object. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(crate) fn create(&self, clock: &Clock) -> Result<ObjectWriter> {
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let id = clock.uuid()?;
        ObjectWriter::create(clock, id, self.path(id).with_extension(UNFINISHED))
    }

    /// The header of an object, which makes it readable with the user's key.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn header(
        clock: &Clock,
        personal_key: &PersonalDataKey,
        object: &ObjectWriter,
    ) -> Result<Vec<u8>> {
        personal_key.seal_key(clock, &location(object.id()), object.key())
    }

    /// Stores a finished object with its header, atomically. It is removed again unless
    /// [`StoredObject::retain`] is called. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(crate) fn store(&self, object: ObjectWriter, header: &[u8]) -> Result<StoredObject> {
        let path = self.path(object.id());
        let id = object.id();
        object.complete(header, &path).map_err(failed)?;
        let stored = StoredObject { id, path, retained: false };
        // A rename is durable only once the folder is synced.
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(stored)
    }

    /// Reads an object. Blocks.
    ///
    /// # Errors
    /// When it does not exist, belongs to another user, or was altered.
    pub(crate) fn get(&self, personal_key: &PersonalDataKey, id: Uuid) -> Result<Vec<u8>> {
        self.read(id, |header| personal_key.open_key(&location(id), header))
    }

    /// Reads an object by its own key. Blocks.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) fn get_by_key(&self, key: DataKey, id: Uuid) -> Result<Vec<u8>> {
        self.read(id, |_| Ok(key))
    }

    /// The object's own key; `None` if there is no such object. Blocks.
    ///
    /// # Errors
    /// When it belongs to another user or was altered.
    pub(crate) fn key(&self, personal_key: &PersonalDataKey, id: Uuid) -> Result<Option<DataKey>> {
        let mut file = match File::open(self.path(id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed)?,
        };
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).map_err(failed)?;
        personal_key.open_key(&location(id), &header).map(Some)
    }

    fn read(&self, id: Uuid, key: impl FnOnce(&[u8]) -> Result<DataKey>) -> Result<Vec<u8>> {
        let broken = || Error::broken("read a document: it is truncated");
        let mut file = File::open(self.path(id)).map_err(failed)?;
        let length = usize::try_from(file.metadata().map_err(failed)?.len());
        let length = length.ok().filter(|length| *length <= 2 * OBJECT_BYTES_MAX);
        let mut remaining = length.and_then(|l| l.checked_sub(HEADER_BYTES)).ok_or_else(broken)?;
        let mut sealed = vec![0; HEADER_BYTES];
        file.read_exact(&mut sealed).map_err(failed)?;
        let key = key(&sealed)?;
        let mut object = Vec::with_capacity(remaining);
        let mut number = 0;
        while remaining > 0 {
            sealed.resize(remaining.min(CHUNK_BYTES + SEAL_BYTES), 0);
            file.read_exact(&mut sealed).map_err(failed)?;
            remaining -= sealed.len();
            object.extend(key.open(&chunk_context(number, remaining == 0), &sealed)?);
            number += 1;
        }
        // Even an empty object has one chunk: the last.
        if number == 0 { Err(broken()) } else { Ok(object) }
    }

    /// Removes an object if it exists. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(crate) fn remove(&self, id: Uuid) -> Result<()> {
        match fs::remove_file(self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// Removes unfinished files of edges that died while writing. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(crate) fn sweep(&self, now: DateTime<Utc>) -> Result<()> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(failed)?,
        };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let unfinished = path.extension().is_some_and(|extension| extension == UNFINISHED);
            let written = fs::metadata(&path).and_then(|found| found.modified());
            let idle = written.ok().and_then(|at| (now - DateTime::<Utc>::from(at)).to_std().ok());
            if unfinished && idle.is_some_and(|idle| idle > ABANDONED) {
                // Another edge may have removed it already.
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    /// The name of a file reveals nothing but its id.
    fn path(&self, id: Uuid) -> PathBuf {
        self.folder.join(id.to_string())
    }
}

fn failed(error: io::Error) -> Error {
    Error::internal("use the store of documents", error)
}

fn location(id: Uuid) -> String {
    format!("document/{id}")
}

fn chunk_context(number: u64, last: bool) -> String {
    format!("piece/{number}/{last}")
}

/// A stored object whose row is not committed yet. Dropping it removes the object.
#[derive(Debug)]
#[must_use = "it is removed unless it is retained"]
pub(crate) struct StoredObject {
    id: Uuid,
    path: PathBuf,
    retained: bool,
}

impl StoredObject {
    /// The object's id.
    pub(crate) const fn id(&self) -> Uuid {
        self.id
    }

    /// Retains the object. Called before the commit of its row: the outcome of a commit is unknown
    /// when the connection is lost, and an object without a row does less harm than a row without an
    /// object.
    pub(crate) fn retain(mut self) {
        self.retained = true;
    }
}

impl Drop for StoredObject {
    fn drop(&mut self) {
        if !self.retained {
            // At worst a sealed object without a row stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests;
