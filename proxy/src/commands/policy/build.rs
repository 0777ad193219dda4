//! `rampart policy build`: the component of a project, in one command.
//!
//! It runs the compiler of the language and makes a component of the module that comes out; the
//! contract is in this binary, so the author needs nothing but the compiler. The one of JavaScript
//! makes a component itself, by the contract in the project.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use componentize::component;
use serde_json::Value;

use super::template::{CLANG_FLAGS, COMPONENTIZE_FLAGS, Language};
use crate::commands::{Run, StartupError, read_file, write_file};
use crate::output;
use crate::startup_error::Context as _;

const WASM_TARGET: &str = "wasm32-unknown-unknown";
/// Debian's compiler and the source of its standard library: for where rustup cannot fetch a target.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_LIBRARY: &str = "/usr/lib/rustlib/src/rust/library";
/// The compiler of JavaScript in a project; its command beside it does not run under Node.js 18.
const COMPONENTIZE: &str = "node_modules/componentize-qjs/cli.mjs";
/// Installs what the project's lock pins. None of it has a script to run.
const NPM_INSTALL: [&str; 6] =
    ["ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
/// The task of a compiler, as the sentence about its failure names it.
const COMPILE: &str = "compile the policy";

/// Arguments of `rampart policy build`.
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// The project: a folder with Cargo.toml, policy.c or policy.js.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The output file; by default in the project, named after the folder.
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Compile nothing: make a component of this core module, from whatever compiler.
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
}

impl Run for Build {
    fn run(self) -> Result<(), StartupError> {
        let out = self.out()?;
        let component = match (&self.module, self.language()) {
            (Some(module), _) => component(&read_file(module)?)?,
            (None, Some(Language::Rust)) => component(&self.compile_rust()?)?,
            (None, Some(Language::C)) => component(&self.compile_c(&out)?)?,
            (None, Some(Language::JavaScript)) => self.compile_javascript(&out)?,
            (None, None) => {
                let folder = self.folder.display();
                return Err(
                    format!("'{folder}' has no Cargo.toml, no policy.c and no policy.js").into()
                );
            }
        };
        write_file(&out, &component)?;
        output::line(format_args!("{}: {} bytes", out.display(), component.len()));
        Ok(())
    }
}

impl Build {
    fn out(&self) -> Result<PathBuf, StartupError> {
        if let Some(out) = &self.out {
            return Ok(out.clone());
        }
        let folder = self.folder.canonicalize();
        let folder = folder.context(format_args!("'{}' cannot be used", self.folder.display()))?;
        let name = folder.file_name().unwrap_or(OsStr::new("policy"));
        Ok(self.folder.join(name).with_extension("wasm"))
    }

    fn language(&self) -> Option<Language> {
        let languages = [
            ("Cargo.toml", Language::Rust),
            (Language::C.source(), Language::C),
            (Language::JavaScript.source(), Language::JavaScript),
        ];
        let is_there = |(file, _): &(&str, Language)| self.folder.join(file).is_file();
        languages.into_iter().find(is_there).map(|(_, language)| language)
    }

    fn compile_rust(&self) -> Result<Vec<u8>, StartupError> {
        let mut cargo = cargo();
        cargo.args(["build", "--release", "--target", WASM_TARGET]);
        cargo.arg("--message-format=json-render-diagnostics").current_dir(&self.folder);
        // Flags for this machine's programs would be taken for the module's.
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        let messages = run("cargo", COMPILE, &mut cargo)?;
        let artifact = module_of(&messages).ok_or("cargo made no module: is it a `cdylib`?")?;
        read_file(&artifact)
    }

    fn compile_c(&self, out: &Path) -> Result<Vec<u8>, StartupError> {
        let module = out.with_extension("module.wasm");
        let mut clang = Command::new("clang");
        clang.args(CLANG_FLAGS.lines()).arg("-o").arg(&module);
        clang.arg(self.folder.join(Language::C.source()));
        run("clang", COMPILE, &mut clang)?;
        take(&module)
    }

    /// The component of a project in JavaScript, whose compiler is installed first if it is missing.
    fn compile_javascript(&self, out: &Path) -> Result<Vec<u8>, StartupError> {
        let program = self.folder.join(COMPONENTIZE);
        if !program.is_file() {
            let mut npm = Command::new("npm");
            npm.args(NPM_INSTALL).current_dir(&self.folder);
            run("npm", "install the compiler", &mut npm)?;
        }
        let component = out.with_extension("component.wasm");
        let mut node = Command::new("node");
        node.arg(program).args(COMPONENTIZE_FLAGS.lines());
        node.arg("--wit").arg(self.folder.join("wit"));
        node.arg("--js").arg(self.folder.join(Language::JavaScript.source()));
        node.arg("--module-root").arg(&self.folder).arg("--output").arg(&component);
        run("node", COMPILE, &mut node)?;
        take(&component)
    }
}

/// The author's cargo, or Debian's where only that one can build for WebAssembly.
fn cargo() -> Command {
    let target = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", WASM_TARGET])
        .stderr(Stdio::null())
        .output();
    let has_target = target.is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        !folder.is_empty() && Path::new(&folder).is_dir()
    });
    if has_target || !Path::new(DEBIAN_CARGO).is_file() || !Path::new(DEBIAN_LIBRARY).is_dir() {
        return Command::new("cargo");
    }
    let mut cargo = Command::new(DEBIAN_CARGO);
    cargo.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
    cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld");
    cargo.env("CARGO_UNSTABLE_BUILD_STD", "std,panic_abort");
    cargo
}

/// Runs a program for a task; what it wrote to standard output.
fn run(name: &str, task: &str, command: &mut Command) -> Result<Vec<u8>, StartupError> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.context(format_args!("{name} cannot be run (is it installed?)"))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(StartupError::from(format!("{name} could not {task}"))),
    }
}

/// The module among the artifacts that cargo lists, one JSON object a line; the last is the
/// project's own.
fn module_of(messages: &[u8]) -> Option<PathBuf> {
    let mut artifacts = messages.split(|byte| *byte == b'\n').filter_map(|line| {
        let message: Value = serde_json::from_slice(line).ok()?;
        let files = message["filenames"].as_array()?;
        let module = files.iter().filter_map(Value::as_str).find(|file| file.ends_with(".wasm"))?;
        Some(PathBuf::from(module))
    });
    artifacts.next_back()
}

/// Reads a file that a compiler wrote, and removes it.
fn take(file: &Path) -> Result<Vec<u8>, StartupError> {
    let bytes = read_file(file);
    // What stays is a file that the project's .gitignore names.
    let _ = fs::remove_file(file);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_the_last_artifact_for_webassembly() {
        let messages = concat!(
            "{\"reason\":\"compiler-artifact\",\"filenames\":[\"/t/libguest.rlib\"]}\n",
            "{\"reason\":\"compiler-artifact\",\"filenames\":[\"/t/acme.wasm\"]}\n",
            "{\"reason\":\"build-finished\",\"success\":true}\n",
        );
        assert_eq!(module_of(messages.as_bytes()), Some(PathBuf::from("/t/acme.wasm")));
        assert_eq!(module_of(b"{\"reason\":\"build-finished\"}\n"), None);
    }
}
