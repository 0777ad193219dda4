//! The form of a sealed object, and the errors of reading and writing one.

use std::error::Error as StdError;

use uuid::Uuid;

use crate::platform::crypto::KEY_BYTES;
use crate::platform::error::Error;

/// Plaintext bytes of a chunk.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;
/// Overhead of sealing: nonce and tag.
pub(super) const SEAL_BYTES: usize = 12 + 16;
/// Length of the header: the sealed key of the object.
pub(super) const HEADER_BYTES: usize = KEY_BYTES + SEAL_BYTES;
/// Largest object, in bytes: that of the largest request body.
pub(crate) const OBJECT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Length of the largest object once it is sealed, in bytes.
pub(super) const SEALED_BYTES_MAX: usize =
    HEADER_BYTES + OBJECT_BYTES_MAX + (OBJECT_BYTES_MAX / CHUNK_BYTES + 1) * SEAL_BYTES;

/// Context of a header.
pub(super) fn location(id: Uuid) -> String {
    format!("document/{id}")
}

pub(super) fn chunk_context(number: u64, last: bool) -> String {
    format!("piece/{number}/{last}")
}

pub(super) fn failed(error: impl StdError + Send + Sync + 'static) -> Error {
    Error::internal("use the store of documents", error)
}
