//! `rampart payment-method set`.

use clap::Subcommand;
use http::Method;

use super::Target;
use super::members::Members;
use super::query::segment;
use crate::startup_error::StartupError;

/// Payment methods.
#[derive(Debug, Subcommand)]
pub(crate) enum PaymentMethod {
    /// Change a method: `enabled=false`, `limit=5000`, `expirationPeriod=3600`.
    Set {
        /// The method's code, such as creditCard.
        code: String,
        #[command(flatten)]
        members: Members,
        #[command(flatten)]
        target: Target,
    },
}

impl PaymentMethod {
    /// Does it.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub(crate) fn run(self) -> Result<(), StartupError> {
        let Self::Set { code, members, target } = self;
        let (path, body) = (format!("payment-methods/{}", segment(&code)), members.body()?);
        target.run(async |o| o.call(Method::PATCH, &path, body).await)
    }
}
