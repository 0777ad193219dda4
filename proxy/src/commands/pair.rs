//! `rampart pair list|set`.

use clap::Subcommand;
use http::Method;

use super::{Call, Members, Page, StartupError, Target};

const COLUMNS: &str = "PAIR pair, PRICE price, BUY buy, SELL sell";

/// Currency pairs.
#[derive(Debug, Subcommand)]
pub(crate) enum Pair {
    /// List pairs with their prices and directions.
    List(Page),
    /// Change a pair: `buy.status=disabled`, `spreadPercentage=1.5`, `quoteLifetimeSeconds=60`.
    Set {
        /// The pair, such as BTC-EUR.
        pair: String,
        #[command(flatten)]
        members: Members,
    },
}

impl Call for Pair {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List(page) => page.print(target, &["pairs"], [], COLUMNS),
            Self::Set { pair, members } => members.send(target, Method::PATCH, &["pairs", &pair]),
        }
    }
}
