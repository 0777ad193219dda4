//! `rampart policy new|build|check` for the author of a policy, who needs no edge, and
//! `rampart policy push|show|dry-run|rollback|delete` for its operator.

mod build;
mod check;
mod new;
mod template;

use std::path::PathBuf;

use clap::Subcommand;
use http::Method;
use serde_json::{Value, json};

use super::Target;
use crate::operator::Body;
use crate::serve::Fault;

/// A partner's policies: `signature`, `fee` and `method-order`.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Write a small project that builds as it is.
    New(new::New),
    /// Make the component of a project.
    Build(build::Build),
    /// Try a component as the edge would, without an edge, and with its test vectors.
    Check(check::Check),
    /// Admit a component and make it the partner's policy at once.
    Push {
        /// The partner's short name.
        slug: String,
        /// signature, fee or method-order.
        kind: String,
        /// The component.
        file: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// List a policy's versions.
    Show {
        /// The partner's short name.
        slug: String,
        /// signature, fee or method-order.
        kind: String,
        #[command(flatten)]
        target: Target,
    },
    /// Ask the active policy, storing nothing.
    DryRun {
        /// The partner's short name.
        slug: String,
        /// signature, fee or method-order.
        kind: String,
        /// What it is asked, as JSON in a file.
        input: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// Go back to the version before.
    Rollback {
        /// The partner's short name.
        slug: String,
        /// signature, fee or method-order.
        kind: String,
        #[command(flatten)]
        target: Target,
    },
    /// Go back to the built-in policy.
    Delete {
        /// The partner's short name.
        slug: String,
        /// signature, fee or method-order.
        kind: String,
        #[command(flatten)]
        target: Target,
    },
}

impl Policy {
    /// Does it.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub(crate) fn run(self) -> Result<(), Fault> {
        let path = |slug: &str, kind: &str| format!("partners/{slug}/policies/{kind}");
        match self {
            Self::New(new) => new.run(),
            Self::Build(build) => build.run(),
            Self::Check(check) => check.run(),
            Self::Push { slug, kind, file, target } => {
                let (path, body) = (path(&slug, &kind), Body::Component(read(&file)?));
                target.run(async |o| o.call(Method::PUT, &path, body).await)
            }
            Self::Show { slug, kind, target } => {
                target.run(async |o| o.get(&path(&slug, &kind)).await)
            }
            Self::DryRun { slug, kind, input, target } => {
                let path = format!("{}/dry-run", path(&slug, &kind));
                let input: Value = serde_json::from_slice(&read(&input)?)
                    .map_err(|e| Fault::new("the input is not JSON", &e))?;
                let body = Body::Json(json!({ "input": input }));
                target.run(async |o| o.call(Method::POST, &path, body).await)
            }
            Self::Rollback { slug, kind, target } => {
                let path = format!("{}/rollback", path(&slug, &kind));
                target.run(async |o| o.call(Method::POST, &path, Body::None).await)
            }
            Self::Delete { slug, kind, target } => {
                let path = path(&slug, &kind);
                target.run(async |o| o.call(Method::DELETE, &path, Body::None).await)
            }
        }
    }
}

fn read(file: &std::path::Path) -> Result<Vec<u8>, Fault> {
    std::fs::read(file).map_err(|e| Fault::new(&format!("'{}' cannot be read", file.display()), &e))
}
