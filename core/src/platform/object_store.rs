//! The object store of documents and proofs: sealed objects in a folder, or in a bucket of S3.
//!
//! Every object has its own key, so that it can be sealed while it arrives, before its user is known
//! ([`ObjectWriter`]). The object's header holds that key, sealed with the user's key: without the
//! user's key the object cannot be read. Chunks follow, each sealed with its number and a flag for
//! the last one: none can be removed, added or moved.
//!
//! Edges that share a database must share the folder or the bucket.

mod bucket;
mod folder;
mod format;
mod removal;
mod sealed_object;
mod upload;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use prometheus::IntGauge;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use self::bucket::Bucket;
use self::folder::Folder;
pub(crate) use self::format::OBJECT_BYTES_MAX;
use self::format::{failed, location};
pub(crate) use self::removal::remove_later;
pub(crate) use self::sealed_object::SealedObject;
pub(crate) use self::upload::{begin_upload, retain_all};
pub(crate) use self::writer::ObjectWriter;
use crate::platform::clock::Clock;
use crate::platform::crypto::DataKey;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::error::Result;
use crate::platform::metrics::Metrics;
use crate::platform::settings;
use rampart_types::ClientId;

/// Default of `documents.folder`, relative to the working folder.
const FOLDER: &str = "documents";
/// From one look at the folder to the next.
const FOLDER_PAUSE: Duration = Duration::from_secs(2);

/// The store of sealed objects.
#[derive(Clone, Debug)]
pub struct DocumentStore(Backend);

#[derive(Clone, Debug)]
enum Backend {
    Folder(Folder),
    Bucket(Arc<Bucket>),
}

