//! `rampart verification-key list|set|remove`.

use clap::Subcommand;
use http::Method;

use super::{Body, Call, Members, Page, StartupError, Target};

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
    },
}

impl Call for VerificationKey {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { slug, page } => {
                page.print(target, &["partners", &slug, "verification-keys"], [], COLUMNS)
            }
            Self::Set { slug, name, members } => {
                members.send(target, Method::PUT, &["partners", &slug, "verification-keys", &name])
            }
            Self::Remove { slug, name } => {
                let key: &[&str] = &["partners", &slug, "verification-keys", &name];
                target.send(Method::DELETE, key, Body::None)
            }
        }
    }
}
