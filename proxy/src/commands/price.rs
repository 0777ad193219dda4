//! `rampart price set`.

use clap::Subcommand;
use http::Method;

use super::Target;
use crate::operator::Body;
use crate::startup_error::StartupError;

/// Prices.
#[derive(Debug, Subcommand)]
pub(crate) enum Price {
    /// Set the mid price of a pair.
    Set {
        /// Such as BTC-EUR.
        pair: String,
        /// Fiat for one unit of crypto, such as 51234.56.
        price: serde_json::Number,
        #[command(flatten)]
        target: Target,
    },
    /// List pairs with their prices.
    List {
        #[command(flatten)]
        target: Target,
    },
}

impl Price {
    /// Does it.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub(crate) fn run(self) -> Result<(), StartupError> {
        match self {
            Self::Set { pair, price, target } => {
                let body = Body::Json(serde_json::json!({ "price": price }));
                let path = format!("prices/{pair}");
                target.run(async |o| o.call(Method::PUT, &path, body).await)
            }
            Self::List { target } => target.run(async |o| o.get("pairs").await),
        }
    }
}
