//! The repository that the tests belong to.

use std::path::{Path, PathBuf};

/// Its root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
