//! Images in requests: base64 in JSON, or files of a page's form, recognised by their first bytes.
//!
//! A small image is decoded when its member is read; a large one was decoded and sealed while it
//! arrived. Either is a [`ReceivedImage`], and [`ReceivedImage::store`] moves it to the object store.

mod image_scanner;
pub(crate) mod logo;
pub(crate) mod svg;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

pub(crate) use self::image_scanner::{
    Base64Decoder, ImageInfo, ImageScanner, strip_data_url_header,
};
use crate::Core;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::error::{Error, Result};
use crate::platform::keyed_budget::{BudgetLimit, BudgetShare, KeyedBudget};
use crate::platform::object_store::{DocumentStore, ObjectWriter, StoredObject, begin_upload};
use crate::platform::rate_limit::{KeyedGcra, Quota};
use crate::platform::shared_rates::SharedGcra;
use rampart_types::UserKey;

/// Most image jobs that run concurrently; others are queued.
const CONCURRENCY_MAX: usize = 2;
/// Most bytes of uploads in progress. More are refused with 503.
const INCOMING_BYTES_MAX: usize = 4 * 1024 * 1024 * 1024;
/// Most of them of one partner: three quarters.
const INCOMING_BYTES_PER_PARTNER_MAX: usize = INCOMING_BYTES_MAX - INCOMING_BYTES_MAX / 4;
/// Bytes per unit of `incoming`.
const BYTES_PER_UNIT: usize = 64 * 1024;
/// Most users with an upload bucket.
const USERS_MAX: u64 = 65_536;
/// Shortest idle time after which a user's bucket is evicted.
const BUCKET_IDLE_MIN: Duration = Duration::from_secs(3_600);

/// Image processing with limits on concurrency, size and rate.
#[derive(Debug)]
pub struct ImageProcessor {
    jobs: Arc<Semaphore>,
    incoming: KeyedBudget<Arc<str>>,
    by_user: KeyedGcra<(UserKey, Quota), SharedGcra>,
}

impl Default for ImageProcessor {
    fn default() -> Self {
        Self {
            jobs: Arc::new(Semaphore::new(CONCURRENCY_MAX)),
            incoming: KeyedBudget::new(
                INCOMING_BYTES_MAX / BYTES_PER_UNIT,
                INCOMING_BYTES_PER_PARTNER_MAX / BYTES_PER_UNIT,
            ),
            by_user: KeyedGcra::with_idle(USERS_MAX, |(_, quota): &(UserKey, Quota)| {
                quota.bucket_idle(BUCKET_IDLE_MIN)
            }),
        }
    }
}

impl ImageProcessor {
    /// Starts a job on a blocking thread.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<Result<T>> {
        let jobs = Arc::clone(&self.jobs);
        tokio::spawn(async move {
            let operation = "work on an image";
            let _permit = jobs.acquire().await.map_err(|e| Error::internal(operation, e))?;
            tokio::task::spawn_blocking(job).await.map_err(|e| Error::internal(operation, e))
        })
    }

    /// Runs a job on a blocking thread.
    ///
    /// # Errors
    /// An internal error when the job panics.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.start(job).await.map_err(|e| Error::internal("work on an image", e))?
    }

    /// Extends the share of a partner's upload to `bytes`.
    ///
    /// # Errors
    /// The limit that is reached.
    pub(crate) fn reserve(
        &self,
        partner: &Arc<str>,
        share: &mut Option<BudgetShare<Arc<str>>>,
        bytes: usize,
    ) -> Result<(), BudgetLimit> {
        self.incoming.extend(partner, share, bytes.div_ceil(BYTES_PER_UNIT))
    }

    /// The bucket of this user's uploads at this quota (section 4 of the contract).
    pub(crate) fn bucket(&self, key: UserKey, quota: Quota) -> Arc<SharedGcra> {
        let new = || SharedGcra::new(&format!("uploads/{}/{}/{quota}", key.client, key.user));
        self.by_user.bucket_or((key, quota), new)
    }
}

/// An image received in a request.
#[derive(Debug)]
pub(crate) struct ReceivedImage {
    pub(crate) info: ImageInfo,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    Stored(ObjectWriter),
}

rampart_types::opaque_debug!(Content);

impl ReceivedImage {
    /// Decodes base64, with or without the header of a data URL; `None` unless it is a JPEG, PNG or
    /// PDF by its first bytes.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let encoded = strip_data_url_header(text.as_bytes())?;
        let (mut decoder, mut bytes) = (Base64Decoder::default(), Vec::new());
        decoder.push(encoded, &mut bytes)?;
        decoder.finish(&mut bytes)?;
        Self::from_bytes(bytes)
    }

    /// The image that these bytes are; `None` unless it is a JPEG, PNG or PDF by its first bytes.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let mut scanner = ImageScanner::default();
        scanner.push(&bytes);
        Some(Self { info: scanner.finish()?, content: Content::Bytes(bytes) })
    }

    /// An image that was decoded into a finished object.
    pub(crate) const fn from_object(info: ImageInfo, object: ObjectWriter) -> Self {
        Self { info, content: Content::Stored(object) }
    }

    /// Moves the image to the object store, sealed with the user's key.
    ///
    /// # Errors
    /// When the store or the database cannot be written.
    pub(crate) async fn store(
        self,
        core: &Core,
        personal_key: &PersonalDataKey,
    ) -> Result<(ImageInfo, StoredObject)> {
        let Self { info, content } = self;
        let (store, clock) = (core.documents.clone(), core.clock.clone());
        let object = match content {
            Content::Stored(object) => object,
            Content::Bytes(bytes) => {
                let (store, clock) = (store.clone(), clock.clone());
                let write = move || {
                    let mut writer = store.create(&clock)?;
                    writer.push(&clock, &bytes)?;
                    writer.finish(&clock)?;
                    Ok::<_, Error>(writer)
                };
                core.images.run(write).await??
            }
        };
        let header = DocumentStore::header(&clock, personal_key, &object)?;
        let partner = personal_key.owner().client;
        begin_upload(&core.db, partner, object.id()).await?;
        // Outside the concurrency limit of image jobs, because it only waits for the store.
        let stored = store.store(partner, object, header).await?;
        Ok((info, stored))
    }
}
