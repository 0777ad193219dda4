//! `rampart savings-plan open|deposit`.

use clap::Subcommand;
use http::Method;
use serde_json::json;

use super::{Body, Members, Run, StartupError, Target, path};

/// Savings plans: codes to which users deposit.
#[derive(Debug, Subcommand)]
pub(crate) enum SavingsPlan {
    /// Open a savings plan: `cryptoCurrency=BTC walletAddress=bc1q…`.
    Open {
        /// The user's uuid.
        uuid: String,
        #[command(flatten)]
        members: Members,
    },
    /// Report a deposit that has arrived: the same reference is the same deposit.
    Deposit {
        /// The plan's code.
        code: String,
        /// Above zero.
        amount: serde_json::Number,
        /// The currency's code.
        currency: String,
        /// The bank's own name for it.
        #[arg(long)]
        reference: String,
        #[command(flatten)]
        target: Target,
    },
}

impl Run for SavingsPlan {
    fn run(self) -> Result<(), StartupError> {
        match self {
            Self::Open { uuid, members } => {
                members.send(Method::POST, &path(&["users", &uuid, "dca-codes"]))
            }
            Self::Deposit { code, amount, currency, reference, target } => {
                let body =
                    json!({"amount": amount, "currencyCode": currency, "reference": reference});
                let path = path(&["dca-codes", &code, "deposits"]);
                target.send(Method::POST, &path, Body::Json(body))
            }
        }
    }
}
