//! `rampart approval list|grant|refuse`.

use clap::Subcommand;
use http::Method;

use super::{Body, Page, Run, StartupError, Target, path};

const COLUMNS: &[(&str, &str)] = &[
    ("REQUESTED", "requestedAt"),
    ("ID", "id"),
    ("STATE", "state"),
    ("METHOD", "method"),
    ("PATH", "path"),
    ("BY", "requestedBy"),
    ("DECIDED BY", "decidedBy"),
    ("ENDS", "expiresAt"),
    ("BODY", "body"),
];

/// Calls that need a second person.
#[derive(Debug, Subcommand)]
pub(crate) enum Approval {
    /// List them, newest first.
    List(Page),
    /// Agree to a call of another operator, who then makes it again.
    Grant {
        /// The approval's id, as `approval list` or the held call shows it.
        id: String,
        #[command(flatten)]
        target: Target,
    },
    /// Refuse a call of another operator, or withdraw one of your own.
    Refuse {
        /// The approval's id.
        id: String,
        #[command(flatten)]
        target: Target,
    },
}

impl Run for Approval {
    fn run(self) -> Result<(), StartupError> {
        let (id, word, target) = match self {
            Self::List(page) => return page.print("approvals", [], COLUMNS),
            Self::Grant { id, target } => (id, "grant", target),
            Self::Refuse { id, target } => (id, "refuse", target),
        };
        target.send(Method::POST, &path(&["approvals", &id, word]), Body::None)
    }
}
