//! `rampart operator` and `rampart approval`: people, and calls that need two of them.

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::{Call, ObjectArgs, Page, StartupError, Target};

pub(super) const OPERATORS: &str = "\
    NAME name, ROLES roles, DISABLED disabled, CREATED BY createdBy, CREATED createdAt, \
    TOKENS tokens";

pub(super) const SESSIONS: &str =
    "BEGAN createdAt, ENDS expiresAt, WITH TOKEN withToken, ROLES roles, ID id";

/// Operators, their roles and tokens.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Operator {
    /// Make an operator and print a first token, once.
    Add {
        /// Name: a-z, 0-9, -, _, . and @.
        name: String,
        /// viewer, support, compliance, treasury, platform or owner; can be given several times.
        #[arg(long = "role", value_name = "ROLE", required = true)]
        roles: Vec<String>,
        /// Lifetime of the token; 90 days if not given.
        #[arg(long, value_name = "SECONDS")]
        #[serde(rename = "expiresInSeconds")]
        expires_in: Option<u32>,
    },
    /// List operators with their roles and live tokens.
    List(Page),
    /// List the sessions of an operator in browsers, newest first.
    Sessions {
        /// The operator's name.
        name: String,
        #[command(flatten)]
        page: Page,
    },
    /// Give an operator these roles in place of the present ones.
    Roles {
        /// The operator's name.
        name: String,
        /// viewer, support, compliance, treasury, platform or owner.
        #[arg(required = true)]
        roles: Vec<String>,
    },
    /// Refuse all tokens of an operator.
    Disable(OperatorArgs),
    /// Let a disabled operator in again.
    Enable(OperatorArgs),
    /// Issue a new token and print it, once; earlier ones end with the overlap.
    Token {
        /// Lifetime of the token; 90 days if not given.
        #[arg(long, value_name = "SECONDS")]
        #[serde(rename = "expiresInSeconds")]
        expires_in: Option<u32>,
        /// Time that earlier tokens live on; a day if not given.
        #[arg(long, value_name = "SECONDS")]
        #[serde(rename = "overlapSeconds")]
        overlap: Option<u32>,
        /// The operator's name.
        name: String,
    },
    /// Revoke a token.
    Revoke {
        /// The operator's name.
        name: String,
        /// The token's id, as `operator list` shows it.
        id: String,
    },
}

/// One operator.
#[derive(Debug, Args, Serialize)]
pub(crate) struct OperatorArgs {
    /// The operator's name.
    name: String,
}

impl Call for Operator {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        let set_disabled = |operator: &OperatorArgs, disabled: bool| {
            let body = json!({"name": operator.name, "disabled": disabled});
            target.call("PATCH operators/{name}", &body)
        };
        match self {
            Self::List(page) => target.list("operators", page, OPERATORS),
            Self::Sessions { .. } => target.list("operators/{name}/sessions", self, SESSIONS),
            Self::Add { .. } => target.call("POST operators", self),
            Self::Roles { .. } => target.call("PATCH operators/{name}", self),
            Self::Disable(operator) => set_disabled(operator, true),
            Self::Enable(operator) => set_disabled(operator, false),
            Self::Token { .. } => target.call("POST operators/{name}/tokens", self),
            Self::Revoke { .. } => target.call("DELETE operators/{name}/tokens/{id}", self),
        }
    }
}

pub(super) const APPROVALS: &str = "\
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
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List(page) => target.list("approvals", page, APPROVALS),
            Self::Grant(approval) => target.call("POST approvals/{id}/grant", approval),
            Self::Refuse(approval) => target.call("POST approvals/{id}/refuse", approval),
        }
    }
}
