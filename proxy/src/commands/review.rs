//! `rampart review list|claim|release`.

use clap::{Args, Subcommand, ValueEnum};
use http::Method;

use super::{Body, Call, Page, StartupError, Target, possible_value};

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
                page.print(target, &["reviews"], criteria, COLUMNS)
            }
            Self::Claim(review) => claim(review, Method::POST),
            Self::Release(review) => claim(review, Method::DELETE),
        }
    }
}
