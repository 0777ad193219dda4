//! The project files that `rampart policy new` writes, by kind and language.
//!
//! A project stands alone: what a policy is written against (the guest crate for Rust, a header for
//! C) is copied into it, so it needs neither this repository nor a crate that nobody published.

use std::path::PathBuf;

use clap::ValueEnum;
use componentize::WIT;

/// The kind of policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// Fees of a quote or an order.
    Fee,
    /// The order of payment methods.
    MethodOrder,
    /// Verification of a partner's signature.
    Signature,
}

/// The source language of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Language {
    /// Rust, with the guest crate.
    Rust,
    /// C, with one header.
    C,
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

const GUEST_CRATE: [(&str, &str); 11] = [
    ("about.rs", plugins!("guests/rampart-guest/src/about.rs")),
    ("arena.rs", plugins!("guests/rampart-guest/src/arena.rs")),
    ("bindings.rs", plugins!("guests/rampart-guest/src/bindings.rs")),
    ("config.rs", plugins!("guests/rampart-guest/src/config.rs")),
    ("decimal.rs", plugins!("guests/rampart-guest/src/decimal.rs")),
    ("encoding.rs", plugins!("guests/rampart-guest/src/encoding.rs")),
    ("fee.rs", plugins!("guests/rampart-guest/src/fee.rs")),
    ("lib.rs", plugins!("guests/rampart-guest/src/lib.rs")),
    ("log.rs", plugins!("guests/rampart-guest/src/log.rs")),
    ("method_order.rs", plugins!("guests/rampart-guest/src/method_order.rs")),
    ("signature.rs", plugins!("guests/rampart-guest/src/signature.rs")),
];

/// The clang arguments that compile a policy in C to a core module, one per line.
pub(super) const CLANG_FLAGS: &str = plugins!("guests/c/clang-flags");

impl Kind {
    /// Its name in commands and paths.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fee => "fee",
            Self::MethodOrder => "method-order",
            Self::Signature => "signature",
        }
    }

    const fn vectors(self) -> &'static str {
        match self {
            Self::Fee => plugins!("templates/fee.json"),
            Self::MethodOrder => plugins!("templates/method-order.json"),
            Self::Signature => plugins!("templates/signature.json"),
        }
    }

    const fn source(self, language: Language) -> &'static str {
        match (self, language) {
            (Self::Fee, Language::Rust) => plugins!("templates/rust/fee.rs"),
            (Self::MethodOrder, Language::Rust) => plugins!("templates/rust/method-order.rs"),
            (Self::Signature, Language::Rust) => plugins!("templates/rust/signature.rs"),
            (Self::Fee, Language::C) => plugins!("templates/c/fee.c"),
            (Self::MethodOrder, Language::C) => plugins!("templates/c/method-order.c"),
            (Self::Signature, Language::C) => plugins!("templates/c/signature.c"),
        }
    }
}

impl Language {
    /// The file with the decision.
    pub(super) const fn source(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::C => "policy.c",
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
        }
    }
}

/// The files of a project of this name: path in it, and text.
pub(super) fn files(name: &str, kind: Kind, language: Language) -> Vec<(PathBuf, String)> {
    let own = |path: &str, text: &str| {
        let text = text
            .replace("@name@", name)
            .replace("@kind@", kind.name())
            .replace("@source@", language.source())
            .replace("@language@", language.about());
        (PathBuf::from(path), text)
    };
    let copied = |path: &str, text: &str| (PathBuf::from(path), text.to_owned());
    let mut files = vec![
        own("README.md", plugins!("templates/project.md")),
        own(language.source(), kind.source(language)),
        copied("vectors.json", kind.vectors()),
        copied(".gitignore", "/target\n*.wasm\n"),
    ];
    match language {
        Language::C => {
            files.push(copied("rampart_policy.h", plugins!("guests/c/rampart_policy.h")));
        }
        Language::Rust => {
            files.extend([
                own("Cargo.toml", plugins!("templates/rust/policy.toml")),
                // The versions that Rampart's own guests use; cargo drops what is not used here.
                copied("Cargo.lock", plugins!("guests/Cargo.lock")),
                copied(".cargo/config.toml", plugins!("guests/.cargo/config.toml")),
                copied("rampart-guest/Cargo.toml", plugins!("templates/rust/rampart-guest.toml")),
            ]);
            files.extend(GUEST_CRATE.map(|(file, text)| {
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
        for kind in Kind::value_variants() {
            for language in Language::value_variants() {
                let files = files("acme-rule", *kind, *language);
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
