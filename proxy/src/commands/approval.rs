//! `rampart approval list|grant|refuse`.

use clap::Subcommand;
use http::Method;

use super::{ObjectArgs, Page, Run, StartupError};

const COLUMNS: &str = "\
    REQUESTED requestedAt, ID id, STATE state, METHOD method, PATH path, BY requestedBy, \
    DECIDED BY decidedBy, ENDS expiresAt, BODY body";

/// Calls that need a second person.
#[derive(Debug, Subcommand)]
pub(crate) enum Approval {
    /// List them, newest first.
    List(Page),
    /// Agree to a call of another operator, who then makes it again. The list and the held call show
    /// the id.
    Grant(ObjectArgs),
    /// Refuse a call of another operator, or withdraw one of your own.
    Refuse(ObjectArgs),
}

impl Run for Approval {
    fn run(self) -> Result<(), StartupError> {
        match self {
            Self::List(page) => page.print("approvals", [], COLUMNS),
            Self::Grant(approval) => approval.send(Method::POST, "approvals", &["grant"]),
            Self::Refuse(approval) => approval.send(Method::POST, "approvals", &["refuse"]),
        }
    }
}
