//! `rampart offer expire`.

use clap::Subcommand;
use http::Method;

use super::{Body, Call, StartupError, Target};

/// Offers.
#[derive(Debug, Subcommand)]
pub(crate) enum Offer {
    /// End an offer now.
    Expire {
        /// The offer's uuid.
        uuid: String,
    },
}

impl Call for Offer {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        let Self::Expire { uuid } = self;
        target.send(Method::POST, &["offers", &uuid, "expire"], Body::None)
    }
}
