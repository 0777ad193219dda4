//! `rampart review` and `rampart screening`.

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::{Call, ObjectArgs, Page, StartupError, Target};

pub(super) const REVIEWS: &str = "\
    WAITING SINCE waitingSince, SUBJECT subject, ID id, PARTNER partner, REASONS reasons, \
    CLAIMED BY claimedBy, CLAIMED UNTIL claimedUntil";

/// Users and orders that wait for a person.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Review {
    /// List them, oldest first.
    List {
        /// Users or orders alone.
        #[arg(long)]
        subject: Option<Subject>,
        /// The partner's slug.
        #[arg(long)]
        partner: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Claim one for half an hour; claim it again for another half.
    Claim(ReviewArgs),
    /// Give a claim back.
    Release(ReviewArgs),
}

/// A user or an order.
#[derive(Clone, Copy, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Subject {
    /// A user.
    User,
    /// An order.
    Order,
}

/// One subject of the queue.
#[derive(Debug, Args, Serialize)]
pub(crate) struct ReviewArgs {
    subject: Subject,
    /// The user's uuid or the order's number.
    id: String,
}

impl Call for Review {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { .. } => target.list("reviews", self, REVIEWS),
            Self::Claim(review) => target.call("POST reviews/{subject}/{id}/claim", review),
            Self::Release(review) => target.call("DELETE reviews/{subject}/{id}/claim", review),
        }
    }
}

pub(super) const SCREENINGS: &str =
    "CREATED createdAt, ID id, PARTNER partner, ORDER orderId, USER userId, STATE state";

/// Screenings of wallets and persons.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
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
        #[serde(rename = "orderId")]
        order: Option<String>,
        /// The person that it is of.
        #[arg(long, value_name = "UUID")]
        #[serde(rename = "userId")]
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
#[derive(Clone, Copy, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
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
    // Null, so no criterion.
    #[serde(untagged)]
    Any,
}

/// An operator's decision.
#[derive(Clone, Copy, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Decision {
    /// Nothing is held against it.
    Clear,
    /// Coins must not leave.
    Block,
}

impl Call for Screening {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { .. } => target.list("screenings", self, SCREENINGS),
            Self::Show(screening) => target.call("GET screenings/{id}", screening),
            Self::Decide { .. } => target.call("POST screenings/{id}/decision", self),
        }
    }
}
