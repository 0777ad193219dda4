//! `rampart operator add|list|roles|disable|enable|token|revoke|sessions`.

use clap::Subcommand;
use http::Method;
use serde_json::json;

use super::{Body, Page, Run, StartupError, Target, path};

/// Columns of a table of operators: their heads, and members.
const COLUMNS: &[(&str, &str)] = &[
    ("NAME", "name"),
    ("ROLES", "roles"),
    ("DISABLED", "disabled"),
    ("CREATED BY", "createdBy"),
    ("CREATED", "createdAt"),
    ("TOKENS", "tokens"),
];

/// Columns of a table of sessions: their heads, and members.
const SESSIONS: &[(&str, &str)] = &[
    ("BEGAN", "createdAt"),
    ("ENDS", "expiresAt"),
    ("WITH TOKEN", "withToken"),
    ("ROLES", "roles"),
    ("ID", "id"),
];

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
        #[command(flatten)]
        target: Target,
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
        #[command(flatten)]
        target: Target,
    },
    /// Refuse all tokens of an operator.
    Disable {
        /// The operator's name.
        name: String,
        #[command(flatten)]
        target: Target,
    },
    /// Let a disabled operator in again.
    Enable {
        /// The operator's name.
        name: String,
        #[command(flatten)]
        target: Target,
    },
    /// Issue a new token and print it, once; earlier ones end with the overlap.
    Token {
        /// The operator's name.
        name: String,
        /// Lifetime of the token; 90 days if not given.
        #[arg(long, value_name = "SECONDS")]
        expires_in: Option<u32>,
        /// Time that earlier tokens live on; a day if not given.
        #[arg(long, value_name = "SECONDS")]
        overlap: Option<u32>,
        #[command(flatten)]
        target: Target,
    },
    /// Revoke a token.
    Revoke {
        /// The operator's name.
        name: String,
        /// The token's id, as `operator list` shows it.
        id: String,
        #[command(flatten)]
        target: Target,
    },
}

impl Run for Operator {
    fn run(self) -> Result<(), StartupError> {
        let (method, path, body, target) = match self {
            Self::List(page) => return page.print("operators", [], COLUMNS),
            Self::Sessions { name, page } => {
                return page.print(&path(&["operators", &name, "sessions"]), [], SESSIONS);
            }
            Self::Add { name, roles, expires_in, target } => {
                let body = json!({"name": name, "roles": roles, "expiresInSeconds": expires_in});
                (Method::POST, "operators".to_owned(), Body::Json(body), target)
            }
            Self::Roles { name, roles, target } => {
                let path = path(&["operators", &name]);
                (Method::PATCH, path, Body::Json(json!({ "roles": roles })), target)
            }
            Self::Disable { name, target } => {
                let path = path(&["operators", &name]);
                (Method::PATCH, path, Body::Json(json!({"disabled": true})), target)
            }
            Self::Enable { name, target } => {
                let path = path(&["operators", &name]);
                (Method::PATCH, path, Body::Json(json!({"disabled": false})), target)
            }
            Self::Token { name, expires_in, overlap, target } => {
                let body = json!({"expiresInSeconds": expires_in, "overlapSeconds": overlap});
                (Method::POST, path(&["operators", &name, "tokens"]), Body::Json(body), target)
            }
            Self::Revoke { name, id, target } => {
                (Method::DELETE, path(&["operators", &name, "tokens", &id]), Body::None, target)
            }
        };
        target.send(method, &path, body)
    }
}
