//! `rampart review` and `rampart screening`.

use clap::{Args, Subcommand, ValueEnum};
use http::Method;
use serde_json::json;

use super::{Body, Call, ObjectArgs, Page, StartupError, Target, possible_value};

pub(super) const REVIEWS: &str = "\
    WAITING SINCE waitingSince, SUBJECT subject, ID id, PARTNER partner, REASONS reasons, \
    CLAIMED BY claimedBy, CLAIMED UNTIL claimedUntil";

/// Users and orders that wait for a person.
#[derive(Debug, Subcommand)]
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
    /// Claim one for half an hour, or for another one.
    Claim(ReviewArgs),
    /// Give a claim back.
    Release(ReviewArgs),
}

/// A user or an order.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Subject {
    /// A user.
    User,
    /// An order.
    Order,
}

/// One subject of the queue.
#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    subject: Subject,
    /// The user's uuid or the order's number.
    id: String,
}

impl Call for Review {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        let claim = |review: ReviewArgs, method| {
            let subject = possible_value(&review.subject);
            target.send(method, &["reviews", &subject, &review.id, "claim"], Body::None)
        };
        match self {
            Self::List { subject, partner, page } => {
                let subject = subject.as_ref().map(possible_value);
                let criteria = [("subject", subject), ("partner", partner)];
                page.print(target, &["reviews"], criteria, REVIEWS)
            }
            Self::Claim(review) => claim(review, Method::POST),
            Self::Release(review) => claim(review, Method::DELETE),
        }
    }
}

pub(super) const SCREENINGS: &str =
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
                page.print(target, &["screenings"], criteria, SCREENINGS)
            }
            Self::Show(screening) => target.get(&["screenings", &screening.id]),
            Self::Decide { id, decision, reason } => {
                let body = json!({ "decision": possible_value(&decision), "reason": reason });
                target.send(Method::POST, &["screenings", &id, "decision"], body)
            }
        }
    }
}
