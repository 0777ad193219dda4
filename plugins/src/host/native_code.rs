//! A cache of native code on disk, so that a start compiles only new components.
//!
//! The engine keys each file by the component's bytes, its own version and every setting that
//! changes the code, so one folder serves several versions of Rampart and is never out of date.
//! Files are executed without a check: no other user may write there.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use wasmtime::{Cache, CacheConfig};

/// Size at which the least used files are removed, in bytes. A small policy takes 40 kB.
const FOLDER_BYTES_MAX: u64 = 1 << 30;
/// Files at which the least used are removed.
const FOLDER_FILES_MAX: u64 = 20_000;

/// Opens the folder, and creates it if missing.
///
/// # Errors
/// When it cannot be created, is another user's, or is open to others.
pub(crate) fn open(folder: &Path) -> wasmtime::Result<Cache> {
    let folder = create_private(folder).map_err(|error| {
        wasmtime::Error::msg(format!("'{}' for native code: {error}", folder.display()))
    })?;
    let mut config = CacheConfig::new();
    config
        .with_directory(folder)
        .with_files_total_size_soft_limit(FOLDER_BYTES_MAX)
        .with_file_count_soft_limit(FOLDER_FILES_MAX);
    Cache::new(config)
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
