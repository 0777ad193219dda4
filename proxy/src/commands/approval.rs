//! `rampart approval list|grant|refuse`.

use clap::Subcommand;
use http::Method;

use super::{Body, Call, ObjectArgs, Page, StartupError, Target};

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

impl Call for Approval {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        let decide = |approval: ObjectArgs, decision: &str| {
            target.send(Method::POST, &["approvals", &approval.id, decision], Body::None)
        };
        match self {
            Self::List(page) => page.print(target, &["approvals"], [], COLUMNS),
            Self::Grant(approval) => decide(approval, "grant"),
            Self::Refuse(approval) => decide(approval, "refuse"),
        }
    }
}
