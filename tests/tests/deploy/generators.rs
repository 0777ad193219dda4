//! The OpenAPI documents, held against the linters and generators that strangers use. The documents
//! are the reviewed ones, which the contract tests hold to what is served.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::root;

/// The documents, in `tests/fixtures/`.
const DOCUMENTS: [&str; 3] = ["openapi", "openapi-operators", "openapi-connectors"];

fn fixture(name: &str) -> PathBuf {
    root().join("tests/fixtures").join(format!("{name}.json"))
}

/// The number of operations of a document.
fn operations(name: &str) -> usize {
    let text = fs::read_to_string(fixture(name)).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let paths = document["paths"].as_object().unwrap();
    paths.values().map(|methods| methods.as_object().unwrap().len()).sum()
}

/// Runs a program of `deploy/generators` in the repository's root.
fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(root().join("deploy/generators"));
    command.arg(program).args(arguments).current_dir(root()).output().unwrap()
}

/// The output of a program; one that fails fails the test.
fn granted(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {out}\n{err}");
    out
}

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generators").join(name);
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn linters_find_nothing() {
    for name in DOCUMENTS {
        let path = fixture(name);
        let path = path.to_str().unwrap();
        let arguments = ["lint", "--extends", "recommended", "--format", "json", path];
        let found: Value = serde_json::from_str(&granted("redocly", &arguments)).unwrap();
        assert_eq!(found["problems"], serde_json::json!([]), "{name}");
    }
    // It starts for longer than it reads.
    let rules = "tests/clients/spectral.yaml";
    let arguments = ["lint", "--quiet", "--fail-severity", "hint", "-r", rules];
    let documents = DOCUMENTS.map(fixture);
    let documents = documents.each_ref().map(|path| path.to_str().unwrap());
    granted("spectral", &[&arguments[..], &documents].concat());
}

#[test]
fn the_python_generator_makes_every_operation() {
    for name in DOCUMENTS {
        let library = folder("python").join(name);
        let (from, to) = (fixture(name), library.to_str().unwrap());
        let from = from.to_str().unwrap();
        let arguments = ["generate", "--meta", "none", "--path", from, "--output-path", to];
        let said = granted("openapi-python-client", &arguments);
        assert!(!said.contains("will not be generated"), "{name}: {said}");
        let made = files(&library.join("api"));
        let functions = made.iter().filter(|file| !file.ends_with("__init__.py")).count();
        assert_eq!(functions, operations(name), "{name}");
        granted("python", &["-m", "compileall", "-q", to]);
    }
}

#[test]
fn the_typescript_generator_makes_every_operation() {
    // Made empty once: the compiler reads the libraries of all documents.
    let (libraries, mut indexes) = (folder("typescript"), Vec::new());
    for name in DOCUMENTS {
        let library = libraries.join(name);
        let (from, to) = (fixture(name), library.to_str().unwrap());
        granted("openapi-ts", &["-i", from.to_str().unwrap(), "-o", to]);
        let functions = fs::read_to_string(library.join("sdk.gen.ts")).unwrap();
        let exported = functions.lines().filter(|line| line.starts_with("export const ")).count();
        assert_eq!(exported, operations(name), "{name}");
        indexes.push(library.join("index.ts").to_str().unwrap().to_owned());
    }
    // What the compiler itself needs is read once.
    let arguments = ["--strict", "--noEmit", "--target", "es2022", "--module", "nodenext"];
    let files = indexes.iter().map(String::as_str);
    granted("tsc", &arguments.into_iter().chain(files).collect::<Vec<_>>());
}
