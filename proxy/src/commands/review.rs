//! `rampart review list|claim|release`.

use clap::{Args, Subcommand, ValueEnum};
use http::Method;

use super::{Body, Page, Run, StartupError, Target, path, possible_value};

const COLUMNS: &str = "\
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
    #[command(flatten)]
    target: Target,
}

impl ReviewArgs {
    fn call(&self, method: Method) -> Result<(), StartupError> {
        let path = path(&["reviews", &possible_value(&self.subject), &self.id, "claim"]);
        self.target.send(method, &path, Body::None)
    }
}

impl Run for Review {
    fn run(self) -> Result<(), StartupError> {
        match self {
            Self::List { subject, partner, page } => {
                let subject = subject.as_ref().map(possible_value);
                page.print("reviews", [("subject", subject), ("partner", partner)], COLUMNS)
            }
            Self::Claim(review) => review.call(Method::POST),
            Self::Release(review) => review.call(Method::DELETE),
        }
    }
}
