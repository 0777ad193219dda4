//! The cache of native code on disk.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use rampart_plugins::{CallClass, NativeCodeCache};

use super::*;

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("rampart-native-code-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(folder))
    }

    fn engine(&self) -> PolicyEngine {
        self.engine_with([7; 32])
    }

    fn engine_with(&self, key: [u8; 32]) -> PolicyEngine {
        let cache = NativeCodeCache { folder: self.0.clone(), key };
        PolicyEngine::with_native_code(generous_limits(), Some(&cache), None)
            .expect("an engine over the folder")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn priced(engine: &PolicyEngine) -> rampart_plugins::CallReport<rampart_plugins::FeeSchedule> {
    fee_policy(engine, "tiered-fee").price(CallClass::Live, &context(), &[], &purchase("100.00"))
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
fn a_file_that_a_killed_process_of_this_id_left_keeps_nobody_from_writing() {
    let folder = Folder::new("left");
    let answer = priced(&folder.engine());
    let process = std::process::id();
    let files: Vec<_> = fs::read_dir(&folder.0).expect("the folder").collect();
    for file in files {
        let path = file.expect("an entry").path();
        fs::rename(&path, format!("{}.{process}.0.new", path.display())).expect("it is renamed");
    }
    assert_eq!(priced(&folder.engine()), answer);
    let again = folder.engine();
    assert_eq!(priced(&again), answer);
    assert_eq!(again.reused(), 1);
}

#[test]
fn code_that_another_key_stored_is_not_loaded() {
    let folder = Folder::new("foreign");
    let answer = priced(&folder.engine_with([8; 32]));
    let engine = folder.engine();
    assert_eq!(priced(&engine), answer);
    assert_eq!(engine.reused(), 0);
}

#[test]
fn a_file_under_another_components_name_is_not_loaded() {
    let folder = Folder::new("renamed");
    let digest = |name: &str| {
        let policy = folder.engine().load(PolicyKind::Fee, &guest(name));
        policy.unwrap_or_else(|reason| panic!("{name}: {reason}")).digest().to_owned()
    };
    let fee = digest("tiered-fee");
    for entry in fs::read_dir(&folder.0).expect("the folder") {
        fs::remove_file(entry.expect("an entry").path()).expect("it is removed");
    }
    let behaved = digest("hostile");
    let mut copied = 0;
    for entry in fs::read_dir(&folder.0).expect("the folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        if let Some(rest) = name.strip_prefix(&behaved) {
            fs::copy(&path, folder.0.join(format!("{fee}{rest}"))).expect("it is copied");
            copied += 1;
        }
    }
    assert_eq!(copied, 1, "its native code is in the folder");
    let again = folder.engine();
    assert!(priced(&again).outcome.is_ok_and(|schedule| schedule.rule.starts_with("tier")));
    assert_eq!(again.reused(), 0);
}

#[test]
fn a_folder_that_others_may_enter_is_refused() {
    let folder = Folder::new("open");
    fs::create_dir(&folder.0).expect("a folder");
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).expect("open to others");
    let cache = NativeCodeCache { folder: folder.0.clone(), key: [7; 32] };
    let refused = PolicyEngine::with_native_code(generous_limits(), Some(&cache), None);
    let reason = refused.err().expect("it is refused").to_string();
    assert!(reason.contains("accessible to its owner alone"), "{reason}");
}
