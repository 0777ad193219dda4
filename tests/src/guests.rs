//! The policies that `plugins/build` made of `plugins/guests`.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::LazyLock;

use bytes::Bytes;

use crate::process::remove_in_the_end;

/// The folder for native code, and what removes it.
static NATIVE_CODE: LazyLock<(PathBuf, Child)> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("rampart-native-code-{}", std::process::id()));
    let removal = remove_in_the_end(&[&folder]);
    (folder, removal)
});

/// The folder of the built policies.
#[expect(clippy::disallowed_methods, reason = "where the build put them is no setting of Rampart")]
pub fn folder() -> PathBuf {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    match (std::env::var_os("RAMPART_GUESTS"), std::env::var_os("CARGO_TARGET_DIR")) {
        (Some(guests), _) => PathBuf::from(guests),
        (None, Some(target)) => workspace.join(target).join("guests"),
        (None, None) => workspace.join("target/guests"),
    }
}

/// The component of the guest with this name. Panics when it was not built.
pub fn component(name: &str) -> Bytes {
    let path = folder().join(name).with_extension("wasm");
    let component = std::fs::read(&path);
    component
        .unwrap_or_else(|_| panic!("{} is missing: run `plugins/build` first", path.display()))
        .into()
}

/// The folder for native code of all edges of this process, which compile each component once. It goes
/// with the process.
pub(crate) fn native_code() -> &'static Path {
    &NATIVE_CODE.0
}
