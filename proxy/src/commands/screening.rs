//! `rampart screening list|show|decide`.

use clap::{Subcommand, ValueEnum};
use http::Method;
use serde_json::json;

use super::{Call, ObjectArgs, Page, StartupError, Target, possible_value};

const COLUMNS: &str =
    "CREATED createdAt, ID id, PARTNER partner, ORDER orderId, USER userId, STATE state";

/// Screenings of wallets and persons.
#[derive(Debug, Subcommand)]
pub(crate) enum Screening {
    /// List those of a state, oldest first: those that wait for an operator if none is given.
    List {
        /// The state.
        #[arg(long, value_enum, default_value_t = State::Review)]
        state: State,
        /// The partner's slug.
        #[arg(long)]
        partner: Option<String>,
        /// The number of the order whose wallet it is of.
        #[arg(long)]
        order: Option<String>,
        /// The person that it is of.
        #[arg(long, value_name = "UUID")]
        user: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show one with the provider's reasons.
    Show(ObjectArgs),
    /// Let the coins leave that wait for it, or hold them.
    Decide {
        /// Its id.
        id: String,
        decision: Decision,
        /// For the audit.
        #[arg(long)]
        reason: String,
    },
}

/// The state of a screening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Nobody has decided yet.
    Pending,
    /// Nothing is held against it.
    Clear,
    /// It waits for an operator.
    Review,
    /// Coins must not leave.
    Block,
    /// Each of them.
    Any,
}

/// An operator's decision.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Decision {
    /// Nothing is held against it.
    Clear,
    /// Coins must not leave.
    Block,
}

impl Call for Screening {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { state, partner, order, user, page } => {
                let state = (state != State::Any).then(|| possible_value(&state));
                let criteria =
                    [("state", state), ("partner", partner), ("orderId", order), ("userId", user)];
                page.print(target, &["screenings"], criteria, COLUMNS)
            }
            Self::Show(screening) => target.get(&["screenings", &screening.id]),
            Self::Decide { id, decision, reason } => {
                let body = json!({ "decision": possible_value(&decision), "reason": reason });
                target.send(Method::POST, &["screenings", &id, "decision"], body)
            }
        }
    }
}
