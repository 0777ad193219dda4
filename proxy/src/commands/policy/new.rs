//! `rampart policy new`: a small project that builds and passes its test vectors as it is.

use std::fs;
use std::path::Path;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rampart_core::policies::PolicyKind;

use super::template::{Language, files};
use crate::commands::{Run, StartupError, write_file};
use crate::output;
use crate::startup_error::Context as _;

/// Longest name of a project, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Arguments of `rampart policy new`.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// The folder to make, whose name is also the policy's: small letters, digits and hyphens.
    name: String,
    /// The kind of policy.
    #[arg(long, value_parser = kind_parser())]
    kind: PolicyKind,
    /// The source language.
    #[arg(long, value_enum, default_value = "rust")]
    lang: Language,
}

impl Run for New {
    fn run(self) -> Result<(), StartupError> {
        let (name, kind) = (self.name.as_str(), self.kind.as_str());
        check_name(name)?;
        let folder = Path::new(name);
        fs::create_dir(folder).context(format_args!("'{name}' cannot be made"))?;
        for (path, text) in files(name, self.kind, self.lang) {
            let file = folder.join(path);
            fs::create_dir_all(file.parent().unwrap_or(folder))
                .context(format_args!("'{}' cannot be written", file.display()))?;
            write_file(&file, text.as_bytes())?;
        }
        output::line(format_args!(
            "{name}/{} is a {kind} policy. Next:\n\n    cd {name}\n    rampart policy build\n    \
             rampart policy check {kind} {name}.wasm",
            self.lang.source(),
        ));
        Ok(())
    }
}

/// Reads the name of a kind.
fn kind_parser() -> impl TypedValueParser<Value = PolicyKind> {
    PossibleValuesParser::new(PolicyKind::NAMES)
        .try_map(|name| PolicyKind::from_name(&name).ok_or("no such kind"))
}

/// Checks a name that serves as folder name, crate name and part of the policy's name.
fn check_name(name: &str) -> Result<(), StartupError> {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let fits = name.len() <= NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(allowed);
    match fits {
        true => Ok(()),
        false => {
            Err(format!("'{name}' is no name: small letters, digits and hyphens, a letter first")
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_folder_and_a_crate() {
        for name in ["fee", "acme-fee-2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "Acme", "2fee", "-fee", "a/b", "..", "a b", "a_b", &"a".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
