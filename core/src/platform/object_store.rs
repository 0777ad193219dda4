//! The object store of documents and proofs: a folder, in which every object is sealed.
//!
//! An object has a key of its own, so that it can be sealed as it comes, before anybody knows whom
//! it is about ([`Part`]). That key stands at the object's head, sealed under the key of its user:
//! without that one nothing can be read. Behind it comes a row of pieces, each sealed with its
//! number and whether it is the last: none can be left out, added or put elsewhere.
//!
//! Edges that share a database share the folder too.

mod part;
mod removal;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

pub(crate) use self::part::Part;
pub(crate) use self::removal::remove_later;
use crate::platform::clock::Clock;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::error::{Error, Result};
use crate::platform::settings;

/// Where objects are kept unless `documents.folder` says otherwise: below the working folder.
const FOLDER: &str = "documents";
/// Bytes that are sealed at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// What sealing adds to a piece: nonce and tag.
const SEAL_BYTES: usize = 12 + 16;
/// The object's key, sealed.
const HEAD_BYTES: usize = crate::platform::crypto::KEY_BYTES + SEAL_BYTES;
/// Largest object, in bytes: the largest body of a request.
pub(crate) const OBJECT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How a file is called that is still written.
const UNFINISHED: &str = "part";
/// An unfinished file that nobody has written to for this long has lost its edge. A body that comes
/// slower than 1 kB/s is refused, so a piece takes about a minute at most.
const ABANDONED: Duration = Duration::from_secs(3_600);

/// Where objects are kept.
#[derive(Clone, Debug)]
pub struct Documents {
    folder: PathBuf,
}

impl Documents {
    /// A store in the configured folder, or else [`FOLDER`]. It is made when the first object comes.
    pub fn new(settings: &settings::Documents) -> Self {
        Self { folder: settings.folder.clone().unwrap_or_else(|| FOLDER.into()) }
    }

    /// Begins an object. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(crate) fn begin(&self, clock: &Clock) -> Result<Part> {
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let id = clock.uuid()?;
        Part::create(clock, id, self.path(id).with_extension(UNFINISHED))
    }

    /// The head that makes a part readable for who has the vault, and for nobody else.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn head(clock: &Clock, vault: &PersonalDataKey, part: &Part) -> Result<Vec<u8>> {
        vault.seal_key(clock, &place(part.id()), part.key())
    }

    /// Keeps a finished part under its head. It is there whole or not at all, and stays only once
    /// [`Kept::settle`] was called. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(crate) fn keep(&self, part: Part, head: &[u8]) -> Result<Kept> {
        let path = self.path(part.id());
        let id = part.id();
        part.complete(head, &path).map_err(failed)?;
        let kept = Kept { id, path, settled: false };
        // The name lasts only once the folder does.
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(kept)
    }

    /// Reads an object. Blocks.
    ///
    /// # Errors
    /// When it is not there, is another user's, or was altered.
    pub(crate) fn get(&self, vault: &PersonalDataKey, id: Uuid) -> Result<Vec<u8>> {
        let broken = || Error::broken("read a document: it was cut off");
        let mut file = File::open(self.path(id)).map_err(failed)?;
        let length = usize::try_from(file.metadata().map_err(failed)?.len());
        let length = length.ok().filter(|length| *length <= 2 * OBJECT_BYTES_MAX);
        let mut left = length.and_then(|l| l.checked_sub(HEAD_BYTES)).ok_or_else(broken)?;
        let mut sealed = vec![0; HEAD_BYTES];
        file.read_exact(&mut sealed).map_err(failed)?;
        let key = vault.open_key(&place(id), &sealed)?;
        let mut object = Vec::with_capacity(left);
        let mut number = 0;
        while left > 0 {
            sealed.resize(left.min(PIECE_BYTES + SEAL_BYTES), 0);
            file.read_exact(&mut sealed).map_err(failed)?;
            left -= sealed.len();
            object.extend(key.open(&piece(number, left == 0), &sealed)?);
            number += 1;
        }
        // Even an empty object has one piece: the last.
        if number == 0 { Err(broken()) } else { Ok(object) }
    }

    /// Removes an object, if it is there. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(crate) fn remove(&self, id: Uuid) -> Result<()> {
        match fs::remove_file(self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// Removes what edges left behind that were killed while they wrote. Blocks.
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
                // Another edge may have been faster.
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    /// The id is all that its name tells.
    fn path(&self, id: Uuid) -> PathBuf {
        self.folder.join(id.to_string())
    }
}

fn failed(error: io::Error) -> Error {
    Error::internal("use the store of documents", error)
}

fn place(id: Uuid) -> String {
    format!("document/{id}")
}

fn piece(number: u64, last: bool) -> String {
    format!("piece/{number}/{last}")
}

/// An object in the store whose row is not written yet. Dropping it takes the object away again.
#[derive(Debug)]
#[must_use = "it is removed unless it is settled"]
pub(crate) struct Kept {
    id: Uuid,
    path: PathBuf,
    settled: bool,
}

impl Kept {
    /// The object's id.
    pub(crate) const fn id(&self) -> Uuid {
        self.id
    }

    /// Lets it stay. Called before the commit of the row that names it: nobody knows what became of
    /// a commit whose connection was lost, and an object without a row does less harm than a row
    /// without an object.
    pub(crate) fn settle(mut self) {
        self.settled = true;
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if !self.settled {
            // At worst a sealed object stays that nothing names.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests;
