//! `rampart offer expire`.

use clap::Subcommand;
use http::Method;

use super::{Body, Run, StartupError, Target, path};

/// Offers.
#[derive(Debug, Subcommand)]
pub(crate) enum Offer {
    /// End an offer now.
    Expire {
        /// The offer's uuid.
        uuid: String,
        #[command(flatten)]
        target: Target,
    },
}

impl Run for Offer {
    fn run(self) -> Result<(), StartupError> {
        let Self::Expire { uuid, target } = self;
        target.send(Method::POST, &path(&["offers", &uuid, "expire"]), Body::None)
    }
}
