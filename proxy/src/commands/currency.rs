//! `rampart currency list`.

use clap::Subcommand;

use super::{Call, Page, StartupError, Target};

const COLUMNS: &str =
    "CODE code, KIND kind, NAME name, DECIMALS decimals, NETWORK network, CAIP-19 caip19";

/// Currencies, fiat and crypto.
#[derive(Debug, Subcommand)]
pub(crate) enum Currency {
    /// List currencies by their codes.
    List(Page),
}

impl Call for Currency {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        let Self::List(page) = self;
        page.print(target, &["currencies"], [], COLUMNS)
    }
}
