//! Images as they come in requests: base64 in JSON, told by their first bytes.
//!
//! A small one is decoded where it is read. A large one was decoded and sealed while it came
//! ([`crate::http::upload`]); either is a [`Picture`], and [`Picture::keep`] puts it into the store.

mod decoding;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

pub(crate) use self::decoding::{Decoding, Image, Look, without_url_head};
use crate::Core;
use crate::http::upload::Uploaded;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::error::{Error, Result};
use crate::platform::object_store::{Documents, Kept, Part};
use crate::platform::rate_limit::{Decision, KeyedGcra, Quota};
use rampart_types::{ClientId, UserId};

/// Most pieces of images that are worked on at a time; the others wait their turn.
const AT_ONCE_MAX: usize = 2;
/// Most bytes of large bodies that are on their way in at a time. More are refused with 503.
const INCOMING_BYTES_MAX: usize = 4 * 1024 * 1024 * 1024;
/// Bytes behind one permit of them.
const INCOMING_UNIT: usize = 64 * 1024;
/// Most users whose uploads are counted at a time.
const COUNTED_MAX: u64 = 65_536;
/// How long a user who uploads no more is remembered: the bucket is full again by then.
const REMEMBERED: Duration = Duration::from_secs(3_600);

/// Work on images, bounded in number, in size and in rate.
#[derive(Debug)]
pub struct Images {
    at_once: Arc<Semaphore>,
    incoming: Arc<Semaphore>,
    by_user: KeyedGcra<(ClientId, UserId)>,
}

impl Default for Images {
    fn default() -> Self {
        Self {
            at_once: Arc::new(Semaphore::new(AT_ONCE_MAX)),
            incoming: Arc::new(Semaphore::new(INCOMING_BYTES_MAX / INCOMING_UNIT)),
            by_user: KeyedGcra::new(COUNTED_MAX, REMEMBERED),
        }
    }
}

impl Images {
    /// Starts work on an image off the threads that serve.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<Result<T>> {
        let at_once = Arc::clone(&self.at_once);
        tokio::spawn(async move {
            let doing = "work on an image";
            let _permit = at_once.acquire().await.map_err(|e| Error::internal(doing, e))?;
            tokio::task::spawn_blocking(work).await.map_err(|e| Error::internal(doing, e))
        })
    }

    /// Runs work on an image off the threads that serve.
    ///
    /// # Errors
    /// When the work panics, which is our fault.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.start(work).await.map_err(|e| Error::internal("work on an image", e))?
    }

    /// Room for a large body that has `bytes` by now, in place of `room`; `false` when there is none.
    pub(crate) fn make_room(&self, room: &mut Option<OwnedSemaphorePermit>, bytes: usize) -> bool {
        let held = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = bytes.div_ceil(INCOMING_UNIT).saturating_sub(held);
        let more = u32::try_from(missing)
            .ok()
            .and_then(|missing| Arc::clone(&self.incoming).try_acquire_many_owned(missing).ok());
        match (more, room) {
            (None, _) => false,
            (Some(more), Some(room)) => {
                room.merge(more);
                true
            }
            (Some(more), room) => {
                *room = Some(more);
                true
            }
        }
    }

    /// Counts an upload of this user (section 4 of the contract).
    pub(crate) fn count(&self, user: (ClientId, UserId), quota: Quota, now_ns: u64) -> Decision {
        self.by_user.take(user, quota, now_ns)
    }
}

/// An image that came in a request.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) image: Image,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    Part(Part),
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Content(…)")
    }
}

impl Picture {
    /// The image that a member of a request is, whose body was this upload or none; `None` unless it is a JPEG, PNG or PDF.
    pub(crate) fn of(upload: Option<&Uploaded>, text: &str) -> Option<Self> {
        match upload {
            Some(upload) if upload.stands_in(text) => upload.picture(text),
            _ => Self::read(text),
        }
    }

    /// Reads base64 (a data URL's head before it is ignored); `None` unless it is a JPEG, PNG or
    /// PDF by its first bytes.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let encoded = without_url_head(text.as_bytes())?;
        let (mut decoding, mut look, mut bytes) = (Decoding::default(), Look::default(), vec![]);
        decoding.push(encoded, &mut bytes)?;
        decoding.finish(&mut bytes)?;
        look.push(&bytes);
        Some(Self { image: look.finish()?, content: Content::Bytes(bytes) })
    }

    /// The image that stands in a finished part.
    pub(crate) const fn in_part(image: Image, part: Part) -> Self {
        Self { image, content: Content::Part(part) }
    }

    /// Puts the image into the store, readable with the vault.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub(crate) async fn keep(self, core: &Core, vault: &PersonalDataKey) -> Result<(Image, Kept)> {
        let Self { image, content } = self;
        let (store, clock) = (core.documents.clone(), core.clock.clone());
        let part = match content {
            Content::Part(part) => part,
            Content::Bytes(bytes) => {
                let (store, clock) = (store.clone(), clock.clone());
                let writing = move || {
                    let mut part = store.begin(&clock)?;
                    part.push(&clock, &bytes)?;
                    part.finish(&clock)?;
                    Ok::<_, Error>(part)
                };
                core.images.run(writing).await??
            }
        };
        let head = Documents::head(&clock, vault, &part)?;
        let kept = core.images.run(move || store.keep(part, &head)).await??;
        Ok((image, kept))
    }
}
