//! `rampart currency list`.

use clap::Subcommand;

use super::{Page, Run, StartupError};

const COLUMNS: &str =
    "CODE code, KIND kind, NAME name, DECIMALS decimals, NETWORK network, CAIP-19 caip19";

/// Currencies, fiat and crypto.
#[derive(Debug, Subcommand)]
pub(crate) enum Currency {
    /// List currencies by their codes.
    List(Page),
}

impl Run for Currency {
    fn run(self) -> Result<(), StartupError> {
        let Self::List(page) = self;
        page.print("currencies", [], COLUMNS)
    }
}
