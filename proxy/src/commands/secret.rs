//! `rampart secret rotate`.

use clap::Subcommand;
use http::Method;
use serde_json::json;

use super::{Call, StartupError, Target};

/// Secrets of a partner.
#[derive(Debug, Subcommand)]
pub(crate) enum Secret {
    /// Rotate a secret and print the new one, once; earlier ones end with the overlap.
    Rotate {
        /// The partner's slug.
        slug: String,
        /// password, signing or webhook.
        kind: String,
        /// Seconds for which the earlier one is still good.
        #[arg(long, value_name = "SECONDS")]
        overlap_seconds: Option<u32>,
    },
}

impl Call for Secret {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        let Self::Rotate { slug, kind, overlap_seconds } = self;
        let body = json!({ "kind": kind, "overlapSeconds": overlap_seconds });
        target.send(Method::POST, &["partners", &slug, "secrets", "rotate"], body)
    }
}
