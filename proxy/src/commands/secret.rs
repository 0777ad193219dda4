//! `rampart secret rotate`.

use clap::Subcommand;
use http::Method;
use serde_json::json;

use super::{Body, Run, StartupError, Target, path};

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
        #[command(flatten)]
        target: Target,
    },
}

impl Run for Secret {
    fn run(self) -> Result<(), StartupError> {
        let Self::Rotate { slug, kind, overlap_seconds, target } = self;
        let body = json!({ "kind": kind, "overlapSeconds": overlap_seconds });
        let path = path(&["partners", &slug, "secrets", "rotate"]);
        target.send(Method::POST, &path, Body::Json(body))
    }
}
