//! A large body on its way in: JSON with images in it, of which never more than a piece is in
//! memory.
//!
//! ```text
//! chunk ─▶ Reading ─┬─ everything but long strings ─▶ text, which is parsed like any other body
//!                   └─ long strings ─▶ Unescaped ─▶ base64 ─▶ digest, sealed part of the store
//! ```
//!
//! In the text a long string is replaced by a stand-in ([`stand_in`]), under which an endpoint finds
//! its image ([`Uploaded::picture`]). All rules of JSON hold: those of structure for the text, those
//! of a string for what was taken out of it.
//!
//! A slow body costs its buffers and what it has on the disk. Work is done for a batch that has
//! arrived, a few at a time, so nobody waits for a client.

mod reading;
mod unescaped;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use self::reading::{Reading, stood_for};
use crate::Core;
use crate::http::images::Picture;
use crate::platform::error::{Error, Result};

/// Bytes that are worked on at a time.
const BATCH_BYTES: usize = 64 * 1024;
/// Memory that an upload takes as long as it comes, in bytes: a batch that waits with the chunk that
/// filled it, a piece that is not full yet, and the text, of which there is little. Work on a batch
/// takes more, but only a few are worked on at a time.
pub const MEMORY_BYTES: usize = 384 * 1024;

/// Why an upload cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// There is more in it than images.
    TooLarge,
    /// It cannot be kept at the moment; the log says why.
    NoRoom,
}

/// A large body on its way in.
#[derive(Debug)]
pub struct Upload {
    core: Arc<Core>,
    size: usize,
    waiting: BytesMut,
    work: Work,
    room: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
enum Work {
    Idle(Box<Reading>),
    Busy(JoinHandle<Result<Advanced>>),
    Over(Ended),
}

/// The reading after a batch, and whether it goes on.
type Advanced = (Box<Reading>, Result<(), Ended>);

impl Upload {
    /// Nothing of it has come yet.
    pub fn begin(core: &Arc<Core>) -> Self {
        let reading = Reading::new(core.documents.clone(), core.clock.clone());
        Self {
            core: Arc::clone(core),
            size: 0,
            waiting: BytesMut::new(),
            work: Work::Idle(Box::new(reading)),
            room: None,
        }
    }

    /// Bytes that have come.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Takes the next bytes. Call [`Upload::ready`] before more are read from the wire.
    ///
    /// # Errors
    /// When there is no room for them.
    pub fn take(&mut self, chunk: &[u8]) -> Result<(), Ended> {
        self.size += chunk.len();
        if !self.core.images.make_room(&mut self.room, self.size) {
            tracing::warn!("uploads take all the room there is for them");
            return Err(Ended::NoRoom);
        }
        self.waiting.extend_from_slice(chunk);
        Ok(())
    }

    /// Waits until more can be taken. May be stopped and called again.
    ///
    /// # Errors
    /// When it cannot go on.
    pub async fn ready(&mut self) -> Result<(), Ended> {
        while self.waiting.len() >= BATCH_BYTES {
            self.idle().await?;
            self.work_on_what_waits();
        }
        Ok(())
    }

    /// The whole, once nothing more comes.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub async fn finish(mut self) -> Result<Uploaded, Ended> {
        self.idle().await?;
        self.work_on_what_waits();
        self.idle().await?;
        let Work::Idle(reading) = self.work else { return Err(Ended::NoRoom) };
        // Not among the few that work at a time: it only waits for the disk.
        let finishing = tokio::task::spawn_blocking(move || reading.finish()).await;
        let finished = finishing.map_err(|e| Error::internal("finish an upload", e)).flatten();
        let whole = finished.map_err(|error| lost(&error))?;
        Ok(Uploaded {
            text: whole.text.into(),
            digest: whole.digest,
            pictures: Mutex::new(whole.pictures),
            _room: self.room,
        })
    }

    /// Waits until nothing is being worked on.
    async fn idle(&mut self) -> Result<(), Ended> {
        if let Work::Busy(handle) = &mut self.work {
            let done = handle.await.map_err(|e| Error::internal("read an upload", e)).flatten();
            self.work = match done {
                Ok((reading, Ok(()))) => Work::Idle(reading),
                Ok((_, Err(ended))) => Work::Over(ended),
                Err(error) => Work::Over(lost(&error)),
            };
        }
        match self.work {
            Work::Over(ended) => Err(ended),
            _ => Ok(()),
        }
    }

    fn work_on_what_waits(&mut self) {
        let nothing = Work::Over(Ended::NoRoom);
        self.work = match std::mem::replace(&mut self.work, nothing) {
            Work::Idle(mut reading) => {
                let batch = std::mem::take(&mut self.waiting);
                Work::Busy(self.core.images.start(move || {
                    let advanced = reading.advance(&batch);
                    (reading, advanced)
                }))
            }
            other => other,
        };
    }
}

/// What an upload ends with when we could not do our part.
fn lost(error: &Error) -> Ended {
    tracing::error!(%error, "an upload was lost");
    Ended::NoRoom
}

/// A large body that has come whole.
#[derive(Debug)]
pub struct Uploaded {
    /// The JSON without its long strings.
    pub(crate) text: Bytes,
    /// SHA-256 of the body as it came.
    pub(crate) digest: Vec<u8>,
    pictures: Mutex<Vec<Option<Picture>>>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Uploaded {
    /// Whether a text stands for one that was too long to be kept in memory.
    pub(crate) fn stands_in(&self, text: &str) -> bool {
        stood_for(text).is_some()
    }

    /// The image for which a text stands in. It is given away once.
    pub(crate) fn picture(&self, text: &str) -> Option<Picture> {
        let mut pictures = self.pictures.lock().unwrap_or_else(PoisonError::into_inner);
        pictures.get_mut(stood_for(text)?)?.take()
    }
}
