//! `rampart verification-key list|set|remove`.

use clap::Subcommand;
use http::Method;

use super::{Body, Members, Page, Run, StartupError, Target, path};

const COLUMNS: &[(&str, &str)] = &[
    ("NAME", "name"),
    ("ALGORITHM", "algorithm"),
    ("FROM", "notBefore"),
    ("UNTIL", "notAfter"),
    ("SET", "createdAt"),
    ("SHA-256", "fingerprint"),
];

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
        #[command(flatten)]
        target: Target,
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
        let (method, slug, name, body, target) = match self {
            Self::List { slug, page } => {
                let list = path(&["partners", &slug, "verification-keys"]);
                return page.print(&list, [], COLUMNS);
            }
            Self::Set { slug, name, members, target } => {
                (Method::PUT, slug, name, members.body()?, target)
            }
            Self::Remove { slug, name, target } => (Method::DELETE, slug, name, Body::None, target),
        };
        target.send(method, &path(&["partners", &slug, "verification-keys", &name]), body)
    }
}
