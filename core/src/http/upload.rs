//! Streaming upload of large JSON bodies with images, of which at most a chunk is in memory.
//!
//! ```text
//! chunk ─▶ JsonStream ─┬─ all but long strings ─▶ text, which is parsed like any other body
//!                      └─ long strings ─▶ StringDecoder ─▶ base64 ─▶ digest, sealed object
//! ```
//!
//! In the text a long string is replaced by a placeholder, by which an endpoint finds its image
//! ([`body::image`]). All rules of JSON are checked: those of structure in the text, those of strings
//! in the long strings.
//!
//! A slow body occupies only its buffers and disk space. Batches are processed once they have
//! arrived, a few at a time, so no job waits for a client.

pub(crate) mod body;
mod json_stream;
mod string_decoder;

use std::sync::Arc;

use tokio::task::JoinHandle;

pub use self::body::UploadedBody;
use self::json_stream::JsonStream;
use crate::Core;
use crate::platform::error::{Error, Result};
use crate::platform::keyed_budget::{BudgetLimit, BudgetShare};

/// Bytes that are processed at once.
const BATCH_BYTES: usize = 64 * 1024;
/// A buffer's capacity: a batch with the chunk that filled it. The first batch is larger, for all that
/// arrived before the body was an upload is in it.
const BUFFER_BYTES: usize = 2 * BATCH_BYTES;
/// Memory of an upload in progress, in bytes: a pending batch and the buffer of the one before it, the
/// part that is decoded as text and as bytes, an incomplete chunk of the object, and the JSON without
/// its images, which is small. Sealing takes more, but only a few batches are processed concurrently.
pub const MEMORY_BYTES: usize = 512 * 1024;

/// The reason an upload fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadError {
    /// The body without its images is too large.
    TooLarge,
    /// Its partner has as many uploads in progress as it may.
    ShareUsedUp,
    /// It cannot be stored at the moment; the cause is logged.
    Unavailable,
}

/// An upload in progress.
#[derive(Debug)]
pub struct Upload {
    core: Arc<Core>,
    partner: Arc<str>,
    size: usize,
    pending: Vec<u8>,
    state: State,
    share: Option<BudgetShare<Arc<str>>>,
}

#[derive(Debug)]
enum State {
    Idle(Processed),
    Processing(JoinHandle<Result<(Processed, Result<(), UploadError>)>>),
    Failed(UploadError),
}

/// The stream after a batch, and the batch's buffer, empty: it takes the next bytes. New buffers for
/// every batch, grown on one thread and freed on another, cost several times their size in memory.
#[derive(Debug)]
struct Processed {
    stream: Box<JsonStream>,
    buffer: Vec<u8>,
}

impl Upload {
    /// Starts an empty upload of the partner with this slug.
    pub fn begin(core: &Arc<Core>, partner: Arc<str>) -> Self {
        let stream = JsonStream::new(core.documents.clone(), core.clock.clone());
        Self {
            core: Arc::clone(core),
            partner,
            size: 0,
            pending: Vec::new(),
            state: State::Idle(Processed { stream: Box::new(stream), buffer: Vec::new() }),
            share: None,
        }
    }

    /// Bytes received.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Buffers the next bytes. Call [`Upload::ready`] before reading more from the connection.
    ///
    /// # Errors
    /// When the limit of uploads in progress is reached, or that of the partner's.
    pub fn take(&mut self, chunk: &[u8]) -> Result<(), UploadError> {
        self.size += chunk.len();
        let reserved = self.core.images.reserve(&self.partner, &mut self.share, self.size);
        reserved.map_err(|limit| match limit {
            BudgetLimit::Key => UploadError::ShareUsedUp,
            BudgetLimit::Total => {
                tracing::warn!("the limit of uploads in progress is reached");
                UploadError::Unavailable
            }
        })?;
        self.pending.extend_from_slice(chunk);
        Ok(())
    }

    /// Waits until more bytes can be buffered. Cancel safe.
    ///
    /// # Errors
    /// When the upload has failed.
    pub async fn ready(&mut self) -> Result<(), UploadError> {
        while self.pending.len() >= BATCH_BYTES {
            self.idle().await?;
            self.process_pending();
        }
        Ok(())
    }

    /// Completes the upload after its last byte.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn finish(mut self) -> Result<UploadedBody, UploadError> {
        self.idle().await?;
        self.process_pending();
        self.idle().await?;
        let State::Idle(Processed { stream, .. }) = self.state else {
            return Err(UploadError::Unavailable);
        };
        // Outside the concurrency limit of image jobs, because it only waits for the disk.
        let finishing = tokio::task::spawn_blocking(move || stream.finish()).await;
        let finished = finishing.map_err(|e| Error::internal("finish an upload", e)).flatten();
        let parsed = finished.map_err(|error| internal(&error))?;
        Ok(UploadedBody::new(parsed.text, parsed.digest, parsed.images, self.share))
    }

    /// Waits until no batch is being processed.
    async fn idle(&mut self) -> Result<(), UploadError> {
        if let State::Processing(handle) = &mut self.state {
            let done = handle.await.map_err(|e| Error::internal("read an upload", e)).flatten();
            self.state = match done {
                Ok((processed, Ok(()))) => State::Idle(processed),
                Ok((_, Err(error))) => State::Failed(error),
                Err(error) => State::Failed(internal(&error)),
            };
        }
        match self.state {
            State::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }

    fn process_pending(&mut self) {
        let placeholder = State::Failed(UploadError::Unavailable);
        self.state = match std::mem::replace(&mut self.state, placeholder) {
            State::Idle(Processed { mut stream, buffer }) => {
                let mut batch = std::mem::replace(&mut self.pending, buffer);
                State::Processing(self.core.images.start(move || {
                    let result = batch.chunks(BATCH_BYTES).try_for_each(|part| stream.push(part));
                    batch.clear();
                    batch.shrink_to(BUFFER_BYTES);
                    (Processed { stream, buffer: batch }, result)
                }))
            }
            other => other,
        };
    }
}

/// Logs an internal error of an upload.
fn internal(error: &Error) -> UploadError {
    tracing::error!(%error, "an upload failed");
    UploadError::Unavailable
}
