//! The components that `plugins/build` writes.

use std::path::PathBuf;

/// The component of that name.
#[expect(clippy::disallowed_methods, reason = "where the build put them is no setting of Rampart")]
pub(crate) fn guest(name: &str) -> Vec<u8> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = match (std::env::var_os("RAMPART_GUESTS"), std::env::var_os("CARGO_TARGET_DIR")) {
        (Some(guests), _) => PathBuf::from(guests),
        (None, Some(target)) => workspace.join(target).join("guests"),
        (None, None) => workspace.join("target/guests"),
    };
    let path = folder.join(name).with_extension("wasm");
    std::fs::read(&path).unwrap_or_else(|_| {
        panic!("{} is missing: run `plugins/build --javascript` first", path.display())
    })
}
