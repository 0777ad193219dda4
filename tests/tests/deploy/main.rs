//! The files of `deploy/`, held against the programs that read them.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "what a test cannot do must fail it")]

mod citus;
mod compose;
mod dashboards;
mod generators;
mod image;
mod kubernetes;
mod package;
mod prometheus;
mod release;
mod restore;
mod runbooks;
mod settings;
mod systemd;

use std::fs;
use std::process::Command;

use rampart_tests::repository::root;

/// The text of a file of `deploy/`.
fn read(path: &str) -> String {
    fs::read_to_string(root().join("deploy").join(path)).unwrap()
}

/// The names of the files in a folder of `deploy/`, without their extension, sorted.
fn names(folder: &str, extension: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join("deploy").join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let fitting = paths.filter(|path| path.extension().is_some_and(|found| found == extension));
    let mut names: Vec<_> =
        fitting.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Runs a program of `deploy/validators` in `deploy/` and gives what it prints; one that fails fails
/// the test.
fn validator(arguments: &[&str]) -> String {
    let mut command = Command::new(root().join("deploy/validators"));
    let output = command.args(arguments).current_dir(root().join("deploy")).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {out}\n{err}");
    out
}
