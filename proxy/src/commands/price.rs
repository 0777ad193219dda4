//! `rampart price set|void-quotes|list`.

use clap::Subcommand;
use http::Method;
use serde_json::json;

use super::{Call, Page, StartupError, Target};

const COLUMNS: &str = "\
    PAIR pair, STATUS status, PRICE price, FIXED fixed, OBSERVED observedAt, SOURCES SAY deviating";
/// The end of the quotes sealed so far: the edge takes a time to come for its own now. A constant,
/// because the call that a second person has agreed to is made again as it was.
const SO_FAR: &str = "9999-12-31T23:59:59Z";

/// Prices.
#[derive(Debug, Subcommand)]
pub(crate) enum Price {
    /// Set the mid price of a pair.
    Set {
        /// Such as BTC-EUR.
        pair: String,
        /// Fiat for one unit of crypto, such as 51234.56.
        price: serde_json::Number,
        /// Seconds after which it is too old to quote; else the pair says.
        #[arg(long, value_name = "SECONDS")]
        max_age_seconds: Option<u32>,
        /// Void the quotes that were sealed so far: the price before was wrong.
        #[arg(long)]
        void_quotes: bool,
    },
    /// Void the quotes of a pair that were sealed so far.
    VoidQuotes {
        /// Such as BTC-EUR.
        pair: String,
    },
    /// List pairs with their prices, and what the sources say.
    List(Page),
}

impl Call for Price {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::Set { pair, price, max_age_seconds, void_quotes } => {
                let mut body = json!({ "price": price });
                if let Some(seconds) = max_age_seconds {
                    body["maxAgeSeconds"] = json!(seconds);
                }
                if void_quotes {
                    body["quotesValidFrom"] = json!(SO_FAR);
                }
                target.send(Method::PUT, &["prices", &pair], body)
            }
            Self::VoidQuotes { pair } => {
                let body = json!({ "quotesValidFrom": SO_FAR });
                target.send(Method::PATCH, &["pairs", &pair], body)
            }
            Self::List(page) => page.print(target, &["prices"], [], COLUMNS),
        }
    }
}
