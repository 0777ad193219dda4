//! The project files that `rampart policy new` writes, by kind and language.
//!
//! A project stands alone: what a policy is written against (the guest crate for Rust, a header for
//! C, a module for JavaScript) is copied into it, so it needs neither this repository nor a package that
//! nobody published.

use std::path::PathBuf;

use clap::ValueEnum;
use componentize::WIT;
use rampart_core::policies::{PolicyKind, Template};

/// The source language of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Language {
    /// Rust, with the guest crate.
    Rust,
    /// C, with one header.
    C,
    /// JavaScript, with one module.
    #[value(name = "javascript", alias = "js")]
    JavaScript,
}

/// A file of `plugins/`, as text.
macro_rules! plugins {
    ($path:literal) => {
        include_str!(concat!("../../../../plugins/", $path))
    };
}

/// The guest crate's path to the WIT contract: in the repository, and in a project.
const WIT_IN_REPOSITORY: &str = "path: \"../../../wit\"";
const WIT_IN_PROJECT: &str = "path: \"wit\"";

/// The guest crate without the modules of the kinds.
const GUEST_CRATE: [(&str, &str); 8] = [
    ("about.rs", plugins!("guests/rampart-guest/src/about.rs")),
    ("arena.rs", plugins!("guests/rampart-guest/src/arena.rs")),
    ("bindings.rs", plugins!("guests/rampart-guest/src/bindings.rs")),
    ("config.rs", plugins!("guests/rampart-guest/src/config.rs")),
    ("decimal.rs", plugins!("guests/rampart-guest/src/decimal.rs")),
    ("encoding.rs", plugins!("guests/rampart-guest/src/encoding.rs")),
    ("lib.rs", plugins!("guests/rampart-guest/src/lib.rs")),
    ("log.rs", plugins!("guests/rampart-guest/src/log.rs")),
];

/// The clang arguments that compile a policy in C to a core module, one per line.
pub(super) const CLANG_FLAGS: &str = plugins!("guests/c/clang-flags");

/// The arguments of componentize-qjs that make an admissible component, one per line.
pub(super) const COMPONENTIZE_FLAGS: &str = plugins!("guests/javascript/componentize-flags");

/// The name in the packages' files of the guests in JavaScript.
const GUESTS_PACKAGE: &str = "rampart-guests";

impl Language {
    /// The decision's source in a first policy of this kind.
    const fn decision(self, template: Template) -> &'static str {
        match self {
            Self::Rust => template.rust,
            Self::C => template.c,
            Self::JavaScript => template.javascript,
        }
    }

    /// The file with the decision.
    pub(super) const fn source(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::C => "policy.c",
            Self::JavaScript => "policy.js",
        }
    }

    /// Notes on the required tools, for the project's author.
    const fn about(self) -> &'static str {
        match self {
            Self::Rust => {
                "It needs Rust 1.95 or later with `rustup target add wasm32-unknown-unknown`. \
                 `rampart-guest/` hides the\nbindings and may stay as it is."
            }
            Self::C => {
                "It needs clang and lld. `rampart_policy.h` is all there is beside the language; \
                 there is no libc."
            }
            Self::JavaScript => {
                "It needs Node.js 18 or later with npm: the first build installs componentize-qjs in the \
                 version of\n`package-lock.json`. `rampart-policy.js` has settings, exact decimals, UTF-8 \
                 and base64, and may stay as it is.\nThere is no `console`: `logged` logs exceptions, and \
                 `log.write` of `rampart:policy/log@0.1.0` what you like."
            }
        }
    }
}

/// The files of a project of this name: path in it, and text.
pub(super) fn files(name: &str, kind: PolicyKind, language: Language) -> Vec<(PathBuf, String)> {
    let own = |path: &str, text: &str| {
        let text = text
            .replace("@name@", name)
            .replace("@kind@", kind.as_str())
            .replace("@source@", language.source())
            .replace("@language@", language.about());
        (PathBuf::from(path), text)
    };
    let template = kind.template();
    let copied = |path: &str, text: &str| (PathBuf::from(path), text.to_owned());
    let mut files = vec![
        own("README.md", plugins!("templates/project.md")),
        own(language.source(), language.decision(template)),
        copied("vectors.json", template.vectors),
        copied(".gitignore", "/target\n/node_modules\n*.wasm\n"),
    ];
    match language {
        Language::C => {
            files.push(copied("rampart_policy.h", plugins!("guests/c/rampart_policy.h")));
        }
        Language::JavaScript => {
            let named =
                |path: &str, text: &str| (PathBuf::from(path), text.replace(GUESTS_PACKAGE, name));
            files.extend([
                named("package.json", plugins!("guests/javascript/package.json")),
                named("package-lock.json", plugins!("guests/javascript/package-lock.json")),
                copied("rampart-policy.js", plugins!("guests/javascript/rampart-policy.js")),
            ]);
            // One kind alone, so that the compiler need not be told which.
            let of_kind = format!("{}.wit", kind.as_str());
            let contract =
                WIT.into_iter().filter(|(file, _)| [of_kind.as_str(), "types.wit"].contains(file));
            files.extend(
                contract.map(|(file, text)| (PathBuf::from("wit").join(file), text.to_owned())),
            );
        }
        Language::Rust => {
            files.extend([
                own("Cargo.toml", plugins!("templates/rust/policy.toml")),
                // The versions that Rampart's own guests use; cargo drops what is not used here.
                copied("Cargo.lock", plugins!("guests/Cargo.lock")),
                copied(".cargo/config.toml", plugins!("guests/.cargo/config.toml")),
                copied("rampart-guest/Cargo.toml", plugins!("templates/rust/rampart-guest.toml")),
            ]);
            let modules = PolicyKind::ALL.map(|kind| kind.template().guest);
            files.extend(GUEST_CRATE.into_iter().chain(modules).map(|(file, text)| {
                let text = text.replace(WIT_IN_REPOSITORY, WIT_IN_PROJECT);
                (PathBuf::from("rampart-guest/src").join(file), text)
            }));
            files.extend(WIT.map(|(file, text)| {
                (PathBuf::from("rampart-guest/wit").join(file), text.to_owned())
            }));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_called_what_its_author_said_and_leads_nowhere_else() {
        for kind in PolicyKind::ALL {
            for language in Language::value_variants() {
                let files = files("acme-rule", kind, *language);
                for (path, text) in &files {
                    assert!(path.is_relative(), "{}", path.display());
                    assert!(!text.contains("@name@"), "{}", path.display());
                    assert!(!text.contains("../"), "{} leads out", path.display());
                }
                let named = files.iter().filter(|(_, text)| text.contains("acme-rule")).count();
                assert!(named >= 2, "{kind:?} in {language:?}");
            }
        }
    }
}
