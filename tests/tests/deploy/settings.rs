//! The settings that the files of `deploy/` give an edge: they exist, and policies have a cache.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use rampart_tests::process::binary;
use serde_json::Value;

use crate::{read, root};

/// Adds the settings that the files below a folder name in the form of the environment.
fn settings(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            settings(&entry.path(), found);
        } else if let Ok(text) = std::fs::read_to_string(entry.path()) {
            let in_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            let words = text.split(|c: char| !in_name(c));
            let names = words.filter_map(|word| word.strip_prefix("RAMPART__"));
            found.extend(names.map(|name| name.replace("__", ".").to_lowercase()));
        }
    }
}

#[test]
fn the_settings_exist() {
    let mut found = BTreeSet::new();
    settings(&root().join("deploy"), &mut found);
    assert!(found.contains("database.url_file"), "{found:?}");
    let output = Command::new(binary()).args(["config", "reference", "--json"]).output().unwrap();
    let known: Value = serde_json::from_slice(&output.stdout).unwrap();
    let known = known.as_array().unwrap().iter().map(|setting| setting["key"].as_str().unwrap());
    let known: BTreeSet<_> = known.map(str::to_owned).collect();
    assert_eq!(found.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// Volumes that keep the native code of policies from one start to the next, by packaging.
const POLICY_CACHE: [(&str, &[&str]); 6] = [
    (
        "systemd/rampart.service",
        &["CACHE_FOLDER=/var/cache/rampart\n", "CacheDirectory=rampart\n", "Mode=0700\n"],
    ),
    ("Containerfile", &["CACHE_FOLDER=/var/cache/rampart/policies\n"]),
    ("compose.yaml", &["\"cache:/var/cache/rampart\"", "\n  cache:\n", "read_only: true\n"]),
    ("kubernetes/base/settings.yaml", &["CACHE_FOLDER: /var/cache/rampart/policies\n"]),
    ("kubernetes/base/deployment.yaml", &["name: cache, mountPath: /var/cache/rampart }"]),
    ("helm/values.yaml", &["CACHE_FOLDER: /var/cache/rampart/policies\n"]),
];

#[test]
fn every_packaging_keeps_the_native_code_of_policies() {
    for (file, lines) in POLICY_CACHE {
        let text = read(file);
        for line in lines {
            assert!(text.contains(line), "{file}: {line}");
        }
    }
    let compose = read("compose.yaml");
    let in_memory = compose.lines().filter(|line| line.trim_start().starts_with("tmpfs:"));
    assert!(!in_memory.collect::<String>().contains("/var/cache"), "a restart would lose it");
}
