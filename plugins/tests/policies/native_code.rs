//! The cache of native code on disk.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::*;

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("rampart-native-code-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(folder))
    }

    fn engine(&self) -> PolicyEngine {
        PolicyEngine::with_native_code(generous_limits(), &self.0)
            .expect("an engine over the folder")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn priced(engine: &PolicyEngine) -> rampart_plugins::CallReport<rampart_plugins::FeeSchedule> {
    fee_policy(engine, "tiered-fee").price(&context(), &[], &purchase("100.00"))
}

#[test]
fn a_second_engine_compiles_nothing_and_returns_the_same() {
    let folder = Folder::new("cached");
    let first = folder.engine();
    let answer = priced(&first);
    assert_eq!((answer.outcome.is_ok(), first.reused()), (true, 0));

    let second = folder.engine();
    assert_eq!(priced(&second), answer);
    assert_eq!(second.reused(), 1);
}

#[test]
fn a_truncated_file_is_compiled_again() {
    let folder = Folder::new("cut");
    let answer = priced(&folder.engine());
    let mut folders = vec![folder.0.clone()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).expect("the folder").map(|entry| entry.expect("an entry")) {
            match entry.file_type().expect("its type").is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let file = fs::OpenOptions::new().write(true).open(entry.path());
                    file.and_then(|file| file.set_len(1_000)).expect("it is cut");
                }
            }
        }
    }
    let again = folder.engine();
    assert_eq!(priced(&again), answer);
    assert_eq!(again.reused(), 0);
}

#[test]
fn a_folder_that_others_may_enter_is_refused() {
    let folder = Folder::new("open");
    fs::create_dir(&folder.0).expect("a folder");
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).expect("open to others");
    let refused = PolicyEngine::with_native_code(generous_limits(), &folder.0);
    let reason = refused.err().expect("it is refused").to_string();
    assert!(reason.contains("accessible to its owner alone"), "{reason}");
}
