//! Native code of components: from the folder that caches it, or from a compiler.
//!
//! A file of the folder is named after the component, the engine's version and every setting that
//! changes the code, so one folder serves several versions of Rampart and is never out of date. It is
//! authenticated under a key of the edge before it is loaded, because loaded code is executed.

use std::fs;
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rampart_native_code::{NativeCode, StorageKey};
use wasmtime::Engine;

/// Size at which the oldest files are removed, in bytes. A small policy takes 40 kB.
const FOLDER_BYTES_MAX: u64 = 1 << 30;
/// Files at which the oldest are removed.
const FOLDER_FILES_MAX: usize = 20_000;
/// Files written between two looks at the folder's size: of the largest components 1.3 GiB.
const WRITES_PER_CHECK: u64 = 64;
/// Largest file that is read, in bytes: native code of the largest component has some 20 MiB.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A folder of native code, and the key that authenticates its files.
pub struct NativeCodeCache {
    /// Accessible to its owner alone; created if missing.
    pub folder: PathBuf,
    /// Secret, and the same at the next start.
    pub key: [u8; 32],
}

/// The folder, opened.
pub(crate) struct Folder {
    path: PathBuf,
    key: StorageKey,
    /// Random: processes in containers that share the folder have the same id.
    writer: u64,
    writes: AtomicU64,
    hits: AtomicUsize,
}

impl Folder {
    /// Opens the folder, and creates it if missing.
    ///
    /// # Errors
    /// When it cannot be created, is another user's, or is open to others.
    pub(crate) fn open(cache: &NativeCodeCache) -> wasmtime::Result<Self> {
        let path = create_private(&cache.folder).map_err(|error| {
            wasmtime::Error::msg(format!("'{}' for native code: {error}", cache.folder.display()))
        })?;
        let key = StorageKey::new(&cache.key);
        let writer = RandomState::new().build_hasher().finish();
        Ok(Self { path, key, writer, writes: AtomicU64::new(0), hits: AtomicUsize::new(0) })
    }

    /// Components that were found here.
    pub(crate) fn hits(&self) -> usize {
        self.hits.load(Ordering::Relaxed)
    }

    /// The code of this component, if a file has it and is authentic.
    pub(crate) fn get(&self, engine: &Engine, digest: &str) -> Option<NativeCode> {
        let name = file_name(engine, digest);
        let file = fs::File::open(self.path.join(&name)).ok()?;
        let mut stored = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut stored).ok()?;
        let code = NativeCode::open(&self.key, &name, stored)?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(code)
    }

    /// Stores the code of a component. A file that cannot be written is compiled again next time.
    pub(crate) fn put(&self, engine: &Engine, digest: &str, code: &NativeCode) {
        let name = file_name(engine, digest);
        drop(self.write(&name, &code.seal(&self.key, &name)));
        if self.writes.fetch_add(1, Ordering::Relaxed).is_multiple_of(WRITES_PER_CHECK) {
            drop(self.prune());
        }
    }

    /// Writes a file at once or not at all.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let number = self.writes.load(Ordering::Relaxed);
        let temporary = self.path.join(format!("{name}.{:016x}.{number}.new", self.writer));
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let written =
            file.write_all(bytes).and_then(|()| fs::rename(&temporary, self.path.join(name)));
        if written.is_err() {
            drop(fs::remove_file(&temporary));
        }
        written
    }

    /// Removes the oldest files over the bounds.
    fn prune(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            // Another edge may have removed it meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() {
                files.push((metadata.mtime(), metadata.len(), entry.path()));
            }
        }
        files.sort_unstable_by_key(|(modified, ..)| std::cmp::Reverse(*modified));
        let mut total = 0_u64;
        let excess = files.into_iter().enumerate().filter_map(|(index, (_, size, path))| {
            total = total.saturating_add(size);
            (index >= FOLDER_FILES_MAX || total > FOLDER_BYTES_MAX).then_some(path)
        });
        remove(excess);
        Ok(())
    }
}

/// Removes files, of which another edge may have removed some.
fn remove(paths: impl IntoIterator<Item = PathBuf>) {
    for path in paths {
        drop(fs::remove_file(path));
    }
}

fn file_name(engine: &Engine, digest: &str) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{digest}-{:016x}", hasher.finish())
}

fn create_private(folder: &Path) -> io::Result<PathBuf> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let metadata = fs::metadata(folder)?;
    let ours = rustix::process::geteuid().as_raw();
    match metadata.uid() == ours && metadata.mode() & 0o077 == 0 {
        true => folder.canonicalize(),
        false => Err(io::Error::other("it must be accessible to its owner alone, and be ours")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_leaves_no_other_behind() {
        let folder = std::env::temp_dir().join(format!("rampart-native-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let [gone, excess] = ["gone", "excess"].map(|name| folder.join(name));
        fs::write(&excess, "").unwrap();
        remove([gone, excess]);
        // Only an empty folder can be removed.
        fs::remove_dir(&folder).unwrap();
    }
}
