//! Objects in a folder, each a file. Everything here blocks.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use prometheus::IntGauge;
use rustix::fs::{Access, access};
use uuid::Uuid;

use super::format::{HEADER_BYTES, failed};
use super::sealed_object::SealedObject;
use super::writer::ObjectWriter;
use crate::platform::clock::Clock;
use crate::platform::error::{Error, Result};

/// File extension of an unfinished object.
const UNFINISHED: &str = "part";
/// Age since the last write above which an unfinished file is removed: its edge has died. A body
/// slower than 1 kB/s is refused, so a chunk takes about a minute at most.
pub(super) const ABANDONED: Duration = Duration::from_secs(3_600);

/// A folder of sealed objects.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// A check has found that it cannot be written to.
    is_unusable: Arc<AtomicBool>,
    /// 1 once a check has found that it can be written to.
    available: IntGauge,
}

impl Folder {
    pub(super) fn new(path: PathBuf, available: IntGauge) -> Self {
        Self { path, is_unusable: Arc::default(), available }
    }

    /// Its path.
    #[cfg(test)]
    pub(super) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The reason it cannot be used, if a check has found one.
    pub(super) fn problem(&self) -> Option<&'static str> {
        let is_unusable = self.is_unusable.load(Ordering::Relaxed);
        is_unusable.then_some("it is no folder that this user may write to")
    }

    /// Finds out whether this user may write to it, or make it where it does not exist yet.
    pub(super) fn check(&self) {
        let whole = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let nearest = whole.ancestors().find(|path| path.symlink_metadata().is_ok());
        let is_writable = nearest.is_some_and(|path| {
            path.is_dir() && access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
        });
        self.available.set(i64::from(is_writable));
        self.is_unusable.store(!is_writable, Ordering::Relaxed);
    }

    /// Opens a writer for a new object.
    pub(super) fn create(&self, clock: &Clock, id: Uuid) -> Result<ObjectWriter> {
        fs::create_dir_all(&self.path).map_err(failed)?;
        ObjectWriter::create(clock, id, self.file(id).with_extension(UNFINISHED))
    }

    /// Gives a finished object its header and its name.
    pub(super) fn store(&self, object: ObjectWriter, header: &[u8]) -> Result<()> {
        let path = self.file(object.id());
        object.complete(header, &path).map_err(failed)?;
        // A rename is durable only once the folder is synced.
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    pub(super) fn get(&self, id: Uuid) -> Result<SealedObject> {
        let file = File::open(self.file(id)).map_err(failed)?;
        let length = usize::try_from(file.metadata().map_err(failed)?.len());
        let length = length.map_err(|_| Error::invariant("read a document: it is too long"))?;
        SealedObject::new(id, length, file)
    }

    /// The header of an object; `None` if there is no such object, or its file is cut before the end of
    /// the header.
    pub(super) fn header(&self, id: Uuid) -> Result<Option<Vec<u8>>> {
        let mut file = match File::open(self.file(id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed)?,
        };
        let mut header = vec![0; HEADER_BYTES];
        match file.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            read => read.map(|()| Some(header)).map_err(failed),
        }
    }

    /// Removes an object if it exists.
    pub(super) fn remove(&self, id: Uuid) -> Result<()> {
        match fs::remove_file(self.file(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// Removes unfinished files of edges that died while writing.
    pub(super) fn sweep(&self, now: DateTime<Utc>) -> Result<()> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(failed)?,
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        // By the name first: a look at every document's file would take long in a folder of many.
        for path in paths.filter(|path| path.extension().is_some_and(|of| of == UNFINISHED)) {
            let written = fs::metadata(&path).and_then(|found| found.modified());
            let idle = written.ok().and_then(|at| (now - DateTime::<Utc>::from(at)).to_std().ok());
            if idle.is_some_and(|idle| idle > ABANDONED) {
                // Another edge may have removed it already.
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    /// The name of a file reveals nothing but its id.
    pub(super) fn file(&self, id: Uuid) -> PathBuf {
        self.path.join(id.to_string())
    }
}
