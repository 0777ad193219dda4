//! `rampart operator` and `rampart approval`: people, and calls that need two of them.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::{Call, ObjectArgs, Page, StartupError, Target};

pub(super) const OPERATORS: &str = "\
    NAME name, ROLES roles, DISABLED disabled, CREATED BY createdBy, CREATED createdAt, \
    TOKENS tokens";

pub(super) const SESSIONS: &str =
    "BEGAN createdAt, ENDS expiresAt, WITH TOKEN withToken, ROLES roles, ID id";

/// Operators, their roles and tokens.
#[derive(Debug, Subcommand)]
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
        #[command(flatten)]
        operator: OperatorArgs,
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
        expires_in: Option<u32>,
        /// Time that earlier tokens live on; a day if not given.
        #[arg(long, value_name = "SECONDS")]
        overlap: Option<u32>,
        #[command(flatten)]
        operator: OperatorArgs,
    },
    /// Revoke a token.
    Revoke {
        #[command(flatten)]
        operator: OperatorArgs,
        /// The token's id, as `operator list` shows it.
        id: String,
    },
}

/// One operator.
#[derive(Debug, Args)]
pub(crate) struct OperatorArgs {
    /// The operator's name.
    name: String,
}

impl Call for Operator {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        let change = |operator: OperatorArgs, body: Value| {
            target.send(Method::PATCH, &["operators", &operator.name], body)
        };
        match self {
            Self::List(page) => page.print(target, &["operators"], [], OPERATORS),
            Self::Sessions { name, page } => {
                page.print(target, &["operators", &name, "sessions"], [], SESSIONS)
            }
            Self::Add { name, roles, expires_in } => {
                let body = json!({"name": name, "roles": roles, "expiresInSeconds": expires_in});
                target.send(Method::POST, &["operators"], body)
            }
            Self::Roles { operator, roles } => change(operator, json!({ "roles": roles })),
            Self::Disable(operator) => change(operator, json!({ "disabled": true })),
            Self::Enable(operator) => change(operator, json!({ "disabled": false })),
            Self::Token { expires_in, overlap, operator } => {
                let body = json!({"expiresInSeconds": expires_in, "overlapSeconds": overlap});
                target.send(Method::POST, &["operators", &operator.name, "tokens"], body)
            }
            Self::Revoke { operator, id } => {
                target.delete(&["operators", &operator.name, "tokens", &id])
            }
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
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List(page) => page.print(target, &["approvals"], [], APPROVALS),
            Self::Grant(approval) => target.post(&["approvals", &approval.id, "grant"]),
            Self::Refuse(approval) => target.post(&["approvals", &approval.id, "refuse"]),
        }
    }
}
