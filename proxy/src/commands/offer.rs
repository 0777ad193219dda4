//! `rampart offer expire`.

use clap::Subcommand;
use http::Method;

use super::Run;
use super::Target;
use super::query::path;
use crate::admin_client::Body;
use crate::startup_error::StartupError;

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
