//! The object store of documents and proofs: a folder, in which every object is sealed under the
//! key of the user it is about.
//!
//! An object is a row of pieces, each sealed with its number and whether it is the last: none can
//! be left out, added or put elsewhere. Without the user's key nothing of it can be read.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::settings;
use crate::users::personal::Vault;

/// Where objects are kept unless `documents.folder` says otherwise: below the working folder.
const FOLDER: &str = "documents";
/// Bytes that are sealed at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// What sealing adds to a piece: nonce and tag.
const SEAL_BYTES: usize = 12 + 16;
/// Largest object, in bytes: the largest body of a request.
pub(crate) const OBJECT_BYTES_MAX: usize = 64 * 1024 * 1024;

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

    /// Keeps an object. It is there whole or not at all. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(crate) fn put(&self, clock: &Clock, vault: &Vault, id: Uuid, object: &[u8]) -> Result<()> {
        let failed = |e: io::Error| Error::internal("keep a document", e);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let unfinished = self.path(id).with_extension("part");
        let mut file = create(&unfinished).map_err(failed)?;
        let count = object.len().div_ceil(PIECE_BYTES).max(1);
        for number in 0..count {
            let start = number * PIECE_BYTES;
            let end = (start + PIECE_BYTES).min(object.len());
            let piece = object.get(start..end).unwrap_or_default();
            let sealed = vault.seal(clock, &place(id, number, number + 1 == count), piece)?;
            file.write_all(&sealed).map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        fs::rename(&unfinished, self.path(id)).map_err(failed)
    }

    /// Reads an object. Blocks.
    ///
    /// # Errors
    /// When it is not there, is another user's, or was altered.
    pub(crate) fn get(&self, vault: &Vault, id: Uuid) -> Result<Vec<u8>> {
        let failed = |e: io::Error| Error::internal("read a document", e);
        let file = fs::File::open(self.path(id)).map_err(failed)?;
        let mut sealed = Vec::new();
        let bound = u64::try_from(2 * OBJECT_BYTES_MAX).unwrap_or(u64::MAX);
        file.take(bound).read_to_end(&mut sealed).map_err(failed)?;
        let pieces: Vec<_> = sealed.chunks(PIECE_BYTES + SEAL_BYTES).collect();
        let mut object = Vec::with_capacity(sealed.len());
        for (number, piece) in pieces.iter().enumerate() {
            let place = place(id, number, number + 1 == pieces.len());
            object.extend(vault.open_sealed(&place, piece)?);
        }
        Ok(object)
    }

    /// The id is all that its name tells.
    fn path(&self, id: Uuid) -> PathBuf {
        self.folder.join(id.to_string())
    }
}

fn place(id: Uuid, number: usize, last: bool) -> String {
    format!("document/{id}/{number}/{last}")
}

/// A new file that nobody else may read.
fn create(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}
