//! `rampart partner add|list|show|suspend|resume`.

use clap::Subcommand;
use http::Method;
use serde_json::{Value, json};

use super::Target;
use super::members::Members;
use crate::operator::{Body, Operator};
use crate::startup_error::StartupError;

/// Partners.
#[derive(Debug, Subcommand)]
pub(crate) enum Partner {
    /// Make a partner and print its credentials, once.
    Add {
        /// Short name: a-z, 0-9 and -.
        slug: String,
        /// Name for people; the short one if not given.
        #[arg(long)]
        name: Option<String>,
        /// `test` (everything is simulated) or `live`.
        #[arg(long, default_value = "test")]
        mode: String,
        #[command(flatten)]
        target: Target,
    },
    /// List partners.
    List {
        #[command(flatten)]
        target: Target,
    },
    /// Show a partner's settings.
    Show {
        /// Its short name.
        slug: String,
        #[command(flatten)]
        target: Target,
    },
    /// Change a partner's settings: `mode=live`, `complianceGate=none`, `rateLimits.client="50/s"`.
    Set {
        /// Its short name.
        slug: String,
        #[command(flatten)]
        members: Members,
        #[command(flatten)]
        target: Target,
    },
    /// Refuse every credential of a partner, on every edge within a second.
    Suspend {
        /// Its short name.
        slug: String,
        #[command(flatten)]
        target: Target,
    },
    /// Let a suspended partner in again.
    Resume {
        /// Its short name.
        slug: String,
        #[command(flatten)]
        target: Target,
    },
}

impl Partner {
    /// Does it.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub(crate) fn run(self) -> Result<(), StartupError> {
        match self {
            Self::Add { slug, name, mode, target } => {
                let name = name.unwrap_or_else(|| slug.clone());
                let body = Body::Json(json!({"slug": slug, "name": name, "mode": mode}));
                target.run(async |o| o.call(Method::POST, "partners", body).await)
            }
            Self::List { target } => target.run(async |o| o.get("partners").await),
            Self::Show { slug, target } => {
                target.run(async |o| o.get(&format!("partners/{slug}")).await)
            }
            Self::Set { slug, members, target } => {
                let (path, body) = (format!("partners/{slug}"), members.body()?);
                target.run(async |o| o.call(Method::PATCH, &path, body).await)
            }
            Self::Suspend { slug, target } => {
                target.run(async |o| set_status(&o, &slug, "suspended").await)
            }
            Self::Resume { slug, target } => {
                target.run(async |o| set_status(&o, &slug, "active").await)
            }
        }
    }
}

async fn set_status(operator: &Operator, slug: &str, status: &str) -> Result<Value, StartupError> {
    let body = Body::Json(json!({ "status": status }));
    operator.call(Method::PATCH, &format!("partners/{slug}"), body).await
}
