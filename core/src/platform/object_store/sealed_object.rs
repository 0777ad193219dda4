//! Reading of one object.

use std::io::Read;

use uuid::Uuid;

use super::format::{
    CHUNK_BYTES, HEADER_BYTES, SEAL_BYTES, SEALED_BYTES_MAX, chunk_context, failed, location,
};
use crate::platform::crypto::DataKey;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::error::{Error, Result};

/// An object as it is stored.
pub struct SealedObject {
    id: Uuid,
    length: usize,
    source: Box<dyn Read + Send>,
}

impl SealedObject {
    /// An object of `length` bytes.
    ///
    /// # Errors
    /// When no object has that length.
    pub(super) fn new(id: Uuid, length: usize, source: impl Read + Send + 'static) -> Result<Self> {
        if !(HEADER_BYTES..=SEALED_BYTES_MAX).contains(&length) {
            return Err(broken());
        }
        Ok(Self { id, length, source: Box::new(source) })
    }

    /// Opens the object with the user's key. Blocks.
    ///
    /// # Errors
    /// When it belongs to another user or was altered.
    pub fn open(self, personal_key: &PersonalDataKey) -> Result<Vec<u8>> {
        let location = location(self.id);
        self.read(|header| personal_key.open_key(&location, header))
    }

    /// Opens the object with its own key. Blocks.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_by_key(self, key: DataKey) -> Result<Vec<u8>> {
        self.read(|_| Ok(key))
    }

    fn read(mut self, key: impl FnOnce(&[u8]) -> Result<DataKey>) -> Result<Vec<u8>> {
        let mut remaining = self.length - HEADER_BYTES;
        let mut sealed = vec![0; HEADER_BYTES];
        self.source.read_exact(&mut sealed).map_err(failed)?;
        let key = key(&sealed)?;
        let mut object = Vec::with_capacity(remaining);
        let mut number = 0;
        while remaining > 0 {
            sealed.resize(remaining.min(CHUNK_BYTES + SEAL_BYTES), 0);
            self.source.read_exact(&mut sealed).map_err(failed)?;
            remaining -= sealed.len();
            object.extend(key.open(&chunk_context(number, remaining == 0), &sealed)?);
            number += 1;
        }
        // Even an empty object has one chunk: the last.
        if number == 0 { Err(broken()) } else { Ok(object) }
    }
}

fn broken() -> Error {
    Error::invariant("read a document: it is truncated or too long")
}
