//! `rampart verification-key list|set|remove`.

use clap::Subcommand;
use http::Method;

use super::{Body, Members, Page, Run, StartupError, Target, path};

const COLUMNS: &str = "\
    NAME name, ALGORITHM algorithm, FROM notBefore, UNTIL notAfter, SET createdAt, \
    SHA-256 fingerprint";

/// Keys by which a partner's policy verifies signed requests.
#[derive(Debug, Subcommand)]
pub(crate) enum VerificationKey {
    /// List a partner's keys by name, without the keys.
    List {
        /// The partner's slug.
        slug: String,
        #[command(flatten)]
        page: Page,
    },
    /// Set a key: `algorithm=hmac-sha256 key=…`, with `notAfter` and a signature where it needs them.
    Set {
        /// The partner's slug.
        slug: String,
        /// The key's name.
        name: String,
        #[command(flatten)]
        members: Members,
    },
    /// Remove a key.
    Remove {
        /// The partner's slug.
        slug: String,
        /// The key's name.
        name: String,
        #[command(flatten)]
        target: Target,
    },
}

impl Run for VerificationKey {
    fn run(self) -> Result<(), StartupError> {
        match self {
            Self::List { slug, page } => {
                page.print(&path(&["partners", &slug, "verification-keys"]), [], COLUMNS)
            }
            Self::Set { slug, name, members } => {
                members.send(Method::PUT, &path(&["partners", &slug, "verification-keys", &name]))
            }
            Self::Remove { slug, name, target } => {
                let path = path(&["partners", &slug, "verification-keys", &name]);
                target.send(Method::DELETE, &path, Body::None)
            }
        }
    }
}
