//! `rampart savings-plan open|deposit`.

use clap::Subcommand;
use http::Method;
use serde_json::json;

use super::{Call, Members, StartupError, Target};

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
    },
}

impl Call for SavingsPlan {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::Open { uuid, members } => {
                members.send(target, Method::POST, &["users", &uuid, "dca-codes"])
            }
            Self::Deposit { code, amount, currency, reference } => {
                let body =
                    json!({"amount": amount, "currencyCode": currency, "reference": reference});
                target.send(Method::POST, &["dca-codes", &code, "deposits"], body)
            }
        }
    }
}