impl DocumentStore {
    /// The store that is configured, by default in [`FOLDER`].
    ///
    /// # Errors
    /// One sentence that names the setting, without its value.
    pub(crate) fn new(
        settings: &settings::Documents,
        clock: &Clock,
        metrics: &Metrics,
    ) -> Result<Self, &'static str> {
        match (Bucket::new(settings, clock, metrics)?, &settings.folder) {
            (Some(_), Some(_)) => Err("documents.folder and documents.s3_url are both set"),
            (Some(bucket), None) => Ok(Self(Backend::Bucket(Arc::new(bucket)))),
            (None, folder) => {
                let path = folder.clone().unwrap_or_else(|| FOLDER.into());
                let available = metrics.documents_available.with_label_values::<&str>(&[]);
                Ok(Self::in_folder(path, available))
            }
        }
    }

    /// A store in a folder, which is created with the first object. Checks set `available`.
    pub(crate) fn in_folder(path: PathBuf, available: IntGauge) -> Self {
        Self(Backend::Folder(Folder::new(path, available)))
    }

    /// Opens a writer for a new object. Blocks.
    ///
    /// # Errors
    /// When the object cannot be written.
    pub(crate) fn create(&self, clock: &Clock) -> Result<ObjectWriter> {
        let id = clock.uuid()?;
        match &self.0 {
            Backend::Folder(folder) => folder.create(clock, id),
            Backend::Bucket(_) => ObjectWriter::create_unnamed(clock, id),
        }
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

    /// Stores a finished object of a partner with its header, atomically, after [`begin_upload`]. It is
    /// removed again unless it is retained by [`retain_all`].
    ///
    /// # Errors
    /// When the store cannot be written.
    pub(crate) async fn store(
        &self,
        partner: ClientId,
        object: ObjectWriter,
        header: Vec<u8>,
    ) -> Result<StoredObject> {
        // Made first: whatever becomes of the call, what is not retained is removed.
        let stored = StoredObject { id: object.id(), store: self.clone(), retained: false };
        match &self.0 {
            Backend::Folder(folder) => {
                let folder = folder.clone();
                let store = move || folder.store(object, &header).map(|()| stored);
                spawn_blocking(store).await.map_err(failed)?
            }
            Backend::Bucket(bucket) => bucket.put(partner, object, header, stored).await,
        }
    }

    /// An object, still sealed.
    ///
    /// # Errors
    /// When it does not exist or cannot be read.
    pub async fn get(&self, id: Uuid) -> Result<SealedObject> {
        match &self.0 {
            Backend::Folder(folder) => {
                let folder = folder.clone();
                spawn_blocking(move || folder.get(id)).await.map_err(failed)?
            }
            Backend::Bucket(bucket) => bucket.get(id).await,
        }
    }

    /// The object's own key; `None` if there is no such object, or its header does not open with the
    /// user's key: then nothing does any more.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn key(
        &self,
        personal_key: &PersonalDataKey,
        id: Uuid,
    ) -> Result<Option<DataKey>> {
        let header = match &self.0 {
            Backend::Folder(folder) => {
                let folder = folder.clone();
                spawn_blocking(move || folder.header(id)).await.map_err(failed)??
            }
            Backend::Bucket(bucket) => bucket.header(id).await?,
        };
        Ok(header.and_then(|header| personal_key.open_key(&location(id), &header).ok()))
    }

    /// Removes an object if it exists.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub(crate) async fn remove(&self, id: Uuid) -> Result<()> {
        match &self.0 {
            Backend::Folder(folder) => {
                let folder = folder.clone();
                spawn_blocking(move || folder.remove(id)).await.map_err(failed)?
            }
            Backend::Bucket(bucket) => bucket.remove(id).await,
        }
    }

    /// Removes unfinished files of edges that died while writing. Those of a bucket have no name and
    /// end with their edge.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(crate) async fn sweep(&self, now: DateTime<Utc>) -> Result<()> {
        let Backend::Folder(folder) = &self.0 else { return Ok(()) };
        let folder = folder.clone();
        spawn_blocking(move || folder.sweep(now)).await.map_err(failed)?
    }

    /// Consequence and reason, with the setting that names the store, when it cannot be used; `None`
    /// when it can, or nobody has tried.
    pub(crate) fn problem(&self) -> Option<String> {
        let (consequence, setting, reason) = match &self.0 {
            // One that cannot be written to may still be read.
            Backend::Folder(folder) => ("cannot be stored", "documents.folder", folder.problem()?),
            Backend::Bucket(bucket) => {
                ("can be neither stored nor read", "documents.s3_url", bucket.problem()?)
            }
        };
        Some(format!("documents {consequence}, because of {setting}: {reason}"))
    }

    /// True while there is a bucket that cannot be used.
    pub(crate) fn lacks_bucket(&self) -> bool {
        matches!(&self.0, Backend::Bucket(bucket) if bucket.problem().is_some())
    }

    /// Tries the store once. A folder is not written to.
    pub(crate) async fn check(&self) {
        match &self.0 {
            Backend::Folder(folder) => {
                let folder = folder.clone();
                // A folder that cannot even be looked at is found out by the first document.
                let _ = spawn_blocking(move || folder.check()).await;
            }
            Backend::Bucket(bucket) => bucket.check().await,
        }
    }

    /// Watches the store, and removes from a bucket what was not retained, until `stop` is true.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        if let Backend::Bucket(bucket) = &self.0 {
            return bucket.run(stop).await;
        }
        let mut pause = interval(FOLDER_PAUSE);
        pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let looks = async {
            loop {
                pause.tick().await;
                self.check().await;
            }
        };
        tokio::select! {
            () = looks => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }
}

/// A stored object whose row is not committed yet. Dropping it removes the object.
#[derive(Debug)]
#[must_use = "it is removed unless it is retained"]
pub(crate) struct StoredObject {
    id: Uuid,
    store: DocumentStore,
    retained: bool,
}

impl StoredObject {
    /// The object's id.
    pub(crate) const fn id(&self) -> Uuid {
        self.id
    }

    /// Retains the object. Called before the commit of its row: the outcome of a commit is unknown
    /// when the connection is lost. An object without a row is removed later by its upload's row.
    fn retain(mut self) {
        self.retained = true;
    }
}

impl Drop for StoredObject {
    fn drop(&mut self) {
        if self.retained {
            return;
        }
        match &self.store.0 {
            // One that stays is removed later, by its upload's row.
            Backend::Folder(folder) => drop(folder.remove(self.id)),
            Backend::Bucket(bucket) => bucket.discard(self.id),
        }
    }
}

#[cfg(test)]
mod tests;
