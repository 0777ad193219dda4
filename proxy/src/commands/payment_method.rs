//! `rampart payment-method list|set`.

use clap::Subcommand;
use http::Method;

use super::{Call, Members, Page, StartupError, Target};

const COLUMNS: &str =
    "CODE code, ENABLED enabled, LABEL label, LIMIT limit, FEES fees, EXPIRATION expirationPeriod";

/// Payment methods.
#[derive(Debug, Subcommand)]
pub(crate) enum PaymentMethod {
    /// List methods with their terms.
    List(Page),
    /// Change a method: `enabled=false`, `limit=5000`, `expirationPeriod=3600`.
    Set {
        /// The method's code, such as creditCard.
        code: String,
        #[command(flatten)]
        members: Members,
    },
}

impl Call for PaymentMethod {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List(page) => page.print(target, &["payment-methods"], [], COLUMNS),
            Self::Set { code, members } => {
                members.send(target, Method::PATCH, &["payment-methods", &code])
            }
        }
    }
}
